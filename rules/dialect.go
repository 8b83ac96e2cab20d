package rules

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/internal/shown"
)

// Dialect is a way to write rules. The same key means different things in different dialects
// (controlBehavior 1 warms up in one and throttles in another), so a whole file is read as one
// dialect or not at all. The zero value is [Detect].
type Dialect uint8

// The dialects.
const (
	Detect       Dialect = iota // the dialect that the file's keys indicate
	Native                      // Penstock's dialect
	SentinelJava                // the dialect of alibaba/Sentinel for Java: FlowRule, DegradeRule and so on
	SentinelGo                  // the dialect of sentinel-golang
	dialects
)

var dialectNames = shown.NewEnum[Dialect]("dialect", "detect", "native", "sentinel-java", "sentinel-go")

// String returns the name used in rule files.
func (d Dialect) String() string { return dialectNames.Name(d) }

// MarshalText writes the name used in rule files.
func (d Dialect) MarshalText() ([]byte, error) { return dialectNames.Marshal(d) }

// UnmarshalText reads the name used in rule files.
func (d *Dialect) UnmarshalText(text []byte) error { return dialectNames.Parse(text, d) }

const dialectKey = "dialect"

// speakers is a set of dialects.
type speakers uint8

// list returns the dialects, without Detect.
func (s speakers) list() (all []Dialect) {
	for d := Native; d < dialects; d++ {
		if s&(1<<d) != 0 {
			all = append(all, d)
		}
	}
	return all
}

// String names the dialects, as in "native or sentinel-go".
func (s speakers) String() string {
	var names []string
	for _, d := range s.list() {
		names = append(names, d.String())
	}
	return strings.Join(names, " or ")
}

// everyDialect is the set of all dialects.
const everyDialect = speakers(1<<dialects - 1<<Native)

// knownKeys holds the dialects that know a key of a rule; knownLists holds the dialects that know the
// name of a list of rules. A key unknown to all indicates nothing: it is a mistake in any dialect.
var knownKeys, knownLists = known()

func known() (keys, lists map[string]speakers) {
	keys, lists = make(map[string]speakers), make(map[string]speakers)
	add := func(to map[string]speakers, names []string, d Dialect) {
		for _, name := range names {
			to[name] |= 1 << d
		}
	}
	for _, f := range families {
		add(lists, []string{f.key()}, Native)
		add(keys, f.fieldKeys(), Native)
	}
	add(keys, []string{"regex"}, Native) // an alias
	add(keys, []string{typeHint}, SentinelJava)
	for dialect, all := range foreignLists {
		for _, l := range all {
			add(keys, l.keys(), dialect)
			add(lists, l.names(), dialect)
		}
	}
	return keys, lists
}

// sign is a key that indicates dialects.
type sign struct {
	key  string
	at   place
	tell speakers
}

// signs returns the signs among the keys of a file, of its lists and of the rules in them; of
// several that indicate the same, the first.
func signs(root *yaml.Node) (all []sign) {
	note := func(key *yaml.Node, tell speakers) {
		if tell != 0 && !slices.ContainsFunc(all, func(s sign) bool { return s.tell == tell }) {
			all = append(all, sign{key.Value, placeOf(key), tell})
		}
	}
	list := root.Kind == yaml.SequenceNode
	rule := func(n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			tell := knownKeys[key.Value]
			if tell == 0 && list { // elsewhere a capital may be a mistake in a native file
				tell = knownKeys[lowered(key.Value)] & (1 << SentinelGo)
			}
			note(key, tell)
		}
	}
	switch {
	case list:
		for _, item := range root.Content {
			rule(item)
		}
	case isSystemObject(root):
		rule(root)
	case root.Kind == yaml.MappingNode:
		for i := 0; i < len(root.Content); i += 2 {
			key, value := root.Content[i], root.Content[i+1]
			note(key, speakersOfList(key.Value))
			rule(value) // one object instead of a list
			if value.Kind == yaml.SequenceNode {
				for _, item := range value.Content {
					rule(item)
				}
			}
		}
	}
	return all
}

// dialectOf returns the dialect of a file, or Detect after reporting why it can't be determined.
// wanted is the dialect given by the caller.
func (d *decoder) dialectOf(root *yaml.Node, wanted Dialect) Dialect {
	if value := valueOf(root, dialectKey); value != nil {
		var declared Dialect
		switch err := declared.UnmarshalText([]byte(value.Value)); {
		case !isText(value):
			d.add(placeOf(value), dialectKey, "%s", notText(value))
			return Detect
		case err != nil:
			d.add(placeOf(value), dialectKey, "%v", err)
			return Detect
		case wanted != Detect && declared != Detect && wanted != declared:
			d.add(placeOf(value), dialectKey, "is %v, but the file is to be read as %v", declared, wanted)
			return Detect
		case declared != Detect:
			wanted = declared
		}
	}
	if wanted != Detect {
		return wanted
	}
	if isEmptyList(root) {
		return Native // of any: it means the same
	}
	found := signs(root)
	may := everyDialect
	for i, s := range found {
		if may&s.tell != 0 {
			may &= s.tell
			continue
		}
		other := found[0] // if no two of them disagree, only all together
		if j := slices.IndexFunc(found[:i], func(o sign) bool { return o.tell&s.tell == 0 }); j > 0 {
			other = found[j]
		}
		d.add(s.at, "", "%s is a key of %v, and %s at %v one of %v: a file has one dialect: name it at the top, as in `%s: native`; see docs/sentinel.md",
			clip(s.key), s.tell, clip(other.key), other.at, other.tell, dialectKey)
		return Detect
	}
	if root.Kind != yaml.SequenceNode && may&(1<<Native) != 0 {
		return Native
	}
	foreign := may &^ (1 << Native)
	// A list of rules that look native may be meant as a native file, but isn't one.
	evident := slices.ContainsFunc(found, func(s sign) bool { return s.tell&(1<<Native) == 0 })
	if all := foreign.list(); len(all) == 1 && evident || hasEmptyLists(root) {
		return all[0]
	}
	if root.Kind == yaml.SequenceNode {
		d.add(placeOf(root), "", "must be a mapping of rule families, as in `flow: []`, not a list; if it is one of %v, name its dialect and family, as in `{%q: \"sentinel-go\", \"flow\": []}`; see docs/sentinel.md",
			foreign, dialectKey)
		return Detect
	}
	strange := found[slices.IndexFunc(found, func(s sign) bool { return s.tell&(1<<Native) == 0 })]
	d.add(strange.at, clip(strange.key), "unknown field%s; if the file is one of %v, say which, as in `%s: sentinel-go`; see docs/sentinel.md",
		suggestion(strange.key, nativeKeys()), foreign, dialectKey)
	return Detect
}

// nativeKeys returns the keys of the lists of rules.
func nativeKeys() (keys []string) {
	for _, f := range families {
		keys = append(keys, f.key())
	}
	return keys
}

// valueOf returns the value of a key of a mapping, or nil.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		if isText(mapping.Content[i]) && mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// A Warning reports something in a Sentinel rule that can't be expressed here, or that means
// something else here. Name is the name of a row in docs/sentinel.md, as in "never-opens".
type Warning struct {
	Name string
	FileError
}

// String returns file:line:column: path: problem (name).
func (w Warning) String() string { return fmt.Sprintf("%v (%s)", &w.FileError, w.Name) }
