package isolation

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
)

// Info returns the rule's data for the rule table.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Together: r.Together, Mode: r.Mode, Refusal: r.Refusal}
}

// table holds the compiled isolation rules of one revision. It implements engine.Family.
type table struct {
	family.Compiled[Rule, controller]
}

// Compile adds isolation rules to the next revision of an engine's rules. Calls in flight or in a
// queue stay there when the rules change: a higher limit lets the first in the queue run
// immediately, and if no rule is left, all of them run.
func Compile(b *engine.SnapshotBuilder, rules []Rule) error {
	t := new(table)
	maker := family.Maker[Rule, controller]{
		Normalized: Rule.Normalized,
		Build: func(r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
			return newController(t, r, record, at.Resource, old)
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.refusal },
	}
	maker.AtHome = func(at *engine.Binding, c *controller) {
		if c != nil && (c.rule.Mode != spec.Enforce || c.owner != sharedSemaphore || c.lease != nil) {
			c = nil // it leaves no call in the queue
		}
		t.limitQueue(at, c)
	}
	if err := family.Compile(b, core.KindIsolation, rules, maker, t); err != nil {
		return err
	}
	var units family.Units
	for i, r := range t.All() {
		if err := units.Add("isolation", i, r.Unit); err != nil {
			return err
		}
	}
	return nil
}

// Bind returns the rules of a resource, or nil. Once the rules that apply are known, it applies the
// current limit to the queue. New calls do so too (see [meter.Claim]), but there may be none.
func (t *table) Bind(at *engine.Binding) engine.Checker {
	rs := &checker{revision: t.Revision, controllers: t.Hold(at)}
	for _, c := range rs.controllers {
		switch {
		case c.rule.Mode == spec.Shadow:
			rs.shadows = append(rs.shadows, c)
		case c.lease != nil:
			rs.shared = append(rs.shared, c)
		case c.owner != sharedSemaphore || c.rule.Together:
			rs.private = append(rs.private, c)
		case rs.tightest == nil || c.rule.tighter(rs.tightest.rule) < 0:
			rs.tightest = c
		}
	}
	if at.Settled() {
		t.limitQueue(at, rs.tightest)
	}
	if len(rs.controllers) == 0 {
		return nil
	}
	rs.costs = newCosts(rs)
	if fair := newFair(rs); fair != nil {
		return fair
	}
	return rs
}

// limitQueue applies the limit of a rule to the queue there; without one, all calls run.
func (t *table) limitQueue(at *engine.Binding, c *controller) {
	g := at.Resource.Meters().Semaphore(sharedSemaphore)
	if g == nil {
		return
	}
	limit := int64(meter.Open)
	if c != nil {
		limit = int64(c.rule.Threshold)
	}
	sharing := c.sharing()
	at.BeforeUse(func(int64) { g.SetSharing(t.Revision, limit, sharing) })
}

// Needs reports the semaphores that the rules at a resource count with. A rule's own semaphore is
// kept while the rule is off, since nothing else knows which of its calls are in flight; so is the
// one at its home.
func (t *table) Needs(held any, known uint64, need func(engine.Need)) {
	semaphore := func(owner any) engine.Need {
		return engine.Need{Role: engine.RoleCluster, Semaphore: true, Meter: meter.Meter{Owner: owner}}
	}
	h, _ := held.(*family.Kept[Rule, controller])
	for c := range h.All() {
		if c.lease == nil && (c.rule.Mode != spec.Off || c.owner != sharedSemaphore || c.rule.Together) {
			need(semaphore(c.owner))
		}
	}
	if t.Pending(known) {
		need(semaphore(sharedSemaphore))
	}
}
