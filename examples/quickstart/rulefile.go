package main

import (
	_ "embed"
	"os"
	"path/filepath"
	"runtime"
)

//go:embed rules.yaml
var embeddedRules []byte

// findRules returns the rule file to watch: the requested one, otherwise the rules.yaml next to the
// source, so that it can be edited in place. If there is none, or it is not editable (in the module
// cache), it writes a copy of the embedded one to a temporary folder, which remove deletes.
func findRules(asked string) (file string, remove func(), err error) {
	remove = func() {}
	if asked != "" {
		return asked, remove, nil
	}
	if _, source, _, ok := runtime.Caller(0); ok {
		if file := filepath.Join(filepath.Dir(source), "rules.yaml"); editable(file) {
			return shorten(file), remove, nil
		}
	}
	// The program may be built with -trimpath and run from the repository's root.
	if file := filepath.Join("examples", "quickstart", "rules.yaml"); editable(file) {
		return file, remove, nil
	}
	dir, err := os.MkdirTemp("", "penstock-quickstart-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	file = filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(file, embeddedRules, 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return file, remove, nil
}

// editable reports whether the owner, but not every user, may write the file: package rules rejects
// a rule file that every user can change.
func editable(file string) bool {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o200 == 0 {
		return false
	}
	return info.Mode()&0o002 == 0 || runtime.GOOS == "windows" // Windows has no such modes
}

// shorten returns a path relative to the working directory, if the file is below it.
func shorten(file string) string {
	dir, err := os.Getwd()
	if err != nil {
		return file
	}
	if short, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(short) {
		return short
	}
	return file
}
