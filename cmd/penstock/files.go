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
			faults = append(faults, fault{FileError: w.FileError, severity: isWarning, code: w.Name, source: f.data})
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
	if failed(faults) {
		_ = c.report(c.err, slices.DeleteFunc(faults, func(f fault) bool { return f.severity != isError }))
		return rules.Set{}, exit(exitErrors)
	}
	return set, nil
}

// combine returns the rules of all files as one set, and the rules whose id is that of one in
// another file: together they are refused. A rule without an id has one made of its fields, here as
// where a program loads the files.
func combine(files []ruleFile) (set rules.Set, faults []fault) {
	type owner struct {
		file *ruleFile
		rule int
	}
	first := make(map[string]owner) // by family and id
	all := reflect.ValueOf(&set).Elem()
	for i := range files {
		f := &files[i]
		for n, list := range reflect.ValueOf(f.parsed.Set).Fields() {
			all.FieldByIndex(n.Index).Set(reflect.AppendSlice(all.FieldByIndex(n.Index), list))
		}
		number := make(map[string]int) // of the next rule of a family
		for _, r := range rules.Diff(rules.Set{}, f.parsed.Set).Added {
			rule := number[r.Family]
			number[r.Family]++
			key := r.Family + " " + r.ID
			if other, twice := first[key]; twice {
				faults = append(faults, sameID(f, rule, other.file, other.rule, r))
			} else {
				first[key] = owner{f, rule}
			}
		}
	}
	return set, faults
}

func sameID(f *ruleFile, rule int, other *ruleFile, otherRule int, r rules.RuleChange) fault {
	at, earlier := f.parsed.Place(r.Family, rule, "id"), other.parsed.Place(r.Family, otherRule, "")
	at.Problem = fmt.Sprintf("the id %q is also that of %s in %s:%d:%d: give each its own, or remove one",
		r.ID, earlier.Path, earlier.File, earlier.Line, earlier.Column)
	return fault{FileError: at, source: f.data}
}
