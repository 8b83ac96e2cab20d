package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/sentinel"
)

// foreignRule is a rule in another library's format; see package sentinel.
type foreignRule[R any] interface {
	Check() error
	Native() ([]R, []sentinel.Warning, error)
}

// foreignList is the part of a kind of list in another dialect that reading needs.
type foreignList interface {
	names() []string     // its possible names (see listName), its own name first
	keys() []string      // of its rules
	telltales() []string // every rule of the list has one of these, and no rule of another list with its keys does
	decode(d *decoder, list *yaml.Node, path string, s *Set)
}

// listName returns the name of a list without the variations in which people write it: flowRules,
// flow-rules and flow_rule are flow. A key that begins with a capital is a mistake in any dialect.
func listName(key string) string {
	if capital(key) {
		return key
	}
	key = strings.ToLower(listDashes.Replace(key))
	return strings.TrimSuffix(strings.TrimSuffix(key, "s"), "rule")
}

var listDashes = strings.NewReplacer("-", "", "_", "")

// speakersOfList returns the dialects that have a list of this name. A native name must match
// exactly.
func speakersOfList(key string) speakers {
	return knownLists[key]&(1<<Native) | knownLists[listName(key)]&^(1<<Native)
}

// rulesFrom is the list whose rules are of type F, and become rules of type R.
type rulesFrom[F foreignRule[R], R spec.Rule] struct {
	called  []string
	telling []string // every rule of it has one of these
	ignored []string // keys that may be present and mean nothing
	unset   F        // the defaults of the dialect
	// fields maps native fields to the dialect's names, if different.
	fields map[string]string
	// instead maps names to alternative names, for files without the first.
	instead map[string]string
	// field is like fields, for names that depend on the rule.
	field func(R, string) string
	// onlyFirst means that the dialect uses only the first rule of a resource, while all apply here.
	onlyFirst bool
	// keyed means that the id is not a number from a dashboard, but the key that other rules refer
	// to.
	keyed bool
}

func (l rulesFrom[F, R]) names() []string { return l.called }

func (l rulesFrom[F, R]) keys() []string { return keysOf(l.structure()) }

func (l rulesFrom[F, R]) telltales() []string { return l.telling }

// structure returns the fields of F, followed by the ignored ones.
func (l rulesFrom[F, R]) structure() []field {
	fields := fieldsOf(reflect.TypeFor[F]())
	for _, key := range l.ignored {
		fields = append(fields, field{key, unread, true})
	}
	return fields
}

// native returns the row of the family that the rules become part of.
func (l rulesFrom[F, R]) native() rulesOf[R] {
	i := slices.IndexFunc(families, func(f family) bool { _, ok := f.(rulesOf[R]); return ok })
	return families[i].(rulesOf[R])
}

func (l rulesFrom[F, R]) decode(d *decoder, list *yaml.Node, path string, s *Set) {
	if !d.isList(list, path) {
		return
	}
	to := l.native()
	var read reading[R]
	fields := l.structure()
	named, limited := make(map[string]bool), make(map[string]bool)
	for i, node := range list.Content {
		if d.full() {
			return
		}
		path := fmt.Sprintf("%s[%d]", path, i)
		natives, values := l.translated(d, node, path, fields)
		if d.rules += max(0, len(natives)-1); !d.hasRoom(node, path) { // the first is counted with the list
			return
		}
		for _, n := range natives {
			info := n.Info()
			if info.Default() {
				d.add(placeOfField(values, "resource", node), path+".resource", "is \"*\", which is a plain name in Sentinel and means every resource here: name the resource")
				continue
			}
			if info.ID != "" && named[info.ID] && !l.keyed {
				d.warn("same-id", placeOfField(values, "id", node), path+".id", "is also the id of another rule; Sentinel ignores it, and this rule is loaded without one")
				n = spec.WithID(n, "")
			}
			named[info.ID] = true
			if l.onlyFirst && limited[info.Resource] {
				d.warn("second-rule", placeOfField(values, "resource", node), path+".resource", "has an earlier rule, the only one that Sentinel applies; here both apply")
			}
			limited[info.Resource] = true
			from := source{node, path, values, "", func(f string) string {
				name := l.fieldOf(n, f)
				if other, ok := l.instead[name]; ok && values[name] == nil && values[other] != nil {
					return other
				}
				return name
			}}
			if !to.accept(d, &read, n, from) {
				return
			}
		}
	}
	*to.in(s) = append(*to.in(s), read.rules...)
}

// translated reads a rule and returns the native rules and the values of the rule by key. After an
// error, which it reports, it returns no rules.
func (l rulesFrom[F, R]) translated(d *decoder, node *yaml.Node, path string, fields []field) (natives []R, values map[string]*yaml.Node) {
	rule := l.unset
	if outer := d.wrapped[node]; outer != nil {
		if node, path = d.merged(outer, node, path, fields); node == nil {
			return nil, nil
		}
	}
	values, ok := d.structure(node, path, reflect.ValueOf(&rule).Elem(), fields)
	if !ok {
		return nil, nil
	}
	if missing := missingKey(fields, values, rule); missing != "" {
		d.addMissing(node, path, missing)
		return nil, nil
	}
	var warnings []sentinel.Warning
	err := rule.Check()
	if err == nil {
		natives, warnings, err = rule.Native()
	}
	if err != nil {
		d.addRuleError(err, path, node, values)
		return nil, nil
	}
	for _, w := range warnings {
		d.warn(w.Name, placeOfField(values, w.Field, node), path+"."+w.Field, "%s", w.Text)
	}
	return natives, values
}

// fieldOf returns the dialect's name of a native field.
func (l rulesFrom[F, R]) fieldOf(rule R, native string) string {
	if l.field != nil {
		if name := l.field(rule, native); name != "" {
			return name
		}
	}
	if name, ok := l.fields[native]; ok {
		return name
	}
	return native
}

func placeOfField(values map[string]*yaml.Node, field string, rule *yaml.Node) place {
	if value, ok := values[field]; ok {
		return placeOf(value)
	}
	return placeOf(rule)
}

// foreign reads a file of another dialect.
func (d *decoder) foreign(root *yaml.Node, dialect Dialect, family string) (set Set) {
	d.speaks = dialect
	lists := foreignLists[dialect]
	switch {
	case isEmptyList(root) && family == "":
	case root.Kind == yaml.SequenceNode:
		if l := d.familyOf(root, lists, family); l != nil {
			l.decode(d, root, "", &set)
		}
	case isSystemObject(root):
		l := named(lists, systemList)
		l.decode(d, listOf(root), systemList, &set)
	case root.Kind != yaml.MappingNode:
		d.add(placeOf(root), "", "must be a list of rules, or an object of such lists, not %s", describe(root))
	default:
		d.namedLists(root, lists, &set)
	}
	return set
}

// namedLists reads an object of lists.
func (d *decoder) namedLists(root *yaml.Node, lists []foreignList, set *Set) {
	there := make(map[string]*yaml.Node) // by the list's own name
	for e := range d.entries(root, "") {
		if e.key.Value == dialectKey || d.isTypeHint(e.key, "") {
			continue
		}
		l := named(lists, e.key.Value)
		if l == nil {
			d.addUnknownFamily(e.key, ownNames(lists))
			continue
		}
		own := l.names()[0]
		if first := there[own]; first != nil {
			d.add(placeOf(e.key), clip(e.key.Value), "appears twice, first as %s at %v: keep one", clip(first.Value), placeOf(first))
			continue
		}
		there[own] = e.key
		list := e.value
		if own == systemList && isSystemObject(list) {
			list = listOf(list)
		}
		l.decode(d, list, clip(e.key.Value), set)
	}
	if len(there) == 0 && d.err() == nil {
		d.add(placeOf(root), "", "%s", noRules)
	}
}

// familyOf returns the family of a list without a name: the family that knows all keys of all rules,
// at least one of them a telltale. If it can't be determined, familyOf reports why and returns nil.
func (d *decoder) familyOf(root *yaml.Node, lists []foreignList, family string) foreignList {
	if family != "" {
		if l := named(lists, family); l != nil {
			return l
		}
		d.add(placeOf(root), "", "is to be read as %q, which is not a family of %v: use %s", clip(family), d.speaks, strings.Join(ownNames(lists), ", "))
		return nil
	}
	keys := d.meaningful(root.Content)
	may := slices.DeleteFunc(slices.Clone(lists), func(l foreignList) bool {
		known := l.keys()
		return slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(known, key) }) ||
			!slices.ContainsFunc(l.telltales(), func(key string) bool { return slices.Contains(keys, key) })
	})
	if len(may) == 1 {
		return may[0]
	}
	since := ""
	if len(may) == 0 {
		var likely foreignList
		if likely, since = d.mostOf(keys, lists); likely != nil {
			return likely
		}
	}
	d.add(placeOf(root), "", "doesn't show the family of its rules%s: set it (--family), or name the list, as in `{%s: %v, %s: []}`, with one of %s",
		since, dialectKey, d.speaks, ownNames(lists)[0], strings.Join(ownNames(lists), ", "))
	return nil
}

// mostOf returns the list that rules with these keys are most likely meant for, even though it doesn't
// know all of them: the list with the most telltales that no other list knows. It sets the messages
// for the other keys. If two lists have equally many, it reports that and returns nil.
func (d *decoder) mostOf(keys []string, lists []foreignList) (likely foreignList, since string) {
	var tells []string
	for _, l := range lists {
		var its []string
		for _, key := range l.telltales() {
			if slices.Contains(keys, key) && len(knowing(lists, key)) == 1 {
				its = append(its, key)
			}
		}
		switch {
		case len(its) > len(tells):
			likely, tells, since = l, its, ""
		case len(its) == len(tells) && likely != nil && since == "":
			since = fmt.Sprintf(", since %s rules have %s, and %s rules %s", likely.names()[0], tells[0], l.names()[0], its[0])
		}
	}
	if likely == nil || since != "" {
		return nil, since
	}
	d.odd = make(map[string]string)
	for _, key := range keys {
		if others := knowing(lists, key); !slices.Contains(likely.keys(), key) {
			d.odd[key] = fmt.Sprintf(": %s rules have it, and these are %s rules, since they have %s", orList(ownNames(others)), likely.names()[0], tells[0])
		}
	}
	return likely, ""
}

// knowing returns the lists whose rules can have a key.
func knowing(lists []foreignList, key string) (all []foreignList) {
	for _, l := range lists {
		if slices.Contains(l.keys(), key) {
			all = append(all, l)
		}
	}
	return all
}

// meaningful returns the keys of rules that mean something in the dialect.
func (d *decoder) meaningful(rules []*yaml.Node) (keys []string) {
	for _, rule := range rules {
		if rule.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i < len(rule.Content); i += 2 {
			key := d.fieldKey(rule.Content[i].Value)
			if key != typeHint && knownKeys[key]&(1<<d.speaks) != 0 && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// named returns the list with that name, or nil.
func named(lists []foreignList, key string) foreignList {
	i := slices.IndexFunc(lists, func(l foreignList) bool { return slices.Contains(l.names(), listName(key)) })
	if i < 0 {
		return nil
	}
	return lists[i]
}

func ownNames(lists []foreignList) (names []string) {
	for _, l := range lists {
		names = append(names, l.names()[0])
	}
	return names
}

// isSystemObject reports whether n is a SystemRule of Java, which a file may have without a list
// around it.
func isSystemObject(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i+1].Kind == yaml.ScalarNode && slices.Contains(systemTelling, n.Content[i].Value) {
			return true
		}
	}
	return false
}

// listOf returns the list that contains only n.
func listOf(n *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: n.Line, Column: n.Column, Content: []*yaml.Node{n}}
}
