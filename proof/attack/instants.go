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
	"github.com/penstock-go/penstock/proof/trial"
	"github.com/penstock-go/penstock/rules"
)

// instants has 64 callers come at one instant, each with some calls, under random rules of
// several families that refuse. Then, in the next instant, some of those that run end, or
// the rules change. At no instant may a rule have let in more than it has, by a log of
// those that were let in; nor may it have refused what it had room for when all had come.
func instants(r *round) error {
	g, clock := r.guard(api.Config{})
	l := &ledger{now: clock.Now(), asked: make(map[string]bool), known: make(map[ruleID]bool)}
	set := instantSet(r)
	load := func(next rules.Set, renamed map[ruleID]ruleID) error {
		if err := g.LoadRules(next); err != nil {
			return err
		}
		set = g.Rules()
		r.step("rules:\n%s", say(set))
		for now, before := range renamed {
			l.known[now] = l.known[before]
		}
		l.load(set, renamed)
		return nil
	}
	if err := load(set, nil); err != nil {
		return err
	}
	var running []*call
	for range 5 + r.IntN(10) {
		calls, err := atOnce(r, g, l)
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
			l.left(c)
		}
		running = slices.Clone(running[len(ends):])
		clock.Advance(r.between(0, pick(r, time.Nanosecond, 10*ms, 300*ms, 3*time.Second)))
		l.now = clock.Now()
		r.step("%v", time.Duration(l.now-start.UnixNano()))
		if r.one(3) {
			if err := load(instantReshape(r, set)); err != nil {
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
	set := withMode(r, drawSet(r, pick(r, 1, 2)), spec.Enforce, "")
	set.Breaker, set.Outlier, set.Adaptive = nil, nil, nil
	for i := range set.Isolation {
		set.Isolation[i].MaxQueue, set.Isolation[i].MaxWait = 0, 0
	}
	set.Flow = slices.DeleteFunc(set.Flow, func(rule flow.Rule) bool {
		return rule.Behavior == flow.Throttle || rule.Behavior == flow.WarmUpThrottle || rule.Relation == flow.Associated
	})
	for i := range set.Flow {
		if set.Flow[i].Relation == flow.Chain { // with an origin it counts what it isn't about
			set.Flow[i].Origin = flow.OriginDefault
		}
	}
	set.Hotspot = slices.DeleteFunc(set.Hotspot, func(rule hotspot.Rule) bool { return rule.Behavior == hotspot.Throttle })
	if r.one(3) { // a rule that is alone refuses nobody for whom there is room
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

func instantReshape(r *round, set rules.Set) (rules.Set, map[ruleID]ruleID) {
	next, renamed := reshape(r, set)
	next = withMode(r, next, spec.Enforce, "")
	for i := range next.Isolation {
		next.Isolation[i].MaxQueue, next.Isolation[i].MaxWait = 0, 0
	}
	for i := range next.Flow {
		if rule := &next.Flow[i]; rule.Behavior == flow.Throttle || rule.Behavior == flow.WarmUpThrottle {
			rule.Behavior = flow.Reject
		}
	}
	for i := range next.Hotspot {
		if rule := &next.Hotspot[i]; rule.Behavior == hotspot.Throttle {
			rule.Behavior = hotspot.Reject
		}
	}
	return onlyRead(next), renamed
}

// atOnce has all callers come, and holds what became of them against the log.
func atOnce(r *round, g *api.Guard, l *ledger) ([]*call, error) {
	calls := make([]*call, callers*pick(r, 1, 1, 4))
	for i := range calls {
		calls[i] = drawCall(r, 4)
		calls[i].prioritized = false
		calls[i].caller = &caller{came: l.now}
		l.asked[calls[i].resource] = true
	}
	r.offered.Add(int64(len(calls)))
	trial.Together(callers, func(k int) {
		for i := k; i < len(calls); i += callers {
			c := calls[i]
			c.entry, c.err = g.Entry(from(r.ctx, c.context, c.origin), c.resource, c.options()...)
			c.returned = true
		}
	})
	for _, c := range calls { // judged when nobody is there that came at this instant
		if c.opinion, _ = l.judge(c); c.err == nil && !c.opinion.passes {
			return nil, fmt.Errorf("%s, although there was no room when it came", c)
		}
	}
	for _, c := range calls {
		if c.err == nil {
			l.took(c)
			l.ran(c)
		}
	}
	for _, c := range calls {
		for _, k := range l.keepers {
			if c.err != nil || !k.concerns(l, c) {
				continue
			}
			r.checked.Add(1)
			if over := k.over(l, c); over != "" {
				return nil, fmt.Errorf("%s, and so %v has let in too much at one instant: %s", c, k.is(), over)
			}
		}
	}
	for _, c := range calls {
		if c.err != nil {
			if err := justified(r, l, calls, c); err != nil {
				return nil, err
			}
		}
	}
	return calls, nil
}

// justified checks that the rule in whose name a call was refused had no room for it, or not
// while others were asking: a call that another rule is about to refuse holds what it took of
// this one until then, however long the machine lets it rest in between.
func justified(r *round, l *ledger, calls []*call, refused *call) error {
	r.checked.Add(1)
	by := blockedBy(refused)
	if by == (ruleID{}) {
		return refused.err
	}
	for _, k := range l.keepers {
		if k.is() != by {
			continue
		}
		probe := *refused
		for _, c := range calls {
			if c.err != nil && blockedBy(c) != by && k.concerns(l, c) {
				probe.units += c.units
			}
		}
		if !k.judge(l, &probe).refuses {
			return fmt.Errorf("%s; with all that others may have held for a moment, %v had room for %d units", refused, by, probe.units)
		}
	}
	return nil
}

// blockedBy is the rule that refused a call.
func blockedBy(c *call) ruleID {
	var block *core.BlockError
	if !errors.As(c.err, &block) {
		return ruleID{}
	}
	return ruleID{block.Kind, block.Rule}
}
