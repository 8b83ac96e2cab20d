package rules

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Limits on a rule file.
const (
	MaxFileSize = 1 << 20 // bytes
	MaxRules    = 10_000  // of all families
	MaxDepth    = 16      // mappings and lists within each other

	// This limit keeps a small file from becoming a large tree: a file of MaxRules rules may have
	// five keys in each, a file of fewer rules all keys. Building a tree of that size takes some 30
	// MiB.
	maxItems = 64_000 // lines, commas, brackets and the like; see checkYAML
)

const noRules = "holds no rules: write `flow: []` to remove every rule"

// Parse reads a rule file, YAML or JSON, in any [Dialect]. name identifies it in errors; if name ends
// in .json, the file must hold JSON. See [ParseWith], which returns the warnings too.
//
// Every rule is checked as loading it would. Unknown and repeated keys, wrong types, numbers that
// aren't finite, durations without a unit, repeated rules, aliases, anchors, tags, a second
// document, regular expressions that mean too much work, and anything beyond [MaxFileSize],
// [MaxRules] and [MaxDepth] are errors; so is an empty file. The error joins up to 20 errors of
// type [*FileError]. On error the Set is zero.
//
// The rules are as written: defaults aren't filled in.
func Parse(name string, data []byte) (Set, error) {
	parsed, err := ParseWith(name, data, ParseOptions{})
	return parsed.Set, err
}

// ParseOptions configure the reading of a rule file. The zero value detects the dialect from the
// content.
type ParseOptions struct {
	// Dialect is the dialect of the file. A file whose own `dialect:` is another one is an error.
	Dialect Dialect
	// Family is the kind of rules in the file, for a nameless list of Sentinel rules: flow, degrade
	// and so on, as in [SentinelJava] and [SentinelGo] files with several lists. It is not used if
	// the file has names.
	Family string
	// AllowWritable makes [LoadWith] and [Files] read files that every user of the system can
	// write; see [Loader.AllowWritable].
	AllowWritable bool
}

// Parsed is the content of a rule file.
type Parsed struct {
	Set     Set
	Dialect Dialect // never Detect
	// Warnings report settings of Sentinel rules that have no meaning here, or a different one: up
	// to 20, in the order of the file. A native file has none.
	Warnings []Warning

	file   string
	places places
}

// Place returns the position of a field of the rule at index i of a family, by their keys in native
// files. Its Path uses the file's name of the field, and its Problem is empty. If the file doesn't
// have the field, or field is "", it is the position of the rule. For a rule that isn't in the
// file, only Path is set.
func (p Parsed) Place(family string, i int, field string) FileError {
	all := p.places[family]
	if i < 0 || i >= len(all) {
		return FileError{File: p.file, Path: fmt.Sprintf("%s[%d]", family, i)}
	}
	rule := all[i]
	for _, f := range rule.fields {
		if f.key == field {
			return FileError{p.file, f.at.line, f.at.column, printable(rule.path + "." + f.called), ""}
		}
	}
	return FileError{p.file, rule.at.line, rule.at.column, printable(rule.path), ""}
}

// Warn logs the first ten warnings, a line each, and the number of further ones.
func (p Parsed) Warn(log *slog.Logger) {
	for _, w := range p.Warnings[:min(len(p.Warnings), maxLogged)] {
		log.Warn("penstock: a Sentinel rule has a setting without effect here", "at", cut(w.String(), maxLogText))
	}
	if more := len(p.Warnings) - maxLogged; more > 0 {
		log.Warn("penstock: more Sentinel rules have settings without effect here; penstock check lists all", "warnings", more)
	}
}

// ParseWith is like [Parse], but takes options. A file of Sentinel rules is translated: Sentinel's
// defaults are written out in our fields. A setting that can't be expressed here is an error or a
// warning, unless Sentinel doesn't read it there either. On error, Parsed is zero.
//
// Without [ParseOptions].Dialect, and without a key `dialect` at the top of the file, its other
// keys determine the dialect. A file with keys of different dialects is refused, and so is a file that
// fits both Sentinel dialects. A nameless list is never native.
func ParseWith(name string, data []byte, opts ParseOptions) (Parsed, error) {
	p, _, err := parse(name, data, opts)
	return p, err
}

// places holds the positions of the rules of a file: by family, in their order.
type places map[string][]located

// parse is ParseWith, and also returns the positions of the rules.
func parse(name string, data []byte, opts ParseOptions) (Parsed, places, error) {
	d := &decoder{faults: &faults{file: name}, places: make(places)}
	root := d.tree(data)
	if root == nil {
		return Parsed{}, nil, d.err()
	}
	d.checkTree(root, 1)
	if d.err() != nil || d.isOtherFile(root) {
		return Parsed{}, nil, d.err() // further errors would only follow from it
	}
	d.unwrap(root)
	if opts.Dialect >= dialects {
		return Parsed{}, nil, fmt.Errorf("unknown %v", opts.Dialect)
	}
	p := Parsed{Dialect: d.dialectOf(root, opts.Dialect)}
	switch p.Dialect {
	case Detect: // which is reported
	case Native:
		p.Set = d.set(root)
	default:
		p.Set = d.foreign(root, p.Dialect, opts.Family)
	}
	if err := d.err(); err != nil {
		return Parsed{}, nil, err
	}
	p.file, p.places = name, d.places
	p.Warnings = d.warnings
	slices.SortStableFunc(p.Warnings[:min(len(p.Warnings), maxFaults)], func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return p, d.places, nil
}

// tree returns the root node of data, or nil after reporting an error.
func (d *decoder) tree(data []byte) *yaml.Node {
	if len(data) > MaxFileSize {
		d.add(place{}, "", "has %d bytes, the maximum is %d", len(data), MaxFileSize)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // some editors write one
	if len(bytes.TrimSpace(data)) == 0 {
		d.add(place{1, 1}, "", "%s", noRules)
		return nil
	}
	if !d.checkText(data) {
		return nil
	}
	var root *yaml.Node
	switch {
	case strings.EqualFold(filepath.Ext(d.file), ".json") || looksLikeJSON(data):
		root = d.readJSON(data)
	case !d.hasJSONComment(data):
		root = d.readYAML(data)
	}
	if root != nil && isNull(root) {
		d.add(placeOf(root), "", "%s", noRules)
		return nil
	}
	return root
}
