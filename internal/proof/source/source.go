// Package source finds the Go files of a tree, for the tools and tests that read them.
package source

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Root returns the folder of go.work, at or above the current one.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.work here or above: run this inside the repository")
		}
		dir = up
	}
}

// Each calls f with the name and the text of every Go file below the root of fsys, in order,
// regardless of build tags and modules. It skips folders that the go command skips, and stops at
// the first error from f.
func Each(fsys fs.FS, f func(name string, text []byte) error) error {
	return each(fsys, passedOver, f)
}

// EachOfModule is like Each, but skips nested modules.
func EachOfModule(fsys fs.FS, f func(name string, text []byte) error) error {
	return each(fsys, func(dir string) bool {
		_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
		return err == nil || passedOver(dir)
	}, f)
}

func passedOver(dir string) bool {
	base := path.Base(dir)
	return base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func each(fsys fs.FS, skip func(dir string) bool, f func(name string, text []byte) error) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && skip(name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return f(name, text)
	})
}
