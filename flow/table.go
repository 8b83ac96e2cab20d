package flow

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/sampler"
)

// Info returns the rule's data for the rule table.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Together: r.Together, Mode: r.Mode, Refusal: r.Refusal}
}

// table holds the compiled flow rules of one revision. It implements engine.Family.
type table struct {
	family.Compiled[Rule, controller]

	perhaps []engine.Need // needs of rules with an expression, on resources where they will apply
	looking []Rule        // associated rules
}

// Compile adds flow rules to the next revision of an engine's rules. Unchanged rules keep running;
// a changed rule takes over the state of the rule with the same ID.
func Compile(b *engine.SnapshotBuilder, rules []Rule) error {
	e := b.Engine
	t := new(table)
	maker := family.Maker[Rule, controller]{
		Normalized: func(r Rule) (Rule, error) { return r.Normalized(e.Config().ColdFactor) },
		Build: func(r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
			c, s := newController(t, at, r, record, old)
			if s != nil {
				at.BeforeUse(s.complete)
			}
			if c.calendar != nil {
				at.BeforeUse(func(now int64) { c.kept.account.follow(c.calendar, c.entry(now), now) })
			}
			if c.rule.Behavior == TokenBucket || c.rule.Behavior.queues() {
				at.BeforeUse(func(now int64) { c.takeOver(old, now) })
			}
			return c
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.refusal },
		Idle:    (*controller).idle,
	}
	if err := family.Compile(b, core.KindFlow, rules, maker, t); err != nil {
		return err
	}
	var units family.Units
	for i, r := range t.All() {
		if err := units.Add("flow", i, r.Unit); err != nil {
			return err
		}
	}
	t.findNeeds()
	return t.watchMemory(b)
}

// watchMemory makes the sampler read the memory in use for the rules that follow it.
func (t *table) watchMemory(b *engine.SnapshotBuilder) error {
	var wants []sampler.Quantity
	for i, r := range t.All() {
		if err := r.checkMachine(t.Engine.Sampler()); err != nil {
			return fmt.Errorf("flow[%d].%w", i, err)
		}
		if r.watchesMemory() && r.Mode != spec.Off {
			wants = append(wants, r.quantity())
		}
	}
	b.BeforePublishing(func(int64) { t.Engine.Sampler().Serve(core.KindFlow, wants, nil) })
	return nil
}

// Bind returns the rules of a resource, or nil.
func (t *table) Bind(at *engine.Binding) engine.Checker {
	controllers := t.Hold(at)
	if len(controllers) == 0 {
		return nil
	}
	rs := new(checker)
	rs.Rules = t.ByMode(controllers)
	rs.sharing = rs.TakeOut(func(c *controller) bool { return c.rule.leases() })
	for _, c := range rs.sharing {
		rs.shared = append(rs.shared, &sharer{c.enforcer.(*leased), rs})
	}
	for _, c := range controllers {
		if c.notifier != nil {
			rs.Notices = append(rs.Notices, c)
		}
	}
	rs.takers = slices.Clone(rs.Holding)
	slices.SortStableFunc(rs.takers, func(a, b *controller) int {
		return cmp.Or(a.rule.breadth()-b.rule.breadth(), cmp.Compare(a.rule.abundance(), b.rule.abundance()))
	})
	rs.spare()
	rs.costs = newCosts(rs)
	if len(rs.Holding) == 1 {
		if w := rs.Holding[0].window; w != nil && w.plain && w.notifier == nil {
			rs.sole = w
		}
	}
	for mode := range rs.named {
		rs.named[mode] = make(map[string]bool)
		for _, c := range controllers {
			if o := c.rule.Origin; o != OriginDefault && o != OriginOther && !c.rule.Together && c.rule.Mode <= spec.Mode(mode) {
				rs.named[mode][o] = true
			}
		}
	}
	return rs
}

// Names collects the names in the rules.
func (t *table) Names(names *engine.Names) {
	for _, r := range t.All() {
		if r.Mode != spec.Enforce {
			continue
		}
		if r.Info().Named() {
			names.Resource(r.Resource)
			if r.Relation == Direct && r.Origin != OriginDefault && r.Origin != OriginOther {
				names.Origin(r.Resource, r.Origin)
			}
		}
		switch r.Relation {
		case Associated:
			names.Resource(r.Ref)
		case Chain:
			names.Context(r.Ref)
			if r.Info().Named() {
				names.Call(r.Resource, r.Ref)
			}
		}
	}
}

// role returns which of the resource's nodes the rule counts on.
func (r Rule) role() engine.Role {
	switch {
	case r.Together:
		return engine.RoleCluster // of its home
	case r.Relation == Chain:
		return engine.RoleCall
	case r.Relation == Associated || r.Origin == OriginDefault:
		return engine.RoleCluster
	}
	return engine.RoleOrigin
}

// breadth ranks rules by the calls they apply to. Rules that read without taking come first;
// otherwise they would count the call's own units. Narrow rules come next: callers that a narrow
// rule refuses must not hold, even for an instant, units that a broad rule gives to all callers.
func (r Rule) breadth() int {
	switch {
	case r.Relation == Associated:
		return 0
	case r.role() != engine.RoleCluster:
		return 1
	case r.Together:
		return 3
	}
	return 2
}

// abundance estimates how much a rule grants: units per second, or units in flight. Among rules of
// one breadth the scarcest takes first, since it refuses the most calls, and refused calls then hold
// nothing of the others.
func (r Rule) abundance() float64 {
	switch {
	case r.Metric == Concurrency:
		return r.Threshold
	case r.Per != spec.PerNone:
		return r.Threshold / calendar.Shortest(r.Per).Seconds()
	}
	return r.Threshold / r.Interval.Seconds()
}
