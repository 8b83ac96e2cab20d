package rules

import (
	"fmt"

	"github.com/penstock-go/penstock/core/spec"
	"gopkg.in/yaml.v3"
)

// twins finds the rules of a list that are equal, or that say an id which
// another has. Rules whose ids are made from their fields may share one: they
// differ in the threshold, say, and are told apart by number.
type twins[R spec.Rule[R]] struct {
	byID      map[string]twin[R] // the first rule with an id
	byContent map[string]twin[R] // the first rule with a content, of those whose ids met
}

type twin[R spec.Rule[R]] struct {
	path     string
	at       place
	explicit bool // it says its id
	norm     R    // normalized
}

func newTwins[R spec.Rule[R]]() twins[R] {
	return twins[R]{map[string]twin[R]{}, map[string]twin[R]{}}
}

// check reports rule r if an earlier one is its twin. id is the node in which
// r says its id, or nil.
func (t twins[R]) check(d *decoder, r twin[R], id *yaml.Node) {
	name := r.norm.Info().ID
	first, met := t.byID[name]
	if !met {
		t.byID[name] = r
		return
	}
	// Only rules with one id can be equal, so contents are made here and not
	// for every rule.
	remember(t.byContent, content(first.norm), first)
	equal, isEqual := t.byContent[content(r.norm)]
	remember(t.byContent, content(r.norm), r)
	switch {
	case isEqual:
		d.add(r.at, r.path, "is the same rule as %s at %v: remove one", equal.path, equal.at)
	case r.explicit && first.explicit:
		d.add(placeOf(id), r.path+".id", "%q is already the id of %s at %v", clip(name), first.path, first.at)
	}
}

func remember[R spec.Rule[R]](m map[string]twin[R], key string, r twin[R]) {
	if _, known := m[key]; !known {
		m[key] = r
	}
}

// content is all that a rule says, with its texts quoted: [a b] is not ["a b"].
func content(rule any) string { return fmt.Sprintf("%#v", rule) }
