package rules

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/spec"
	"gopkg.in/yaml.v3"
)

// decoder turns a tree of nodes into rules and collects the errors.
type decoder struct {
	*faults
	speaks   Dialect // the dialect of the file
	rules    int     // read or about to be, of all families
	patterns int     // steps of their regular expressions so far
	places   places  // of the rules that are accepted
	warnings []Warning

	wrapped map[*yaml.Node]*yaml.Node // rules inside an object of a dashboard; see unwrap
	odd     map[string]string         // the message for keys that belong to another family; see familyOf
	typed   bool                      // the warning about a serializer's types was given
}

// warn adds a warning about something in a rule of another dialect that can't be expressed here.
// Beyond this many, one error says that there are more.
func (d *decoder) warn(name string, at place, path, format string, args ...any) {
	fault := faults{file: d.file}
	switch fault.add(at, path, format, args...); len(d.warnings) {
	case maxFaults + 1:
		return
	case maxFaults:
		fault.list[0] = &FileError{File: d.file, Problem: fmt.Sprintf("there are more: these are the first %d warnings", maxFaults)}
		name = "more"
	}
	d.warnings = append(d.warnings, Warning{name, *fault.list[0]})
}

// set reads the native dialect.
func (d *decoder) set(root *yaml.Node) Set {
	var set Set
	known := make(map[string]family)
	for _, f := range families {
		known[f.key()] = f
	}
	if isEmptyList(root) {
		return set
	}
	if root.Kind != yaml.MappingNode {
		d.add(placeOf(root), "", "must be a mapping of rule families, as in `flow: []`, not %s", describe(root))
		return set
	}
	if len(root.Content) == 0 || len(root.Content) == 2 && valueOf(root, dialectKey) != nil {
		d.add(placeOf(root), "", "%s", noRules)
	}
	for e := range d.entries(root, "") {
		if f, ok := known[e.key.Value]; ok {
			f.decode(d, e.value, &set)
		} else if e.key.Value != dialectKey {
			d.addUnknownFamily(e.key, nativeKeys())
		}
	}
	return set
}

func (d *decoder) addUnknown(key *yaml.Node, path string, names []string) {
	d.add(placeOf(key), path, "unknown field%s", cmp.Or(d.odd[key.Value], suggestion(key.Value, names)))
}

func (d *decoder) addUnknownFamily(key *yaml.Node, names []string) {
	d.add(placeOf(key), clip(key.Value), "unknown family%s: use %s", suggestion(key.Value, names), orList(names))
}

// orList joins names, as in "a, b or c".
func orList(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// field is a field of a rule.
type field struct {
	key       string
	index     int
	omitEmpty bool
}

// twoNames is the message about a field that is set twice, by its names. Only sentinel-golang's
// fields have two, apart from match.
var twoNames = map[bool]string{false: "as match and by its alias regex: keep one", true: "with a small and with a capital letter: keep one"}

// unread is the index of a field that may be present and means nothing.
const unread = -1

// fieldsOf returns the fields of a rule type in order, named by yaml tags.
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, t.NumField())
	for i := range fields {
		key, options, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		fields[i] = field{key, i, options == "omitempty"}
	}
	return fields
}

// mappings are examples of how a structure is written.
var mappings = exampleOf{reflect.TypeFor[cluster.Rule](): "{scope: global}", reflect.TypeFor[Cluster](): "{redis: redis://cache.internal:6379/0}"}

type exampleOf map[reflect.Type]string

func (e exampleOf) of(t reflect.Type) string {
	if keys := keysOf(fieldsOf(t)); !slices.Contains(keys, "resource") {
		return cmp.Or(e[t], "{"+keys[0]+": ...}") // part of a rule
	}
	return cmp.Or(e[t], "{resource: GET /orders, threshold: 100}")
}

// structure reads a mapping into a struct and returns the nodes of the values by key. ok is false
// if it reported an error.
func (d *decoder) structure(n *yaml.Node, path string, into reflect.Value, fields []field) (values map[string]*yaml.Node, ok bool) {
	if n.Kind != yaml.MappingNode {
		d.add(placeOf(n), path, "must be a mapping, as in `%s`, not %s", mappings.of(into.Type()), describe(n))
		return nil, false
	}
	before := len(d.list)
	values = make(map[string]*yaml.Node)
	for e := range d.entries(n, path) {
		if e.key.Value == "regex" && slices.Contains(keysOf(fields), "match") {
			if e = d.regexAlias(e, path); e.key == nil {
				continue
			}
		}
		key := d.fieldKey(e.key.Value)
		if d.isTypeHint(e.key, path) {
			continue
		}
		if _, twice := values[key]; twice {
			d.add(placeOf(e.key), path+"."+e.key.Value, "is set twice, %s", twoNames[d.speaks == SentinelGo])
			continue
		}
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if i < 0 {
			d.addUnknown(e.key, path+"."+clip(key), keysOf(fields))
			continue
		}
		if fields[i].index == unread || d.speaks > Native && isNull(e.value) { // null means absent to Sentinel
			continue
		}
		values[key] = e.value
		if f := into.Field(fields[i].index); holdsStructs(f.Type()) {
			d.structures(e.value, path+"."+key, f)
		} else if f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct {
			f.Set(reflect.New(f.Type().Elem()))
			d.structure(e.value, path+"."+key, f.Elem(), fieldsOf(f.Type().Elem()))
		} else if isStructure(f.Type()) {
			if b, ok := f.Addr().Interface().(interface{ Begin() }); ok {
				b.Begin()
			}
			d.structure(e.value, path+"."+key, f, fieldsOf(f.Type()))
		} else if problem := readValue(e.value, f); problem != "" {
			d.add(placeOf(e.value), path+"."+key, "%s", problem)
		}
	}
	return values, len(d.list) == before
}

// fieldKey returns the key of a field as the struct has it: sentinel-golang also reads its own
// field names, which begin with a capital.
func (d *decoder) fieldKey(key string) string {
	if d.speaks == SentinelGo {
		return lowered(key)
	}
	return key
}

// lowered returns the key with a lower-case first letter.
func lowered(key string) string {
	switch {
	case key == "ID":
		return "id"
	case !capital(key):
		return key
	}
	return strings.ToLower(key[:1]) + key[1:]
}

// capital reports whether a key begins with a capital.
func capital(key string) bool { return key != "" && 'A' <= key[0] && key[0] <= 'Z' }

// regexAlias reads `regex: true`, from files older than match, as `match: regex`. It returns no key
// if it has reported an error.
func (d *decoder) regexAlias(e entry, path string) entry {
	var regex bool
	if problem := readValue(e.value, reflect.ValueOf(&regex).Elem()); problem != "" {
		d.add(placeOf(e.value), path+".regex", "%s", problem)
		return entry{}
	}
	match := spec.MatchExact
	if regex {
		match = spec.MatchRegex
	}
	key, value := *e.key, *e.value
	key.Value = "match"
	value.Tag, value.Value = "!!str", match.String()
	return entry{&key, &value}
}

// isStructure reports whether a field is a mapping.
func isStructure(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() > 0 && t.Field(0).Tag.Get("yaml") != ""
}

// holdsStructs reports whether a field is a list of mappings.
func holdsStructs(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && isStructure(t.Elem())
}

// structures reads a list of mappings into a slice of structs.
func (d *decoder) structures(n *yaml.Node, path string, into reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.add(placeOf(n), path, "must be a list, not %s", describe(n))
		return
	}
	if len(n.Content) > MaxRules { // no rule has more, and reading them takes memory
		d.add(placeOf(n), path, "has %d items, the maximum is %d", len(n.Content), MaxRules)
		return
	}
	fields := fieldsOf(into.Type().Elem())
	for i, item := range n.Content {
		if d.full() {
			return
		}
		element, path := reflect.New(into.Type().Elem()).Elem(), fmt.Sprintf("%s[%d]", path, i)
		values, ok := d.structure(item, path, element, fields)
		if !ok {
			continue
		}
		if missing := missingKey(fields, values, element.Interface()); missing != "" {
			d.add(placeOf(item), path+"."+missing, "is required")
			continue
		}
		into.Set(reflect.Append(into, element))
	}
}

func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

// entry is one key of a mapping and its value.
type entry struct{ key, value *yaml.Node }

// entries yields the entries of the mapping n, except those it reports: keys that aren't text,
// and repeated keys. It ends when enough is reported, so that a mapping of many wrong keys costs no
// more than a mapping of a few.
func (d *decoder) entries(n *yaml.Node, path string) iter.Seq[entry] {
	if path != "" {
		path += "."
	}
	return func(yield func(entry) bool) {
		seen := make(map[string]place)
		for i := 0; i < len(n.Content) && !d.full(); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if !isText(key) {
				d.add(placeOf(key), strings.TrimSuffix(path, "."), "a key must be a string, not %s", describe(key))
				continue
			}
			if first, twice := seen[key.Value]; twice {
				d.add(placeOf(key), path+clip(key.Value), "is set twice, first at %v", first)
				continue
			}
			seen[key.Value] = placeOf(key)
			if !yield(entry{key, value}) {
				return
			}
		}
	}
}
