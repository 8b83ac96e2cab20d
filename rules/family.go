package rules

import (
	"errors"
	"fmt"
	"reflect"

	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/core"
)

// family is what reading, writing and comparing need to know of a rule family.
type family interface {
	key() string                                // its key in the file
	count(s *Set) int                           // how many rules it has in s
	decode(d *decoder, list *yaml.Node, s *Set) // reads its rules into s
	encode(s *Set) (*yaml.Node, error)          // writes those of s
	diff(old, new *Set, c *Change)              // adds to c what differs
}

// rulesOf is the family whose rules are of type R, a struct with yaml keys.
type rulesOf[R core.TableRule[R]] struct {
	name       string
	in         func(*Set) *[]R
	normalized func(R) (R, error)
}

func (f rulesOf[R]) key() string      { return f.name }
func (f rulesOf[R]) count(s *Set) int { return len(*f.in(s)) }

func (f rulesOf[R]) decode(d *decoder, list *yaml.Node, s *Set) {
	switch {
	case isNull(list):
		d.add(placeOf(list), f.name, "has no value: write `%s: []` for no rules", f.name)
		return
	case list.Kind != yaml.SequenceNode:
		d.add(placeOf(list), f.name, "must be a list of rules, not %s", describe(list))
		return
	}
	if d.rules += len(list.Content); d.rules > MaxRules {
		d.add(placeOf(list), f.name, "brings the file to %d rules, the most is %d", d.rules, MaxRules)
		return
	}
	var rules []R // stays nil if there are none, so that no rules have one form
	twins := newTwins[R]()
	fields := fieldsOf(reflect.TypeFor[R]())
	for i, node := range list.Content {
		if d.full() {
			return
		}
		var rule R
		path := fmt.Sprintf("%s[%d]", f.name, i)
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
			d.add(placeOf(node), path+"."+missing, "is required: a rule that forgets it would have the value 0, so write that if it is meant")
			continue
		}
		twins.check(d, twin[R]{path, placeOf(node), rule.Info().ID != "", norm}, values["id"])
		rules = append(rules, rule)
	}
	*f.in(s) = rules
}

// affords reports whether the regular expressions are small enough so far, all
// together. A rule that is refused counts: what costs is looking at it.
func (d *decoder) affords(rule core.RuleInfo, path string, values map[string]*yaml.Node) bool {
	if !rule.Regex || rule.Resource == "" {
		return true
	}
	size, _ := core.PatternSize(rule.Resource)
	if d.patterns += min(size, core.MaxPatternSize); d.patterns <= core.MaxPatternsSize {
		return true
	}
	d.add(placeOf(values["resource"]), path+".resource",
		"brings the regular expressions of the file to %d steps, the most is %d", d.patterns, core.MaxPatternsSize)
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
	bad, ok := errors.AsType[*core.FieldError](err)
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

func (f rulesOf[R]) encode(s *Set) (*yaml.Node, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	fields := fieldsOf(reflect.TypeFor[R]())
	for i, rule := range *f.in(s) {
		node, err := encodeStruct(reflect.ValueOf(rule), fields)
		if err != nil {
			return nil, fmt.Errorf("%s[%d].%w", f.name, i, err)
		}
		list.Content = append(list.Content, node)
	}
	if len(list.Content) == 0 {
		list.Style = yaml.FlowStyle // a block list can't be empty
	}
	return list, nil
}
