package golden

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Find lists the traces below a folder: every *.json and *.json.gz.
func Find(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".json.gz")) {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// Load reads a trace.
func Load(path string) (*Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	trace := new(Trace)
	if err := json.NewDecoder(in).Decode(trace); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return trace, nil
}

// decode returns the operations, and the families of all rules in the trace.
func (t *Trace) decode() (ops []*Op, families []string, err error) {
	families = t.Rules.families()
	ops = make([]*Op, len(t.Ops))
	for i, line := range t.Ops {
		ops[i] = new(Op)
		if err := json.Unmarshal(line, ops[i]); err != nil {
			return nil, nil, fmt.Errorf("op %d: %w", i, err)
		}
		families = append(families, ops[i].Rules.families()...)
	}
	slices.Sort(families)
	return ops, slices.Compact(families), nil
}
