package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/rules"
)

// stdin is the argument for standard input, and stdinName its name in errors.
const (
	stdin     = "-"
	stdinName = "stdin"
)

// ruleFile is a file that was read, or the error of reading it.
type ruleFile struct {
	name   string
	data   []byte
	parsed rules.Parsed
	err    error
	over   map[ruleRef]bool // rules that later files replace
}

// expand returns the files for the arguments: named files and, for a directory, every rule file in
// it, sorted by name, like api.WatchRules.
func expand(args []string, opts rules.ParseOptions) (names []string, err error) {
	for _, arg := range args {
		if info, err := os.Stat(arg); arg == stdin || err != nil || !info.IsDir() {
			names = append(names, arg) // a missing file is reported as an error for that file
			continue
		}
		files, err := rules.Files(arg, opts)
		if err != nil {
			return nil, err
		}
		names = append(names, files...)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%s: named twice", name)
		}
	}
	return names, nil
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
	// Don't wait for a pipe, or read an endless device, just to show lines of errors.
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() <= rules.MaxFileSize {
		f.data, _ = os.ReadFile(name)
	}
	return f
}

// together specifies how to combine files.
type together struct {
	rules.ParseOptions
	laterWins bool // of two rules with one id, the later file's wins
}

// add adds the flags.
func (o *together) add(cmd *cobra.Command) {
	allowWritable(cmd, &o.ParseOptions)
	cmd.Flags().BoolVar(&o.laterWins, "later-wins", false,
		"of two rules with one id, the later file's\nwins, as with api.AllowOverrides")
}

// allowWritable adds the flag of that name.
func allowWritable(cmd *cobra.Command, opts *rules.ParseOptions) {
	cmd.Flags().BoolVar(&opts.AllowWritable, "allow-writable", false,
		"read files and directories that every user can write,\nwith a warning, as with api.Config.AllowWritable")
}

// readAll reads and combines the files for the arguments. faults are the faults of all files.
func (c *command) readAll(args []string, opts together) (files []ruleFile, set rules.Set, faults []fault, err error) {
	names, err := expand(args, opts.ParseOptions)
	if err != nil {
		return nil, set, nil, err
	}
	for _, name := range names {
		files = append(files, c.read(name, opts.ParseOptions))
	}
	if opts.AllowWritable {
		faults = append(faults, writable(args, names)...)
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
	set, twice := combine(files, opts.laterWins)
	return files, set, append(faults, twice...), nil
}

// writable returns warnings for arguments, and their files, that every user can write.
func writable(args, names []string) (faults []fault) {
	for i, path := range slices.Concat(args, names) {
		if i >= len(args) && slices.Contains(args, path) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o002 != 0 && os.PathSeparator == '/' {
			problem := fmt.Sprintf("every user can write it (mode %#o)", info.Mode().Perm())
			faults = append(faults, fault{FileError: rules.FileError{File: path, Problem: problem}, severity: isWarning, code: "writable"})
		}
	}
	return faults
}

// load is like readAll, but for commands that need rules without faults.
func (c *command) load(args []string, opts together) (rules.Set, error) {
	_, set, faults, err := c.readAll(args, opts)
	if err != nil {
		return rules.Set{}, err
	}
	if failed(faults) {
		_ = c.report(c.err, slices.DeleteFunc(faults, func(f fault) bool { return f.severity != isError }))
		return rules.Set{}, exit(exitErrors)
	}
	return set, nil
}

// overrides is the code for a rule that replaces another, with --later-wins.
const overrides = "overrides"

// combine returns the rules of all files as one set. If two files have rules with the same id, both
// are rejected, unless the later one wins: then the earlier one is turned off in its file, and is not
// in the set. A rule without an id gets an id generated from its fields, as when a program loads the
// files.
func combine(files []ruleFile, laterWins bool) (set rules.Set, faults []fault) {
	first := make(map[string]ruleRef) // by family and id
	for i := range files {
		f := &files[i]
		number := make(map[string]int) // of the next rule of a family
		for _, r := range rules.Diff(rules.Set{}, f.parsed.Set).Added {
			here, key := ruleRef{f, r.Family, number[r.Family]}, r.Family+" "+r.ID
			number[r.Family]++
			other, twice := first[key]
			if first[key] = here; !twice {
				continue
			}
			at, earlier := here.place("id"), other.place("")
			there := fmt.Sprintf("%s in %s:%d:%d", earlier.Path, earlier.File, earlier.Line, earlier.Column)
			at.Problem = fmt.Sprintf("the id %q is also that of %s: give each its own, or remove one", r.ID, there)
			notice := fault{FileError: at, source: f.data}
			if laterWins {
				notice.Problem = "the rule replaces " + there
				notice.severity, notice.code = isNotice, overrides
				other.turnOff()
			}
			faults = append(faults, notice)
		}
	}
	all := reflect.ValueOf(&set).Elem()
	for i := range files {
		for n, list := range reflect.ValueOf(files[i].parsed.Set).Fields() {
			to := all.FieldByIndex(n.Index)
			for r := range list.Len() {
				if !files[i].over[ruleRef{&files[i], keyOf(n), r}] {
					to.Set(reflect.Append(to, list.Index(r)))
				}
			}
		}
	}
	return set, faults
}

// keyOf returns a field's key in files.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

// ruleRef refers to a rule of a file.
type ruleRef struct {
	file   *ruleFile
	family string
	number int
}

func (r ruleRef) place(field string) rules.FileError {
	return r.file.parsed.Place(r.family, r.number, field)
}

// turnOff marks the rule as replaced, and turns it off for code that looks only at its file.
func (r ruleRef) turnOff() {
	f := r.file
	if f.over == nil {
		f.over, f.parsed.Set = make(map[ruleRef]bool), f.parsed.Set.Clone()
	}
	f.over[r] = true
	for n, list := range reflect.ValueOf(&f.parsed.Set).Elem().Fields() {
		if keyOf(n) == r.family {
			if mode := list.Index(r.number).FieldByName("Mode"); mode.IsValid() {
				mode.Set(reflect.ValueOf(spec.Off))
			}
		}
	}
}
