package gateway

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/netname"
)

// Table holds the groups and rules of one revision in the form that adapters use. It doesn't
// change, and is safe for concurrent use. A nil Table has no groups and needs no values.
type Table struct {
	names  []string         // of the groups
	exact  map[string][]int // groups, by path
	wild   pattern.Wildcards
	groups [][]int // by their index in wild
	regex  []expression
	values map[string][]Value // by resource
}

// expression is an expression of a group.
type expression struct {
	*pattern.Expression
	group int
}

// Value is a value that calls of a resource must carry.
type Value struct {
	Attachment string // the name under which it is attached; see api.Param
	Param      Param
	Name       string // of the header (lower-case), query parameter or cookie

	match ValueMatch
	value string
	regex *pattern.Expression
}

// NewTable compiles groups and rules, which must be normalized. A rule on a group that doesn't
// exist is an error.
func NewTable(groups []Group, rules []Rule) (*Table, error) {
	t := &Table{exact: make(map[string][]int), values: make(map[string][]Value)}
	size := 0
	for i, g := range groups {
		if size += g.size(); size > pattern.MaxTotal {
			return nil, fmt.Errorf("groups[%d] %q brings the regular expressions to %d steps, the maximum is %d", i, g.ID, size, pattern.MaxTotal)
		}
		t.names = append(t.names, g.ID)
		for _, p := range g.Paths {
			if err := t.add(i, p); err != nil {
				return nil, fmt.Errorf("groups[%d] %q: %w", i, g.ID, err)
			}
		}
	}
	for i, r := range rules {
		if r.Group != "" && !slices.Contains(t.names, r.Group) {
			return nil, fmt.Errorf("gateway[%d].%w", i, spec.BadField("group", "is %q, and there is no such group: add it to groups", r.Group))
		}
		if err := t.addValue(r, &size); err != nil {
			return nil, fmt.Errorf("gateway[%d].%w", i, err)
		}
	}
	return t, nil
}

func (t *Table) add(group int, p Path) error {
	switch p.Match {
	case spec.MatchExact:
		t.exact[p.Path] = append(t.exact[p.Path], group)
	case spec.MatchRegex:
		x, err := pattern.Compile(p.Path, 1, false)
		if err != nil {
			return err
		}
		t.regex = append(t.regex, expression{x, group})
	default:
		n := t.wild.Add(p.Path, p.Match == spec.MatchPath)
		if n == len(t.groups) {
			t.groups = append(t.groups, nil)
		}
		t.groups[n] = append(t.groups[n], group)
	}
	return nil
}

// addValue records the values that calls of the rule's resource must carry for it, each once.
func (t *Table) addValue(r Rule, size *int) error {
	target := r.Target()
	same := func(v Value) bool { return v.Attachment == r.attachment() }
	if r.Param == None || r.Mode == spec.Off || slices.ContainsFunc(t.values[target], same) {
		return nil
	}
	v := Value{Attachment: r.attachment(), Param: r.Param, Name: r.Name, match: r.ValueMatch, value: r.Value}
	if r.Param == Host { // adapters write them in one way
		switch r.ValueMatch {
		case Exact:
			v.value = netname.Host(v.value)
		case Prefix, Contains:
			v.value = strings.ToLower(v.value)
		}
	}
	if r.ValueMatch == Regex {
		more, err := pattern.Size(r.Value)
		if err == nil {
			v.regex, err = pattern.Compile(r.Value, 1, false)
		}
		if err != nil {
			return spec.BadField("value", "%v", err)
		}
		if *size += more; *size > pattern.MaxTotal {
			return spec.BadField("value", "brings the regular expressions to %d steps, the maximum is %d", *size, pattern.MaxTotal)
		}
	}
	t.values[target] = append(t.values[target], v)
	return nil
}

// Groups is like [Table.GroupsOf], but takes the decoded path of a URL.
func (t *Table) Groups(requested string) (names []string) {
	return t.GroupsOf(&url.URL{Path: requested})
}

// GroupsOf returns the groups that the path of a URL belongs to, in the order in which they were
// declared. Routers and servers read a path differently, so it belongs to the groups of every
// reading: decoded as a whole, and decoded part by part, where an encoded slash stays %2F and doesn't
// end a part; unchanged, and cleaned, so that "//" and ".." don't evade a limit. A path of more than
// [pattern.MaxName] bytes belongs to every group that has an expression.
func (t *Table) GroupsOf(u *url.URL) (names []string) {
	if t == nil || len(t.names) == 0 {
		return nil
	}
	var found []int
	var room [5]string
	for _, requested := range readings(u, room[:0]) {
		found = t.belongs(requested, found)
		if bare := strings.TrimSuffix(requested, "/"); bare != requested && bare != "" {
			found = t.belongs(bare, found)
		}
	}
	slices.Sort(found)
	for _, i := range slices.Compact(found) {
		names = append(names, t.names[i])
	}
	return names
}

// belongs appends the groups that a path, taken literally, belongs to.
func (t *Table) belongs(requested string, found []int) []int {
	found = append(found, t.exact[requested]...)
	for _, n := range t.wild.Match(requested) {
		found = append(found, t.groups[n]...)
	}
	for _, x := range t.regex {
		if len(requested) > pattern.MaxName || (pattern.Matched{}).Has(x.Expression, requested) {
			found = append(found, x.group)
		}
	}
	return found
}

// readings appends the ways to read the path of a URL, each once, and each with a leading slash.
func readings(u *url.URL, list []string) []string {
	add := func(p string) {
		if !strings.HasPrefix(p, "/") {
			p = "/" + p
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	add(u.Path)
	add(cleaned(u.Path))
	if u.RawPath == "" { // there is no encoded slash or dot
		return list
	}
	escaped := u.EscapedPath()
	split := unescapedParts(escaped)
	add(split)
	add(cleaned(split))
	add(unescapedParts(cleaned(escaped)))
	return list
}

// cleaned returns a path without empty parts, "." and "..", keeping a final slash.
func cleaned(p string) string {
	clean := path.Clean("/" + p)
	if clean != "/" && strings.HasSuffix(p, "/") {
		clean += "/"
	}
	return clean
}

// unescapedParts decodes the parts of an escaped path: an encoded slash stays encoded.
func unescapedParts(escaped string) string {
	parts := strings.Split(strings.ReplaceAll(escaped, "%2f", "%2F"), "%2F")
	for i, p := range parts {
		if plain, err := url.PathUnescape(p); err == nil {
			parts[i] = plain
		}
	}
	return strings.Join(parts, "%2F")
}

// Values returns the values that calls of a resource must carry. The caller must not change the
// slice.
func (t *Table) Values(resource string) []Value {
	if t == nil {
		return nil
	}
	return t.values[resource]
}

// Takes reports whether a rule limits a value. It never limits an empty value, and compares only
// the beginning of a long one.
func (v *Value) Takes(value string) bool {
	switch {
	case value == "":
		return false
	case v.value == "":
		return true
	}
	switch v.match {
	case Prefix:
		return strings.HasPrefix(value, v.value)
	case Contains:
		return strings.Contains(value, v.value)
	case Regex:
		return len(value) > pattern.MaxName || (pattern.Matched{}).Has(v.regex, value)
	}
	return value == v.value
}

// Compiled returns the flow and hotspot rules that normalized rules become.
func Compiled(rules []Rule) (flows []flow.Rule, hotspots []hotspot.Rule) {
	for _, r := range rules {
		if r.Param == None {
			flows = append(flows, r.Flow())
		} else {
			hotspots = append(hotspots, r.Hotspot())
		}
	}
	return flows, hotspots
}

// Of returns the table of the rules in force in an engine, or nil if they have none.
func Of(e *engine.Engine) *Table {
	t, _ := e.Rules().Attached().(*Table)
	return t
}
