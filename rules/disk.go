package rules

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// disk holds the steps of replacing a file, so that tests can stop at any of them.
type disk interface {
	create(path string, mode os.FileMode) (diskFile, error) // which must not exist
	rename(from, to string) error
	remove(path string) error
	syncDir(path string) error
}

type diskFile interface {
	io.WriteCloser
	// resemble gives the file the mode and, if the system allows it, the owner of another one.
	resemble(like os.FileInfo) error
	Sync() error
}

// replaceFile replaces or creates the file at path with the content data. At any time path has the
// old content or the new, even if the process is killed or the machine stops: the data reaches the
// disk before the new name does, and the name before replaceFile returns. The new file has the
// attributes of the old one or, if there is none, the given mode.
//
// After an error path still has the old content, except for an error in the very last step.
func replaceFile(d disk, path string, like os.FileInfo, mode os.FileMode, data []byte) error {
	temp := filepath.Join(filepath.Dir(path), tempPrefix(path)+rand.Text())
	f, err := d.create(temp, mode)
	if err != nil {
		return err
	}
	if like != nil {
		err = f.resemble(like)
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, d.remove(temp))
	}
	return d.syncDir(filepath.Dir(path))
}

// tempPrefix returns the prefix of temporary files for path.
func tempPrefix(path string) string { return "." + filepath.Base(path) + ".new-" }

// leftoverAfter is the age after which a temporary file can't still be in use.
const leftoverAfter = time.Hour

// removeLeftovers removes the temporary files of processes that were killed while they replaced the
// file at path.
func removeLeftovers(path string) {
	dir := filepath.Dir(path)
	entries, _ := os.ReadDir(dir) // unreadable leftovers stay
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix(path)) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAfter {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// realDisk is the disk of the machine.
type realDisk struct{}

func (realDisk) create(path string, mode os.FileMode) (diskFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return realFile{f}, nil
}

func (realDisk) rename(from, to string) error { return os.Rename(from, to) }
func (realDisk) remove(path string) error     { return os.Remove(path) }

type realFile struct{ *os.File }

func (f realFile) resemble(like os.FileInfo) error {
	takeOwner(f.File, like) // first: it may clear bits of the mode
	return f.Chmod(like.Mode().Perm())
}
