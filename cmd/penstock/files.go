package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/rules"
)

// stdin is the argument that stands for standard input, and stdinName what errors call it.
const (
	stdin     = "-"
	stdinName = "stdin"
)

// ruleFile is a file that was read, or why it couldn't be.
type ruleFile struct {
	name   string
	data   []byte
	parsed rules.Parsed
	err    error
}

// expand returns the files that the arguments stand for: those that they name, and of a
// directory every rule file in it, in the order of their names, as api.WatchRules takes them.
func expand(args []string) (names []string, err error) {
	for _, arg := range args {
		if info, err := os.Stat(arg); arg == stdin || err != nil || !info.IsDir() {
			names = append(names, arg) // a missing file is an error of the file
			continue
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, err
		}
		found := false
		for _, e := range entries {
			name := filepath.Join(arg, e.Name())
			if !isRuleFile(e.Name()) {
				continue
			}
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				continue
			}
			names, found = append(names, name), true
		}
		if !found {
			return nil, fmt.Errorf("%s: no rule file is in this directory: none ends in .yaml, .yml or .json", arg)
		}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%s: named twice", name)
		}
	}
	return names, nil
}

func isRuleFile(name string) bool {
	return !strings.ContainsAny(name[:1], ".#~") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// read reads one file.
func (c *command) read(name string, opts rules.ParseOptions) ruleFile {
	f := ruleFile{name: name}
	if name == stdin {
		f.name = stdinName
		f.data, f.err = io.ReadAll(io.LimitReader(c.in, rules.MaxFileSize+1))
		if f.err == nil {
			f.parsed, f.err = rules.ParseWith(stdinName, f.data, opts)
		}
		return f
	}
	f.parsed, f.err = rules.LoadWith(name, opts)
	var pathErr *fs.PathError
	if errors.As(f.err, &pathErr) {
		f.err = &rules.FileError{File: name, Problem: pathErr.Err.Error()}
		return f
	}
	// The lines that errors are about are not worth waiting for a pipe, nor a device without an end.
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() <= rules.MaxFileSize {
		f.data, _ = os.ReadFile(name)
	}
	return f
}

// readAll reads the files that the arguments stand for, and what they are together. faults are
// those of all of them.
func (c *command) readAll(args []string, opts rules.ParseOptions) (files []ruleFile, set rules.Set, faults []fault, err error) {
	names, err := expand(args)
	if err != nil {
		return nil, set, nil, err
	}
	for _, name := range names {
		files = append(files, c.read(name, opts))
	}
	for _, f := range files {
		found := faultsOf(f.err)
		for i := range found {
			found[i].source = f.data
		}
		faults = append(faults, found...)
		for _, w := range f.parsed.Warnings {
			faults = append(faults, fault{FileError: w.FileError, code: w.Name, warning: true, source: f.data})
		}
	}
	set, twice := combine(files)
	return files, set, append(faults, twice...), nil
}

// load is readAll for commands that need rules without faults.
func (c *command) load(arg string) (rules.Set, error) {
	_, set, faults, err := c.readAll([]string{arg}, rules.ParseOptions{})
	if err != nil {
		return rules.Set{}, err
	}
	faults = slices.DeleteFunc(faults, func(f fault) bool { return f.warning })
	if len(faults) > 0 {
		_ = c.report(c.err, faults)
		return rules.Set{}, exit(exitErrors)
	}
	return set, nil
}

// combine returns the rules of all files as one set, and the rules whose id is that of one in
// another file: together they are refused.
func combine(files []ruleFile) (set rules.Set, faults []fault) {
	first := make(map[string]*ruleFile) // by family and id
	all := reflect.ValueOf(&set).Elem()
	for i := range files {
		f := &files[i]
		of := reflect.ValueOf(f.parsed.Set)
		for n := range all.NumField() {
			list := of.Field(n)
			family, _, _ := strings.Cut(all.Type().Field(n).Tag.Get("yaml"), ",")
			for r := range list.Len() {
				id := list.Index(r).Interface().(interface{ Info() spec.Info }).Info().ID
				key := family + " " + id
				if other := first[key]; id != "" && other != nil && other != f {
					faults = append(faults, sameID(f, other, family, id))
				} else if id != "" {
					first[key] = f
				}
			}
			all.Field(n).Set(reflect.AppendSlice(all.Field(n), list))
		}
	}
	return set, faults
}

func sameID(f, other *ruleFile, family, id string) fault {
	line, column, path := findID(f.data, family, id)
	earlier := other.name
	if l, c, _ := findID(other.data, family, id); l > 0 {
		earlier = fmt.Sprintf("%s:%d:%d", earlier, l, c)
	}
	return fault{source: f.data, FileError: rules.FileError{File: f.name, Line: line, Column: column, Path: path,
		Problem: fmt.Sprintf("%q is already the id of a %s rule at %s: an id is of one rule in all files", id, family, earlier)}}
}
