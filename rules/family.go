package rules

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// family is the part of a rule family needed for reading, writing and comparing.
type family interface {
	key() string                                     // its key in the file
	fieldKeys() []string                             // the keys of its rules
	count(s *Set) int                                // the number of its rules in s
	bare(s *Set) bool                                // a file has its rules as a mapping, not in a list
	shared(s *Set) bool                              // whether a cluster shares limits of its rules in s
	own(s *Set)                                      // replaces its rules in s with copies
	decode(d *decoder, list *yaml.Node, s *Set)      // reads its rules into s
	encode(s *Set, first, n int) (*yaml.Node, error) // writes up to n of its rules in s, starting at first
	diff(old, new *Set, c *Change)                   // adds the differences to c
	warn(s *Set, to []string) []string               // appends its warnings; see [Set.Warnings]
	name(s, named *Set) error                        // its rules with their IDs written out; see content
	combine(c *combination)                          // its part of combining

	// compile adds its rules in s to the next revision, and replaces them with the compiled ones,
	// with defaults filled in.
	compile(b *engine.SnapshotBuilder, s *Set) error
}

// rulesOf is the family whose rules are of type R, a struct with yaml keys.
type rulesOf[R spec.Rule] struct {
	kind       core.Kind
	list       string // the key, if the rules don't belong to a family
	single     bool   // there is at most one, outside a list in the file
	in         func(*Set) *[]R
	normalized func(R) (R, error)
	build      func(*engine.SnapshotBuilder, []R) error
	zero       func(R) bool      // whether the threshold is 0, or nil if 0 is not special
	then       string            // what such a rule does
	odd        map[string]string // the message for keys that only other families have
}

func (f rulesOf[R]) key() string         { return cmp.Or(f.list, f.kind.String()) }
func (f rulesOf[R]) String() string      { return f.key() }
func (f rulesOf[R]) fieldKeys() []string { return keysOf(fieldsOf(reflect.TypeFor[R]())) }
func (f rulesOf[R]) count(s *Set) int    { return len(*f.in(s)) }
func (f rulesOf[R]) bare(s *Set) bool    { return f.single && f.count(s) == 1 }
func (f rulesOf[R]) shared(s *Set) bool {
	return slices.ContainsFunc(*f.in(s), func(rule R) bool {
		r, ok := any(rule).(interface{ Shared() bool })
		return ok && r.Shared()
	})
}
func (f rulesOf[R]) own(s *Set) { *f.in(s) = spec.Clone(*f.in(s)) }

// located is a rule in a file.
type located struct {
	path   string
	at     place
	fields []locatedField // the fields in the file
}

// locatedField is a value in a file, by the key that the native dialect has for its field.
type locatedField struct {
	key    string
	called string // its key in the file
	at     place
}

func (f rulesOf[R]) decode(d *decoder, list *yaml.Node, s *Set) {
	if f.single && list.Kind == yaml.MappingNode {
		list = listOf(list)
	}
	if !d.isList(list, f.key()) {
		return
	}
	var read reading[R]
	d.odd = f.odd
	fields := fieldsOf(reflect.TypeFor[R]())
	for i, node := range list.Content {
		if d.full() {
			return
		}
		var rule R
		path := fmt.Sprintf("%s[%d]", f.key(), i)
		if f.single && len(list.Content) == 1 {
			path = f.key()
		}
		if outer := d.wrapped[node]; outer != nil {
			d.add(placeOf(keyOf(outer, wrapperKey)), path+"."+wrapperKey, "unknown field: only files from Sentinel's dashboard have rules in it; replace it with its keys")
			continue
		}
		values, ok := d.structure(node, path, reflect.ValueOf(&rule).Elem(), fields)
		if !ok {
			continue
		}
		missing := missingKey(fields, values, rule)
		if !f.accept(d, &read, rule, source{node, path, values, missing, nil}) {
			return
		}
	}
	*f.in(s) = read.rules
}

// isList reports whether n is a list of rules that the file has room for.
func (d *decoder) isList(n *yaml.Node, path string) bool {
	switch {
	case isNull(n):
		d.add(placeOf(n), path, "has no value: write `%s: []` for no rules", clip(path))
	case looksLikeRule(n):
		d.add(placeOf(n), path, "%s", oneRule)
	case n.Kind != yaml.SequenceNode:
		d.add(placeOf(n), path, "must be a list of rules, not %s", describe(n))
	default:
		d.rules += len(n.Content)
		return d.hasRoom(n, path)
	}
	return false
}

// hasRoom reports whether the file is within the rule limit, counting n as the latest rule.
func (d *decoder) hasRoom(n *yaml.Node, path string) bool {
	if d.rules > MaxRules {
		d.add(placeOf(n), path, "brings the file to %d rules, the maximum is %d", d.rules, MaxRules)
		return false
	}
	return true
}

// reading holds the rules of one family while they are read.
type reading[R spec.Rule] struct {
	rules    []R // stays nil if there are none, so that there is one form for no rules
	twins    spec.Twins[R]
	accepted []located // parallel to rules
	keys     []string  // of the fields, set on first use
}

func (r *reading[R]) keysOf(f rulesOf[R]) []string {
	if r.keys == nil {
		r.keys = f.fieldKeys()
	}
	return r.keys
}

// source is the origin of a rule in a file.
type source struct {
	node    *yaml.Node
	path    string
	values  map[string]*yaml.Node     // by key
	missing string                    // a required key that is missing, or ""
	called  func(field string) string // the file's name of a field, or nil if it is the same as ours
}

// fields returns the positions of the values of the keys in the file.
func (s source) fields(keys []string) (all []locatedField) {
	all = make([]locatedField, 0, len(s.values))
	for _, key := range keys {
		called := key
		if s.called != nil {
			called = s.called(key)
		}
		if value := s.values[called]; value != nil {
			all = append(all, locatedField{key, called, placeOf(value)})
		}
	}
	return all
}

// accept adds a rule to the rules read so far, or reports why it can't. It returns false if further
// reading is useless.
func (f rulesOf[R]) accept(d *decoder, read *reading[R], rule R, from source) bool {
	if !d.affords(rule.Info(), from.path, from.values) {
		return false
	}
	norm, err := f.normalized(rule)
	if err != nil {
		if bad, ok := errors.AsType[*spec.FieldError](err); ok && from.called != nil {
			err = &spec.FieldError{Field: from.called(bad.Field), Problem: bad.Problem}
		}
		d.addRuleError(err, from.path, from.node, from.values)
		return true
	}
	if from.missing != "" {
		d.addMissing(from.node, from.path, from.missing)
		return true
	}
	switch j, same := read.twins.Add(norm, rule.Info().ID != ""); {
	case same:
		d.add(placeOf(from.node), from.path, "is the same rule as %s at %v: remove one", read.accepted[j].path, read.accepted[j].at)
	case j >= 0:
		id := "id"
		if from.called != nil {
			id = from.called(id)
		}
		d.add(placeOfField(from.values, id, from.node), from.path+"."+id, "%q is already the id of %s at %v", clip(rule.Info().ID), read.accepted[j].path, read.accepted[j].at)
	}
	at := located{from.path, placeOf(from.node), from.fields(read.keysOf(f))}
	read.accepted = append(read.accepted, at)
	d.places[f.key()] = append(d.places[f.key()], at)
	read.rules = append(read.rules, rule)
	return true
}

func (d *decoder) addMissing(rule *yaml.Node, path, key string) {
	d.add(placeOf(rule), path+"."+key, "is required: write 0 if you mean 0")
}

// affords reports whether all regular expressions so far are small enough together. A refused rule
// counts too, since parsing it has a cost.
func (d *decoder) affords(rule spec.Info, path string, values map[string]*yaml.Node) bool {
	if rule.Match != spec.MatchRegex || rule.Resource == "" {
		return true
	}
	size, _ := pattern.Size(rule.Resource)
	if d.patterns += min(size, pattern.MaxSize); d.patterns <= pattern.MaxTotal {
		return true
	}
	d.add(placeOf(values["resource"]), path+".resource",
		"brings the regular expressions of the file to %d steps, the maximum is %d", d.patterns, pattern.MaxTotal)
	return false
}

// missingKey returns a required key that a rule doesn't have, or "". A tag, or the rule itself, marks
// optional fields; the zero value of other fields is meaningful.
func missingKey(fields []field, values map[string]*yaml.Node, rule any) string {
	lenient, _ := rule.(interface{ MayOmit(key string) bool })
	for _, f := range fields {
		if _, present := values[f.key]; !present && !f.omitEmpty && (lenient == nil || !lenient.MayOmit(f.key)) {
			return f.key
		}
	}
	return ""
}

// addRuleError reports why a family refuses a rule, at the field concerned.
func (d *decoder) addRuleError(err error, path string, rule *yaml.Node, values map[string]*yaml.Node) {
	bad, ok := errors.AsType[*spec.FieldError](err)
	if !ok {
		d.add(placeOf(rule), path, "%v", err)
		return
	}
	at := rule
	key, _, _ := strings.Cut(bad.Field, ".") // of a field of a field
	if value, present := values[key]; present {
		at = value
	}
	d.add(placeOf(at), path+"."+bad.Field, "%s", bad.Problem)
}

func (f rulesOf[R]) encode(s *Set, first, n int) (*yaml.Node, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	fields := fieldsOf(reflect.TypeFor[R]())
	all := *f.in(s)
	for i := first; i < min(first+n, len(all)); i++ {
		node, err := encodeStruct(reflect.ValueOf(all[i]), fields)
		if err != nil {
			return nil, fmt.Errorf("%s[%d].%w", f.key(), i, err)
		}
		list.Content = append(list.Content, node)
	}
	if f.bare(s) {
		return list.Content[0], nil
	}
	if len(list.Content) == 0 {
		list.Style = yaml.FlowStyle // a block list can't be empty
	}
	return list, nil
}

func (f rulesOf[R]) compile(b *engine.SnapshotBuilder, s *Set) (err error) {
	if f.build == nil {
		*f.in(s), err = spec.Normalize(f, spec.Clone(*f.in(s)), f.normalized)
		return err
	}
	if err := f.build(b, *f.in(s)); err != nil {
		return err
	}
	*f.in(s) = b.Compiled(f.kind).(interface{ Rules() []R }).Rules()
	return nil
}
