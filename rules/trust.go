package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// trust decides which files and directories are read. The zero value excludes files that every user
// can write.
type trust struct {
	all  bool                    // nothing is excluded
	warn func(path, mode string) // called for writable files that are read; may be nil
}

// check returns an error for a file or directory that is not to be read. can describes what every
// user can do with it.
func (t trust) check(path string, info os.FileInfo, can string) error {
	if !anyoneMayWrite(info) || readOnly(path) {
		return nil
	}
	mode := fmt.Sprintf("%#o", info.Mode().Perm())
	if !t.all {
		return &FileError{File: path, Problem: fmt.Sprintf(
			"every user can %s (mode %s): run chmod o-w; where modes mean nothing, allow it (AllowWritable, --allow-writable)", can, mode)}
	}
	if t.warn != nil {
		t.warn(path, mode)
	}
	return nil
}

// checkDir is like check, but for a directory with these rule files. A volume mounted by the kubelet
// is read even though every user can write to its directory, if its owner owns all rule files.
//
// Such a directory contains a symlink named ..data that points to one of its subdirectories, which
// the kubelet replaces as a whole, and for each file a symlink to the file of that name below
// ..data. Other users can't forge that: a symlink belongs to the user who creates it, and they can't
// write to the subdirectory.
func (t trust) checkDir(dir string, info os.FileInfo, names []string) error {
	if anyoneMayWrite(info) && isVolume(dir, info, names) {
		return nil
	}
	return t.check(dir, info, "add rule files")
}

func isVolume(dir string, info os.FileInfo, names []string) bool {
	const current = "..data"
	link, err := os.Lstat(filepath.Join(dir, current))
	if err != nil || link.Mode().Type() != os.ModeSymlink || !sameOwner(link, info) {
		return false
	}
	target, err := os.Readlink(filepath.Join(dir, current))
	if err != nil || !strings.HasPrefix(target, "..") || target == ".." || strings.ContainsRune(target, filepath.Separator) {
		return false
	}
	data, err := os.Lstat(filepath.Join(dir, target))
	if err != nil || !data.IsDir() || !sameOwner(data, info) || anyoneMayWrite(data) {
		return false
	}
	for _, name := range names {
		if to, err := os.Readlink(filepath.Join(dir, name)); err != nil || to != filepath.Join(current, name) {
			return false
		}
	}
	return true
}

// AllowWritable makes the Loader read files and directories even if every user of the system can write
// them: for file systems without meaningful modes, such as file systems that some container runtimes
// share with their host. The log gets a warning for each. Without AllowWritable they are refused,
// since any user could stop the service, or open it. File systems that are mounted read-only, and the
// volumes that Kubernetes creates, are exempt.
func (l *Loader) AllowWritable() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writable == nil {
		l.writable = make(map[string]bool)
	}
}

// trust returns the files that the Loader reads.
func (l *Loader) trust() trust {
	l.mu.Lock()
	defer l.mu.Unlock()
	return trust{l.writable != nil, l.warnOfWritable}
}

// warnOfWritable logs the first use of a path that every user can write.
func (l *Loader) warnOfWritable(path, mode string) {
	l.mu.Lock()
	warned := l.writable[path]
	l.writable[path] = true
	l.mu.Unlock()
	if !warned {
		l.log.Warn("penstock: every user can write these rules, which AllowWritable permits", "source", path, "mode", mode)
	}
}
