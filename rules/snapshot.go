package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// hash identifies the content of a file. The zero hash is no content.
type hash [sha256.Size]byte

func hashOf(data []byte) hash { return sha256.Sum256(data) }

// String returns the first 12 hex digits of the hash, which distinguish the versions of a file and
// are short enough to read aloud: the beginning of sha256sum's output. "" for the zero hash.
func (h hash) String() string {
	if h == (hash{}) {
		return ""
	}
	return hex.EncodeToString(h[:6])
}

// sight is a file as read at one time, or the error; or a directory, which has no content.
type sight struct {
	pieceName
	dir      bool
	left     bool // a file that was in its directory and no longer is
	taken    time.Time
	done     time.Time // end of the read, which may have taken a while
	data     []byte
	hash     hash
	modified time.Time
	err      error
}

// read reads everything that is watched.
func (w *fileWatch) read() (all []sight) {
	for i, r := range w.roots {
		if r.dir {
			all = append(all, w.readDir(i, r)...)
		} else {
			all = append(all, w.readSight(pieceName{i, r.name}, r.file))
		}
	}
	return all
}

func (w *fileWatch) readSight(name pieceName, file string) sight {
	s := sight{pieceName: name, taken: time.Now()}
	data, info, err := readFile(file, MaxFileSize, w.member.loader.trust())
	s.done = time.Now()
	if err != nil {
		s.err = err
		return s
	}
	s.data, s.hash, s.modified = data, hashOf(data), info.ModTime()
	return s
}

// readDir reads a directory and its files. If the directory can't be read, its files are unknown.
func (w *fileWatch) readDir(order int, r root) []sight {
	d := sight{pieceName: pieceName{order, r.name}, dir: true, taken: time.Now()}
	var names []string
	names, d.err = ruleFiles(r.file, w.member.loader.trust())
	d.done = time.Now()
	all := []sight{d}
	if d.err != nil {
		return all
	}
	for _, name := range names {
		all = append(all, w.readSight(pieceName{order, filepath.Join(r.name, name)}, filepath.Join(r.file, name)))
	}
	for name, s := range w.seen {
		if name.order == order && !s.dir && !slices.Contains(names, filepath.Base(name.name)) {
			all = append(all, sight{pieceName: name, left: true, taken: d.taken, done: d.done})
		}
	}
	slices.SortFunc(all, func(a, b sight) int { return a.compare(b.pieceName) })
	return all
}

// maxFiles is the maximum number of rule files in a directory.
const maxFiles = 1000

// Files returns the paths of the rule files of a directory, in their order, as [Loader.Watch] reads
// them.
func Files(dir string, opts ParseOptions) (paths []string, err error) {
	names, err := ruleFiles(dir, trust{all: opts.AllowWritable})
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths, err
}

// ruleFiles returns the names of the rule files of a directory, in their order.
func ruleFiles(dir string, who trust) (names []string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if isRuleFile(name) && !isDirectory(filepath.Join(dir, name)) {
			names = append(names, name)
		}
	}
	if err := who.checkDir(dir, info, names); err != nil {
		return nil, err
	}
	switch {
	case len(names) == 0:
		return nil, &FileError{File: dir, Problem: "has no rule file (*.yaml, *.yml, *.json)"}
	case len(names) > maxFiles:
		return nil, &FileError{File: dir, Problem: fmt.Sprintf("has %d rule files, the maximum is %d", len(names), maxFiles)}
	}
	return names, nil
}

// isRuleFile reports whether a name in a directory belongs to a rule file, rather than a hidden file
// (a Kubernetes volume has ..data) or an editor's copy.
func isRuleFile(name string) bool {
	return !strings.ContainsAny(name[:1], ".#~") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// sameContent reports whether loading s would have the same result as loading o.
func (s sight) sameContent(o sight) bool {
	return s.left == o.left && s.hash == o.hash && errText(s.err) == errText(o.err)
}

// sameFile reports whether, in addition, the file was not written in between.
func (s sight) sameFile(o sight) bool {
	return s.sameContent(o) && s.modified.Equal(o.modified)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
