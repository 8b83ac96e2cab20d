package breaker

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// Info returns what the rule table needs to know.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Mode: r.Mode}
}

// Table is the compiled breaker rules of one revision. It implements engine.Family.
type Table struct {
	family.Compiled[Rule, controller]

	listeners *Listeners
}

// Listeners returns those that are told of every change of a breaker, under this revision of the
// rules and all later ones.
func (t *Table) Listeners() *Listeners { return t.listeners }

// Compile makes breaker rules part of the next revision of an engine's rules. Rules that did not
// change keep running as they are; a changed rule takes over the state of the rule with the same
// ID. The [Table.Listeners] are kept too.
func Compile(b *engine.RulesetBuilder, rules []Rule) error {
	e, listeners := b.Engine, new(Listeners)
	if old, ok := b.Previous(core.KindBreaker).(*Table); ok {
		listeners = old.listeners
	}
	maker := family.Maker[Rule, controller]{
		Normalized: Rule.Normalized,
		Build: func(r Rule, record *engine.Record, at *engine.Site, old *controller) *controller {
			c, terms := newController(e, listeners, r, record, at.Resource.Name(), old)
			if old != nil && r.Mode != spec.Off { // a rule that is off keeps what it has for later
				at.BeforeUse(func(now int64) { c.machine.adopt(terms, now) })
			}
			return c
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.refusal },
		Idle:    (*controller).idle,
	}
	return family.Compile(b, core.KindBreaker, rules, maker, &Table{listeners: listeners})
}

// Bind returns the breakers of a resource or nil.
func (t *Table) Bind(at *engine.Site) engine.Checker {
	controllers := t.Hold(at)
	if len(controllers) == 0 {
		return nil
	}
	return &Rules{t.ByMode(controllers)}
}

// each calls f with the breakers of a rule, or of all rules, in the order of the rules
// and the names of the resources.
func (t *Table) each(f func(*controller)) {
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
