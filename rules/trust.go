package rules

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// trust is which files and directories are read. The zero value is those that not every user can write.
type trust struct {
	all  bool                    // the others, too
	tell func(path, mode string) // is called with each of the others that is read; nil is nobody
}

// check returns an error for what every user can write, unless it is trusted all the same. can is what they can
// do, in the error.
func (t trust) check(path string, info os.FileInfo, can string) error {
	mode := fmt.Sprintf("%#o", info.Mode().Perm())
	switch {
	case !anyoneMayWrite(info), readOnly(path):
	case !t.all:
		return &FileError{File: path, Problem: fmt.Sprintf(
			"every user can %s (mode %s): run chmod o-w; where modes mean nothing, allow it (AllowWritable, --allow-writable)", can, mode)}
	case t.tell != nil:
		t.tell(path, mode)
	}
	return nil
}

// checkDir is check for a directory with these rule files. A directory that the kubelet has made for a volume
// is trusted: every user can write it, but rule files are only what its owner has put there.
//
// It has a link ..data to a directory beside it, which the kubelet replaces as a whole, and for each file a link
// to one of that name below ..data. Others can make neither: a link is whose user made it, and no directory of
// the owner's is theirs to write.
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

// writable is what a Loader does with files that every user can write.
type writable struct {
	mu    sync.Mutex
	allow bool
	told  map[string]bool
}

// trust is which files the Loader reads.
func (w *writable) trust(log *slog.Logger) trust {
	w.mu.Lock()
	defer w.mu.Unlock()
	return trust{w.allow, func(path, mode string) {
		w.mu.Lock()
		told := w.told[path]
		w.told[path] = true
		w.mu.Unlock()
		if !told {
			log.Warn("penstock: every user can write these rules, as was allowed", "source", path, "mode", mode)
		}
	}}
}

// AllowWritable declares that files and directories are read, too, that every user of the system can write:
// for file systems whose modes mean nothing, such as those that some container runtimes share with their host. The log gets a
// warning of each. Without it they are refused, since any user could stop the service, or open it, except for
// what is on a file system that is mounted read-only, and the volumes that Kubernetes makes.
func (l *Loader) AllowWritable() {
	l.writable.mu.Lock()
	defer l.writable.mu.Unlock()
	l.writable.allow = true
	l.writable.told = make(map[string]bool)
}

func (l *Loader) trust() trust { return l.writable.trust(l.log) }
