package outlier

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/node"
)

// Info returns the rule's data for the rule table.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Mode: r.Mode}
}

// table holds the compiled outlier rules of one revision. It implements engine.Family.
type table struct {
	family.Compiled[Rule, controller]
}

// Compile adds outlier rules to the next revision of an engine's rules. Unchanged rules keep
// running; a changed rule takes over the endpoints of the rule with the same ID.
func Compile(b *engine.SnapshotBuilder, rules []Rule) error {
	maker := family.Maker[Rule, controller]{
		Normalized: Rule.Normalized,
		Build: func(r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
			return newController(b.Engine, r, record, at, old)
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.refusal },
		Idle:    (*controller).idle,
	}
	return family.Compile(b, core.KindOutlier, rules, maker, new(table))
}

// Bind returns the rules of a resource, or nil.
func (t *table) Bind(at *engine.Binding) engine.Checker {
	before := at.Held
	controllers := t.Hold(at)
	if s, ok := at.Common.(*site); ok && at.Held != before {
		h, _ := at.Held.(*family.Kept[Rule, controller])
		at.BeforeUse(func(now int64) { s.publish(h.All(), now) })
	}
	if len(controllers) == 0 {
		return nil
	}
	return &checker{t.ByMode(controllers)}
}

// siteOf returns the state that the rules of a resource share.
func siteOf(at *engine.Binding) *site {
	s, _ := at.Common.(*site)
	if s == nil {
		s = new(site)
		at.Common = s
	}
	return s
}

// Ejected lists the endpoints of a resource to which calls are refused now, sorted. Beyond the cap
// on resources, all names share their endpoints.
func (t *table) Ejected(resource string, now int64) []string {
	r, ok := t.Engine.FindResource(resource)
	if !ok {
		r, _ = t.Engine.FindResource(node.OverflowName)
	}
	s, _ := t.HeldBy(r).Common().(*site)
	if s == nil || s.ejected.Load() == 0 || !ok && len(t.For(resource)) == 0 {
		return nil
	}
	return s.refusing(now)
}
