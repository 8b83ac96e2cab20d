package rules

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File is a rule file as a [Source] and a [Writer], for programs that change it. Its revision is
// the SHA-256 of its content, in hex digits. To follow a file, [Watch] is the better choice, as it
// is notified of changes.
//
// Safe for concurrent use. Writers, even in several processes, exclude each other by a lock on the
// directory, if the system has flock; editors don't take that lock.
type File struct {
	Path string
	// AllowWritable makes the file usable even if every user of the system can write it; see
	// [Loader.AllowWritable].
	AllowWritable bool
}

// betweenLooks is the interval at which Next reads the file again.
const betweenLooks = time.Second

// Name returns the path.
func (f File) Name() string { return f.Path }

// Next reads the file as [Load] does, immediately, and again a second later if it has the revision
// after.
func (f File) Next(ctx context.Context, after string) (Document, error) {
	doc, _, err := f.read()
	if err == nil && doc.Revision == after {
		if !sleep(ctx, betweenLooks) {
			return Document{}, ctx.Err()
		}
		doc, _, err = f.read()
	}
	switch {
	case err != nil:
		return Document{}, err
	case doc.Revision == after:
		return Document{}, ErrUnchanged
	}
	return doc, nil
}

// Write implements [Writer]: it writes another file in the same directory and renames it, so that
// readers see the old content or the new. It keeps the mode and group and, if permitted, the owner of
// the old file; a file that didn't exist gets mode 0644 less the umask. A symbolic link is refused,
// since the link would be replaced rather than its target; name the target instead.
//
// It waits for other writers until ctx ends.
func (f File) Write(ctx context.Context, data []byte, after string) (revision string, err error) {
	if _, err := Parse(f.Path, data); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if info, err := os.Lstat(f.Path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", &FileError{File: f.Path, Problem: "is a symbolic link: write to the file that it points to"}
	}
	unlock, err := lockDir(ctx, filepath.Dir(f.Path))
	if err != nil {
		return "", err
	}
	defer unlock()
	var like os.FileInfo
	switch doc, info, err := f.read(); {
	case err == nil:
		if doc.Revision != after {
			return "", fmt.Errorf("%s: %w", f.Path, ErrConflict)
		}
		like = info
	case !errors.Is(err, ErrNotFound):
		return "", err
	case after != "":
		return "", fmt.Errorf("%s: %w: it is gone", f.Path, ErrConflict)
	}
	if err := replaceFile(realDisk{}, f.Path, like, 0o644, data); err != nil {
		return "", err
	}
	return revisionOf(data), nil
}

func (f File) read() (Document, os.FileInfo, error) {
	data, info, err := readFile(f.Path, MaxFileSize, trust{all: f.AllowWritable})
	if errors.Is(err, fs.ErrNotExist) {
		return Document{}, nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return Document{}, nil, err
	}
	return Document{data, revisionOf(data)}, info, nil
}

func revisionOf(data []byte) string {
	h := hashOf(data)
	return hex.EncodeToString(h[:])
}
