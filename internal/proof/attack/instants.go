package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/model"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/rules"
)

// instants sends 64 callers at one instant, each with some calls, under random rules of several
// families that refuse. In the next instant, some of the running calls end, or the rules change.
// Calls admitted at an instant must be admitted by the model too, one after the other, so no rule
// has exceeded its limit. Nor may a rule have refused calls that it had room for after all of them
// had been decided.
func instants(r *round) error {
	g, clock := r.guard(api.Config{})
	m := model.New(model.Config{Now: clock.Now(), Direct: true})
	load := func(next rules.Set) error {
		if err := g.LoadRules(next); err != nil {
			return err
		}
		r.step("rules:\n%s", say(g.Rules()))
		m.Load(g.Rules())
		return nil
	}
	if err := load(instantSet(r)); err != nil {
		return err
	}
	var running []*call
	for range 5 + r.IntN(10) {
		calls, err := atOnce(r, g, m)
		if err != nil {
			return err
		}
		for _, c := range calls {
			if c.err == nil {
				running = append(running, c)
			}
		}
		r.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
		ends := running[:r.IntN(len(running)+1)]
		trial.Together(callers, func(k int) {
			for i := k; i < len(ends); i += callers {
				ends[i].entry.Exit()
			}
		})
		for _, c := range ends {
			m.Exit(c.model, false)
		}
		running = slices.Clone(running[len(ends):])
		clock.Advance(r.between(0, pick(r, time.Nanosecond, 10*ms, 300*ms, 3*time.Second)))
		m.Advance(clock.Now())
		r.step("%v", time.Duration(clock.Now()-start.UnixNano()))
		if r.one(3) {
			if err := load(instantRules(r, reshape(r, g.Rules()))); err != nil {
				return err
			}
		}
	}
	for _, c := range running {
		c.entry.Exit()
	}
	return nil
}

const callers = 64

// instantSet returns rules under which no call waits.
func instantSet(r *round) rules.Set {
	set := instantRules(r, drawSet(r, pick(r, 1, 2)))
	if r.one(3) { // a rule that is alone refuses no call that it has room for
		switch {
		case len(set.Flow) > 0:
			set = rules.Set{Flow: set.Flow[:1]}
		case len(set.Hotspot) > 0:
			set = rules.Set{Hotspot: set.Hotspot[:1]}
		case len(set.System) > 0:
			set = rules.Set{System: set.System[:1]}
		}
	}
	return set
}

// instantRules returns the enforced rules of a set that make no call wait and that the model covers
// completely, regardless of the order of the calls.
func instantRules(r *round, set rules.Set) rules.Set {
	set = withMode(r, set, spec.Enforce, "")
	set.Breaker, set.Outlier, set.Adaptive = nil, nil, nil
	for i := range set.Isolation {
		set.Isolation[i].MaxQueue, set.Isolation[i].MaxWait = 0, 0
		name(r, &set.Isolation[i].Resource, &set.Isolation[i].Match)
	}
	set.Flow = slices.DeleteFunc(set.Flow, func(rule flow.Rule) bool { return rule.Relation == flow.Associated })
	for i := range set.Flow {
		rule := &set.Flow[i]
		name(r, &rule.Resource, &rule.Match)
		if rule.Relation == flow.Chain { // with an origin it counts unrelated calls
			rule.Origin = flow.OriginDefault
		}
		if rule.Behavior == flow.Throttle || rule.Behavior == flow.WarmUpThrottle || rule.Behavior == flow.WarmUp && rule.Origin == flow.OriginOther {
			rule.Behavior = flow.Reject
		}
	}
	for i := range set.Hotspot {
		rule := &set.Hotspot[i]
		rule.MaxValues = 0
		name(r, &rule.Resource, &rule.Match)
		if rule.Behavior == hotspot.Throttle {
			rule.Behavior = hotspot.Reject
		}
	}
	return onlyRead(set)
}

// name makes a rule apply to one resource.
func name(r *round, resource *string, match *spec.Match) {
	if *match != spec.MatchExact {
		*resource, *match = pick(r, resources...), spec.MatchExact
	}
}

// atOnce sends all callers, and compares the outcomes with the model.
func atOnce(r *round, g *api.Guard, m *model.Model) ([]*call, error) {
	calls := make([]*call, callers*pick(r, 1, 1, 4))
	for i := range calls {
		c := drawCall(r, 4)
		c.prioritized = false
		c.caller = new(caller)
		c.model = c.asModel()
		calls[i] = c
	}
	r.offered.Add(int64(len(calls)))
	trial.Together(callers, func(k int) {
		for i := k; i < len(calls); i += callers {
			c := calls[i]
			c.entry, c.err = g.Entry(from(r.ctx, c.context, c.origin), c.resource, c.options()...)
			c.returned = true
		}
	})
	for _, c := range calls {
		if c.err != nil {
			continue
		}
		r.checked.Add(1)
		if m.Enter(c.model); c.model.State != model.Running {
			return nil, fmt.Errorf("%s; admitted at this instant, but refused by the model's %v %q", c, c.model.By.Kind, c.model.By.ID)
		}
	}
	for _, c := range calls {
		if c.err == nil {
			continue
		}
		block, ok := errors.AsType[*core.BlockError](c.err)
		if !ok {
			return nil, c.err
		}
		r.checked.Add(1)
		// A call that another rule is about to refuse holds the units of this one until then,
		// however long the machine suspends it in between.
		probe := c.asModel()
		for _, other := range calls {
			if b, refused := errors.AsType[*core.BlockError](other.err); refused && (b.Kind != block.Kind || b.Rule != block.Rule) {
				probe.Units += other.units
			}
		}
		if m.Ask(probe) == nil {
			return nil, fmt.Errorf("%s; there was room for %d units on top of everything that others may have held for a moment", c, probe.Units)
		}
		m.Refused(c.model, block.Kind, block.Rule)
	}
	return calls, nil
}
