package replay

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

// missing lists the families in a trace's rules that don't exist yet.
func (t *Trace) missing(ops []*Op) []string {
	families := t.Rules.families()
	for _, op := range ops {
		families = append(families, op.Rules.families()...)
	}
	families = slices.DeleteFunc(families, known)
	slices.Sort(families)
	return slices.Compact(families)
}

// decode returns the operations.
func (t *Trace) decode() ([]*Op, error) {
	ops := make([]*Op, len(t.Ops))
	for i, line := range t.Ops {
		ops[i] = new(Op)
		if err := json.Unmarshal(line, ops[i]); err != nil {
			return nil, fmt.Errorf("op %d: %w", i, err)
		}
	}
	return ops, nil
}
