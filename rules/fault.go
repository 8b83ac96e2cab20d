package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// A FileError is one error in a rule file, with its position. [Parse] and [Load] return the errors
// found, joined in the order of the file and up to a limit; [errors.As] finds the first.
type FileError struct {
	File    string // the name given to Parse, or the path given to Load
	Line    int    // from 1; 0 for the whole file
	Column  int    // from 1, in characters, counting a tab as one
	Path    string // the field, as in "flow[0].threshold"; "" for the whole file
	Problem string // the problem, and what to do about it
}

// Error returns file:line:column: path: problem.
func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		if e.File != "" {
			b.WriteByte(':')
		}
		fmt.Fprintf(&b, "%d:%d", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

const (
	maxFaults = 20  // errors reported together
	maxShown  = 300 // characters of a problem: a file must not flood the log
	maxQuoted = 60  // characters of a name or value within one
)

// faults collects the errors in a file.
type faults struct {
	file string
	list []*FileError
}

// full reports whether enough errors have been found.
func (f *faults) full() bool { return len(f.list) > maxFaults }

func (f *faults) add(at place, path, format string, args ...any) {
	if f.full() {
		return
	}
	problem := cut(printable(fmt.Sprintf(format, args...)), maxShown)
	f.list = append(f.list, &FileError{f.file, at.line, at.column, printable(path), problem})
}

// printable escapes characters that would break a line or control a terminal. Keys, tags and the
// parser's quotes come from the file, and errors end up in logs.
func printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// err returns the faults as one error, or nil if there are none.
func (f *faults) err() error {
	slices.SortStableFunc(f.list, func(a, b *FileError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var errs []error
	for i, fault := range f.list {
		if i == maxFaults {
			errs = append(errs, &FileError{File: f.file, Problem: fmt.Sprintf("there are more: these are the first %d errors", maxFaults)})
			break
		}
		errs = append(errs, fault)
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// place is a line and a column, both from 1. The zero place is the whole file.
type place struct{ line, column int }

func (p place) String() string { return fmt.Sprintf("%d:%d", p.line, p.column) }

func placeOf(n *yaml.Node) place { return place{n.Line, n.Column} }

// placeAt returns the place of the byte at offset.
func placeAt(data []byte, offset int) place {
	before := string(data[:min(max(offset, 0), len(data))])
	start := strings.LastIndexByte(before, '\n') + 1
	return place{1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[start:])}
}

// clip shortens a quote from a file.
func clip(s string) string { return cut(s, maxQuoted) }

func cut(s string, length int) string {
	if utf8.RuneCountInString(s) <= length {
		return s
	}
	return string([]rune(s)[:length]) + "…"
}
