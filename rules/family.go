package rules

import (
	"errors"
	"fmt"
	"reflect"

	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
)

// family is what reading, writing and comparing need to know of a rule family.
type family interface {
	key() string                                     // its key in the file
	count(s *Set) int                                // how many rules it has in s
	own(s *Set)                                      // puts copies in the place of those of s
	decode(d *decoder, list *yaml.Node, s *Set)      // reads its rules into s
	encode(s *Set, first, n int) (*yaml.Node, error) // writes up to n of those of s, from first on
	diff(old, new *Set, c *Change)                   // adds to c what differs
	warn(s *Set, to []string) []string               // appends what it warns of, see [Set.Warnings]

	// compile makes those of s part of the next revision, and returns them in the place of
	// those of s, with their defaults written out.
	compile(b *core.RulesetBuilder, s *Set) error
}

// rulesOf is the family whose rules are of type R, a struct with yaml keys.
type rulesOf[R spec.Rule[R]] struct {
	kind       core.Kind
	in         func(*Set) *[]R
	normalized func(R) (R, error)
	build      func(*core.RulesetBuilder, []R) error
	zero       func(R) bool // the threshold is 0; nil if that is nothing special
	then       string       // what such a rule does
}

func (f rulesOf[R]) key() string      { return f.kind.String() }
func (f rulesOf[R]) count(s *Set) int { return len(*f.in(s)) }
func (f rulesOf[R]) own(s *Set)       { *f.in(s) = spec.Clone(*f.in(s)) }

// located is a rule in a file.
type located struct {
	path string
	at   place
}

func (f rulesOf[R]) decode(d *decoder, list *yaml.Node, s *Set) {
	switch {
	case isNull(list):
		d.add(placeOf(list), f.key(), "has no value: write `%s: []` for no rules", f.key())
		return
	case list.Kind != yaml.SequenceNode:
		d.add(placeOf(list), f.key(), "must be a list of rules, not %s", describe(list))
		return
	}
	if d.rules += len(list.Content); d.rules > MaxRules {
		d.add(placeOf(list), f.key(), "brings the file to %d rules, the most is %d", d.rules, MaxRules)
		return
	}
	var rules []R // stays nil if there are none, so that no rules have one form
	var twins spec.Twins[R]
	var accepted []located // as in twins
	fields := fieldsOf(reflect.TypeFor[R]())
	for i, node := range list.Content {
		if d.full() {
			return
		}
		var rule R
		path := fmt.Sprintf("%s[%d]", f.key(), i)
		values, ok := d.structure(node, path, reflect.ValueOf(&rule).Elem(), fields)
		if !ok {
			continue
		}
		if !d.affords(rule.Info(), path, values) {
			return
		}
		norm, err := f.normalized(rule)
		if err != nil {
			d.addRuleError(err, path, node, values)
			continue
		}
		if missing := missingKey(fields, values, rule); missing != "" {
			d.add(placeOf(node), path+"."+missing, "is required: write 0 if you mean 0")
			continue
		}
		switch j, same := twins.Add(norm, rule.Info().ID != ""); {
		case same:
			d.add(placeOf(node), path, "is the same rule as %s at %v: remove one", accepted[j].path, accepted[j].at)
		case j >= 0:
			d.add(placeOf(values["id"]), path+".id", "%q is already the id of %s at %v", clip(rule.Info().ID), accepted[j].path, accepted[j].at)
		}
		accepted = append(accepted, located{path, placeOf(node)})
		rules = append(rules, rule)
	}
	*f.in(s) = rules
}

// affords reports whether the regular expressions are small enough so far, all
// together. A rule that is refused counts: what costs is looking at it.
func (d *decoder) affords(rule spec.Info, path string, values map[string]*yaml.Node) bool {
	if rule.Match != spec.MatchRegex || rule.Resource == "" {
		return true
	}
	size, _ := pattern.Size(rule.Resource)
	if d.patterns += min(size, pattern.MaxSize); d.patterns <= pattern.MaxTotal {
		return true
	}
	d.add(placeOf(values["resource"]), path+".resource",
		"brings the regular expressions of the file to %d steps, the most is %d", d.patterns, pattern.MaxTotal)
	return false
}

// missingKey returns a key that a rule must have and doesn't, or "". Fields that
// may be left out are marked so, or the rule says so; the zero value of the others
// says something.
func missingKey(fields []field, values map[string]*yaml.Node, rule any) string {
	lenient, _ := rule.(interface{ MayLack(key string) bool })
	for _, f := range fields {
		if _, present := values[f.key]; !present && !f.omitEmpty && (lenient == nil || !lenient.MayLack(f.key)) {
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
	if value, present := values[bad.Field]; present {
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
	if len(list.Content) == 0 {
		list.Style = yaml.FlowStyle // a block list can't be empty
	}
	return list, nil
}

func (f rulesOf[R]) compile(b *core.RulesetBuilder, s *Set) error {
	if err := f.build(b, *f.in(s)); err != nil {
		return err
	}
	*f.in(s) = b.Compiled(f.kind).(interface{ Rules() []R }).Rules()
	return nil
}
