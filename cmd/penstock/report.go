package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/penstock-go/penstock/rules"
)

// fault is a mistake in a file, or a hint for its author.
type fault struct {
	rules.FileError
	severity severity
	code     string // such as "never-opens" or "PN002"; "" for an error
	source   []byte // the file's text, for the excerpt
}

// severity is the severity of a fault. The zero value is an error.
type severity string

const (
	isError   severity = ""
	isWarning severity = "warning"
	isNotice  severity = "notice"
)

func (s severity) String() string { return cmp.Or(string(s), "error") }

var severityColors = map[severity]string{isError: red, isWarning: yellow, isNotice: blue}

// failed reports whether there is an error.
func failed(faults []fault) bool {
	return slices.ContainsFunc(faults, func(f fault) bool { return f.severity == isError })
}

// faultsOf returns the errors about files that err joins. It omits other errors, unless there are no
// errors about files.
func faultsOf(err error) []fault {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []fault
		for _, e := range joined.Unwrap() {
			all = append(all, faultsOf(e)...)
		}
		return all
	}
	if e, ok := errors.AsType[*rules.FileError](err); ok {
		return []fault{{FileError: *e}}
	}
	return nil
}

// report writes faults for people: position and problem, and the line with a caret.
func (c *command) report(w io.Writer, faults []fault) error {
	var b bytes.Buffer
	for _, f := range faults {
		at := f.FileError
		at.Path, at.Problem = "", ""
		place := harmless(strings.TrimSuffix(at.Error(), ": "))
		problem := f.Problem
		if f.Path != "" {
			problem = f.Path + ": " + problem
		}
		if f.code != "" {
			problem += " (" + f.code + ")"
		}
		kind := c.paint(w, severityColors[f.severity], f.severity.String())
		fmt.Fprintf(&b, "%s: %s: %s\n", c.paint(w, bold, place), kind, problem)
		if line, caret, ok := excerpt(f.source, f.Line, f.Column); ok {
			number := strconv.Itoa(f.Line)
			gutter := strings.Repeat(" ", len(number))
			fmt.Fprintf(&b, "  %s %s\n", c.paint(w, blue, number+" |"), line)
			fmt.Fprintf(&b, "  %s %s\n", c.paint(w, blue, gutter+" |"), c.paint(w, green, caret))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// harmless returns a name without control sequences and line breaks.
func harmless(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, name)
}

// The size of an excerpt of a long line, and of the part before the caret.
const (
	excerptWidth  = 68
	excerptBefore = 40
)

// excerpt returns a line of a file, and a line with a caret below its column, both without control
// sequences. It cuts a long line to the part around the column.
func excerpt(source []byte, line, column int) (text, caret string, ok bool) {
	if line < 1 || column < 1 {
		return "", "", false
	}
	lines := bytes.Split(source, []byte("\n"))
	if line > len(lines) {
		return "", "", false
	}
	s := strings.TrimRight(string(lines[line-1]), "\r")
	if line == 1 {
		s = strings.TrimPrefix(s, "\uFEFF")
	}
	if strings.TrimSpace(s) == "" || !utf8.ValidString(s) {
		return "", "", false
	}
	chars := []rune(harmless(strings.ReplaceAll(s, "\t", " "))) // one column each
	at := min(column-1, len(chars))
	before, after := "", ""
	from := 0
	if len(chars) > excerptWidth && at > excerptBefore {
		from, before = at-excerptBefore, "…"
	}
	to := min(len(chars), from+excerptWidth)
	if to < len(chars) {
		after = "…"
	}
	text = strings.TrimRight(before+string(chars[from:to])+after, " ")
	return text, strings.Repeat(" ", utf8.RuneCountInString(before)+at-from) + "^", true
}

// jsonFault is a fault in JSON.
type jsonFault struct {
	Severity string `json:"severity"`
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Field    string `json:"field,omitempty"`
	Code     string `json:"code,omitempty"`
	Problem  string `json:"problem"`
}

func toJSON(faults []fault) []jsonFault {
	all := make([]jsonFault, len(faults))
	for i, f := range faults {
		all[i] = jsonFault{f.severity.String(), f.File, f.Line, f.Column, f.Path, f.code, f.Problem}
	}
	return all
}

// writeJSON writes a value with indentation. Characters that a terminal might obey are escaped.
func writeJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range text.String() {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) { // it is within a string
			fmt.Fprintf(&b, "\\u%04x", unit)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// annotations writes faults in the format that GitHub Actions reads from a log, each at its line.
func annotations(w io.Writer, faults []fault) error {
	var b strings.Builder
	for _, f := range faults {
		properties := []string{"file=" + property(f.File)}
		if f.Line > 0 {
			properties = append(properties, fmt.Sprintf("line=%d,col=%d", f.Line, f.Column))
		}
		title := f.Path
		if f.code != "" {
			title = f.code
		}
		if title != "" {
			properties = append(properties, "title="+property(title))
		}
		text := f.Problem
		if f.Path != "" {
			text = f.Path + ": " + text
		}
		fmt.Fprintf(&b, "::%s %s::%s\n", f.severity, strings.Join(properties, ","), data.Replace(text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// data escapes characters that end a message.
var data = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

// property also escapes characters that end a property.
func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data.Replace(s))
}

// count formats a number with its noun.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
