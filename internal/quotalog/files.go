package quotalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// files is the part of a file system that a log needs. Tests have one in memory.
type files interface {
	// read returns the contents of the log, none if there is no file.
	read() ([]byte, error)
	// replace makes contents those of the log, on the disk, and returns the file to append to.
	replace(contents []byte) (file, error)
	// unlock lets other processes open the log.
	unlock() error
}

// file is a file that is appended to. What is written is on the disk once Sync returns nil.
type file interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

// disk has the log at a path, and holds its lock.
type disk struct {
	path string
	lock *os.File
}

// openDisk locks the log at a path.
func openDisk(path string) (*disk, error) {
	name := path + ".lock"
	lock, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(lock); err != nil {
		_ = lock.Close()
		if errors.Is(err, errLocked) {
			return nil, fmt.Errorf("%s is used by another process or Guard: give each a log of its own, or wait until the other has ended", path)
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return &disk{path, lock}, nil
}

func (d *disk) read() ([]byte, error) {
	contents, err := os.ReadFile(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return contents, err
}

func (d *disk) replace(contents []byte) (file, error) {
	name := d.path + ".new"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(name, d.path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(d.path))
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// syncFolder puts a rename in a folder on the disk.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	err = folder.Sync()
	return errors.Join(err, folder.Close())
}

func (d *disk) unlock() error { return d.lock.Close() }
