package main

import (
	"slices"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// flowKeeper returns the keeper of a flow rule, which is one of all.
func flowKeeper(rule flow.Rule, all []flow.Rule) keeper {
	is := keeperOf{ruleID: ruleID{core.KindFlow, rule.ID}, about: about(rule.Resource, rule.Match)}
	named := func(c *call) bool {
		return c.origin != flow.OriginDefault && c.origin != flow.OriginOther && slices.ContainsFunc(all, func(other flow.Rule) bool {
			return other.Mode == spec.Enforce && other.Origin == c.origin && about(other.Resource, other.Match)(c.resource)
		})
	}
	selects := func(c *call) bool {
		switch rule.Origin {
		case flow.OriginDefault:
			return true
		case flow.OriginOther:
			return c.origin != "" && !named(c)
		}
		return c.origin == rule.Origin
	}
	role := func(c *call) (place, bool) {
		switch {
		case rule.Relation == flow.Associated:
			return place{resource: rule.Ref}, c.resource == rule.Ref
		case !is.about(c.resource):
			return place{}, false
		case rule.Relation == flow.Chain:
			return place{resource: c.resource, context: rule.Ref}, c.context == rule.Ref
		case rule.Origin == flow.OriginDefault:
			return place{resource: c.resource}, true
		}
		return place{resource: c.resource, origin: c.origin}, c.origin != ""
	}
	where := func(l *ledger, c *call) (place, bool) {
		switch {
		case !is.about(c.resource) || !selects(c):
			return place{}, false
		case rule.Relation == flow.Associated:
			return place{resource: rule.Ref}, l.asked[rule.Ref] || rule.Threshold == 0
		}
		return role(c)
	}
	floor := rule.Threshold
	if rule.Behavior == flow.WarmUp || rule.Behavior == flow.WarmUpThrottle {
		floor = max(rule.Threshold/float64(rule.ColdFactor), min(rule.Threshold, 1))
	}
	lim := limit{
		keeperOf: is, where: where, role: role, low: int64(floor), high: int64(rule.Threshold), looks: rule.Relation == flow.Associated,
		varies: rule.Relation == flow.Chain || rule.Origin == flow.OriginOther || rule.Relation == flow.Associated && rule.Match == spec.MatchRegex,
		same:   [...]any{rule.Resource, rule.Match, rule.Metric, rule.Origin, rule.Relation, rule.Ref},
	}
	together := func(l *ledger, c *call) (place, bool) { // one queue, or bucket, for all whom the rule is about
		_, ok := where(l, c)
		return place{resource: c.resource}, ok
	}
	switch {
	case rule.Behavior == flow.TokenBucket:
		lim.where = together
		return &tokenKeeper{limit: lim, cost: float64(rule.Interval) / rule.Threshold, size: int64(rule.Burst) + 1}
	case rule.Behavior == flow.Throttle || rule.Behavior == flow.WarmUpThrottle:
		slow := rule.Threshold / float64(rule.ColdFactor)
		if rule.Behavior == flow.Throttle {
			slow = rule.Threshold
		}
		lim.where = together
		return &turnKeeper{limit: lim, low: float64(rule.Interval) / rule.Threshold, high: float64(rule.Interval) / slow, maxWait: rule.MaxWait}
	case rule.Metric == flow.Concurrency:
		return &semaphoreKeeper{limit: lim, holds: true}
	}
	return &windowKeeper{limit: lim, shape: shape{rule.Interval, rule.Buckets, rule.Window == flow.Strict}, borrows: rule.Behavior == flow.Reject}
}

// systemKeeper returns the keeper of a system rule.
func systemKeeper(rule system.Rule) keeper {
	lim := limit{
		keeperOf: keeperOf{ruleID: ruleID{core.KindSystem, rule.ID}, about: about(".*", spec.MatchRegex)},
		where:    func(_ *ledger, c *call) (place, bool) { return inboundRoot, c.inbound },
		role:     func(c *call) (place, bool) { return inboundRoot, c.inbound },
		low:      int64(rule.Threshold), high: int64(rule.Threshold), same: rule.Metric,
	}
	switch rule.Metric {
	case system.QPS:
		return &windowKeeper{limit: lim, shape: shape{rule.Interval, rule.Buckets, rule.Strict}}
	case system.Concurrency:
		return &semaphoreKeeper{limit: lim, holds: true}
	}
	return &looseKeeper{keeperOf: lim.keeperOf, inbound: true, says: either}
}

// isolationKeeper returns the keeper of an isolation rule, which is one of all.
func isolationKeeper(rule isolation.Rule, all []isolation.Rule) keeper {
	here := about(rule.Resource, rule.Match)
	at := func(c *call) (place, bool) { return place{resource: c.resource}, here(c.resource) }
	decides := func(c *call) bool {
		return !slices.ContainsFunc(all, func(other isolation.Rule) bool {
			return other.Mode == spec.Enforce && about(other.Resource, other.Match)(c.resource) && tighter(other, rule)
		})
	}
	return &queueKeeper{semaphoreKeeper{limit: limit{
		keeperOf: keeperOf{ruleID: ruleID{core.KindIsolation, rule.ID}, about: here},
		where:    func(_ *ledger, c *call) (place, bool) { return at(c) }, role: at,
		low: int64(rule.Threshold), high: int64(rule.Threshold), same: [...]any{rule.Resource, rule.Match},
	}, line: rule.MaxWait}, decides, rule.MaxQueue}
}

func tighter(a, b isolation.Rule) bool {
	if a.Threshold != b.Threshold {
		return a.Threshold < b.Threshold
	}
	if a.MaxQueue != b.MaxQueue {
		return a.MaxQueue < b.MaxQueue
	}
	return a.MaxWait < b.MaxWait
}

// adaptiveKeeper returns the keeper of an adaptive rule: what it learns is between floor
// and ceiling.
func adaptiveKeeper(rule adaptive.Rule) keeper {
	here := about(rule.Resource, rule.Match)
	at := func(c *call) (place, bool) { return place{resource: c.resource}, here(c.resource) }
	return &semaphoreKeeper{limit: limit{
		keeperOf: keeperOf{ruleID: ruleID{core.KindAdaptive, rule.ID}, about: here},
		where:    func(_ *ledger, c *call) (place, bool) { return at(c) },
		role:     at, low: int64(rule.Floor), high: int64(rule.Ceiling),
		same: [...]any{rule.Resource, rule.Match},
	}, runners: true}
}

// keepersOf returns a keeper for each rule that is enforced, in the order in which they
// are asked.
func keepersOf(set rules.Set) (keepers []keeper) {
	add := func(mode spec.Mode, k keeper) {
		if mode == spec.Enforce {
			keepers = append(keepers, k)
		}
	}
	for _, rule := range set.Authority {
		add(rule.Mode, &listKeeper{keeperOf{ruleID{core.KindAuthority, rule.ID}, about(rule.Resource, rule.Match)}, rule})
	}
	for _, rule := range set.System {
		add(rule.Mode, systemKeeper(rule))
	}
	for _, rule := range set.Hotspot {
		add(rule.Mode, &valueKeeper{keeperOf: keeperOf{ruleID{core.KindHotspot, rule.ID}, about(rule.Resource, rule.Match)}, rule: rule})
	}
	for _, rule := range set.Flow {
		add(rule.Mode, flowKeeper(rule, set.Flow))
	}
	for _, rule := range set.Isolation {
		add(rule.Mode, isolationKeeper(rule, set.Isolation))
	}
	for _, rule := range set.Adaptive {
		add(rule.Mode, adaptiveKeeper(rule))
	}
	for _, rule := range set.Breaker {
		// No call fails here, but some are slow.
		if rule.Strategy == breaker.SlowRatio {
			here := about(rule.Resource, rule.Match)
			if rule.Resource == spec.AnyResource {
				here = about(".*", spec.MatchRegex)
			}
			add(rule.Mode, &looseKeeper{keeperOf: keeperOf{ruleID{core.KindBreaker, rule.ID}, here}, says: either})
		}
	}
	return keepers
}

// idsOf are the rules of a set that remember something.
func idsOf(set rules.Set) (ids []ruleID) {
	for _, rule := range set.Hotspot {
		ids = append(ids, ruleID{core.KindHotspot, rule.ID})
	}
	for _, rule := range set.Flow {
		ids = append(ids, ruleID{core.KindFlow, rule.ID})
	}
	return ids
}

// queuesInShadow reports whether a rule in shadow mode has calls queue.
func queuesInShadow(set rules.Set) bool {
	return slices.ContainsFunc(set.Flow, func(r flow.Rule) bool {
		return r.Mode == spec.Shadow && (r.Behavior == flow.Throttle || r.Behavior == flow.WarmUpThrottle)
	}) || slices.ContainsFunc(set.Hotspot, func(r hotspot.Rule) bool {
		return r.Mode == spec.Shadow && r.Behavior == hotspot.Throttle
	})
}
