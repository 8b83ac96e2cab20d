package breaker

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// Info returns the rule's data for the rule table.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Mode: r.Mode, Refusal: r.Refusal}
}

// table holds the compiled breaker rules of one revision. It implements engine.Family.
type table struct {
	family.Compiled[Rule, controller]

	listeners *listeners
}

// Listen calls f for every change of a breaker, under this revision of the rules and all later
// ones, until remove is called.
func (t *table) Listen(f func(Change)) (remove func()) { return t.listeners.add(f) }

// Compile adds breaker rules to the next revision of an engine's rules. Unchanged rules keep
// running; a changed rule takes over the state of the rule with the same ID. The listeners are kept
// too.
func Compile(b *engine.SnapshotBuilder, rules []Rule) error {
	e, ls := b.Engine, new(listeners)
	if old, ok := b.Previous(core.KindBreaker).(*table); ok {
		ls = old.listeners
	}
	maker := family.Maker[Rule, controller]{
		Normalized: Rule.Normalized,
		Build: func(r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
			c, terms := newController(e, ls, r, record, at.Resource.Name(), old)
			if old != nil && r.Mode != spec.Off { // a rule that is off keeps its state for later
				at.BeforeUse(func(now int64) { c.machine.adopt(terms, now) })
			}
			return c
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.refusal },
		Idle:    (*controller).idle,
	}
	return family.Compile(b, core.KindBreaker, rules, maker, &table{listeners: ls})
}

// Bind returns the breakers of a resource, or nil.
func (t *table) Bind(at *engine.Binding) engine.Checker {
	controllers := t.Hold(at)
	if len(controllers) == 0 {
		return nil
	}
	return &checker{t.ByMode(controllers)}
}

// each calls f with the breakers of a rule, or of all rules, in the order of the rules and the
// names of the resources.
func (t *table) each(f func(*controller)) {
	index := make(map[string]int)
	for i, r := range t.All() {
		index[r.ID] = i
	}
	var all []*controller
	t.Each(func(c *controller) { all = append(all, c) })
	slices.SortFunc(all, func(a, b *controller) int {
		return cmp.Or(index[a.rule.ID]-index[b.rule.ID], cmp.Compare(a.resource, b.resource))
	})
	for _, c := range all {
		f(c)
	}
}
