package rules

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/penstock-go/penstock/core/spec"
	"gopkg.in/yaml.v3"
)

// Change is the difference between two sets. The zero Change is none.
type Change struct {
	Added   []RuleChange // in the order of the new set
	Changed []RuleChange // in the order of the new set
	Removed []RuleChange // in the order of the old set
}

// RuleChange is one rule that was added, changed or removed.
type RuleChange struct {
	Family string        // its key in the file, as in "flow"
	ID     string        // its own, or derived from its fields
	Fields []FieldChange // the differences of a changed rule, otherwise nil
}

// FieldChange is a field of a changed rule, in the form of a rule file with every default filled
// in.
type FieldChange struct {
	Key      string
	Old, New string
}

// Diff returns the change from old to new. Rules are matched by family and ID; a missing ID is
// derived from the fields. If several rules would get the same ID, all but the first get the suffix
// "#2", "#3" and so on, in the order of the set. Rules are compared with every default filled in. The
// order of rules isn't compared.
//
// Sets that [Parse] wouldn't accept can be compared too; rules with the same ID then count as one.
func Diff(old, new Set) Change {
	var c Change
	for _, f := range families {
		f.diff(&old, &new, &c)
	}
	return c
}

// Empty reports whether nothing differs.
func (c Change) Empty() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) == 0 }

// String returns the numbers of added, changed and removed rules, as in "+2 ~1 -0". Anything other
// than rules isn't counted: if a file's cluster differs, "+2 ~1 -0 and cluster".
func (c Change) String() string {
	differs := ""
	count := func(list []RuleChange) (n int) {
		for _, r := range list {
			if r.Family == clusterKey {
				differs = " and " + clusterKey
			} else {
				n++
			}
		}
		return n
	}
	return fmt.Sprintf("+%d ~%d -%d%s", count(c.Added), count(c.Changed), count(c.Removed), differs)
}

// Lines returns a line for each rule, as in
//
//   - flow new-orders
//     ~ flow orders: threshold 100 -> 200
//   - flow "GET /old"
//
// Anything but a plain word is quoted.
func (c Change) Lines() []string {
	var lines []string
	for _, part := range []struct {
		sign  string
		rules []RuleChange
	}{{"+", c.Added}, {"~", c.Changed}, {"-", c.Removed}} {
		for _, r := range part.rules {
			lines = append(lines, part.sign+" "+r.String())
		}
	}
	return lines
}

const maxColumns = 80 // of a text

// Text returns the change for people to read: the numbers, and the rules as in [Change.Lines].
// No line is wider than 80 columns. If a changed rule would be wider, each field is on its own line,
// and if a field would be wider, so is its new value. Long values begin shortly before they differ:
//
//	+0 ~2 -0
//	~ flow orders: threshold 100 -> 200
//	~ flow "the reports that are made at night":
//	    threshold 5 -> 10
//	    behavior reject -> throttle
func (c Change) Text() string {
	lines := []string{c.String()}
	for i, line := range c.Lines() {
		changed := i - len(c.Added)
		if utf8.RuneCountInString(line) <= maxColumns || changed < 0 || changed >= len(c.Changed) {
			lines = append(lines, line)
			continue
		}
		r := c.Changed[changed]
		lines = append(lines, "~ "+RuleChange{Family: r.Family, ID: r.ID}.String()+":")
		for _, f := range r.Fields {
			line := "    " + f.String()
			if utf8.RuneCountInString(line) > maxColumns {
				old, new := f.texts()
				lines = append(lines, "    "+f.Key+" "+old)
				line = "      -> " + new
			}
			lines = append(lines, line)
		}
	}
	for i, line := range lines {
		if utf8.RuneCountInString(line) > maxColumns {
			lines[i] = cut(line, maxColumns-1)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

const (
	maxLogged  = 10  // rules of a change that the log names
	maxLogText = 400 // characters about one of them
)

// logText returns the lines joined into one, up to the limit for a log line.
func (c Change) logText() string {
	lines := c.Lines()
	more := len(lines) - maxLogged
	lines = lines[:min(len(lines), maxLogged)]
	for i, line := range lines {
		lines[i] = cut(line, maxLogText)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

// String returns the rule and its changes, in one line.
func (r RuleChange) String() string {
	var b strings.Builder
	b.WriteString(r.Family + " " + quoted(r.ID))
	for i, f := range r.Fields {
		b.WriteString([]string{": ", ", "}[min(i, 1)])
		b.WriteString(f.String())
	}
	return b.String()
}

// String returns the field and its values, as in "threshold 100 -> 200". Long values begin shortly
// before they differ.
func (f FieldChange) String() string {
	old, new := f.texts()
	return fmt.Sprintf("%s %s -> %s", f.Key, old, new)
}

// beforeDifference is the maximum number of characters of two long values that are shown before their
// first difference.
const beforeDifference = 30

// texts returns the values as they are shown.
func (f FieldChange) texts() (old, new string) {
	old, new = f.Old, f.New
	if long := func(s string) bool { return utf8.RuneCountInString(strconv.Quote(s)) > maxQuoted }; long(old) || long(new) {
		from := 0
		for from < min(len(old), len(new)) && old[from] == new[from] {
			from++
		}
		for range beforeDifference { // or one less: the first may be in the middle of a character
			_, size := utf8.DecodeLastRuneInString(old[:from])
			from -= size
		}
		if from > 0 {
			old, new = "…"+old[from:], "…"+new[from:]
		}
	}
	return quoted(old), quoted(new)
}

// quoted returns s, shortened and quoted unless it is a plain word.
func quoted(s string) string {
	q := strconv.Quote(clip(s))
	if q == `"`+s+`"` && s != "" && !strings.ContainsAny(s, " ,") {
		return s
	}
	return q
}

func (f rulesOf[R]) diff(old, new *Set, c *Change) {
	before, after := f.identified(*f.in(old)), f.identified(*f.in(new))
	was := byID(before)
	for _, r := range after {
		change := RuleChange{Family: f.key(), ID: r.Info().ID}
		if o, ok := was[change.ID]; !ok {
			c.Added = append(c.Added, change)
		} else if !spec.Equal(o, r) {
			change.Fields = fieldChanges(reflect.ValueOf(o), reflect.ValueOf(r))
			c.Changed = append(c.Changed, change)
		}
	}
	is := byID(after)
	for _, r := range before {
		if _, ok := is[r.Info().ID]; !ok {
			c.Removed = append(c.Removed, RuleChange{Family: f.key(), ID: r.Info().ID})
		}
	}
}

// identified returns the rules normalized and with distinct ids. Rules that can't be normalized are
// returned unfinished.
func (f rulesOf[R]) identified(rules []R) []R {
	norms := make([]R, len(rules))
	for i, r := range rules {
		norms[i], _ = f.normalized(r)
	}
	if unique, err := spec.UniqueIDs(rules, norms); err == nil {
		return unique
	}
	return norms
}

func byID[R spec.Rule](rules []R) map[string]R {
	index := make(map[string]R, len(rules))
	for _, r := range rules {
		index[r.Info().ID] = r
	}
	return index
}

func fieldChanges(old, new reflect.Value) []FieldChange {
	var changes []FieldChange
	for _, f := range fieldsOf(old.Type()) {
		if o, n := written(old.Field(f.index)), written(new.Field(f.index)); o != n {
			changes = append(changes, FieldChange{f.key, o, n})
		}
	}
	return changes
}

// written returns a value in the form of a rule file, even if no file can contain it.
func written(v reflect.Value) string {
	if v.IsZero() && v.Kind() == reflect.Struct {
		return ""
	}
	n, err := writeField(v)
	if err != nil {
		return fmt.Sprint(v.Interface())
	}
	if n.Kind != yaml.ScalarNode {
		if text, err := appendJSON(nil, n); err == nil {
			return string(text)
		}
	}
	return n.Value
}
