package main

import (
	"slices"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// reshape returns a set in which some rules have changed in any way a rule can change: limit,
// interval, buckets or behavior; and others are switched off or on, put in shadow mode, removed or
// reordered.
func reshape(r *round, set rules.Set) (next rules.Set) {
	next = set
	flowMode := func(rule *flow.Rule) *spec.Mode { return &rule.Mode }
	next.Flow = reshapeFamily(r, set.Flow, flowMode, func(old flow.Rule) flow.Rule {
		return draw(func() flow.Rule {
			rule := drawFlow(r, old.ID)
			rule.Resource, rule.Match, rule.Origin, rule.Relation, rule.Ref = old.Resource, old.Match, old.Origin, old.Relation, old.Ref
			return rule
		}, normalizedFlow)
	})
	hotspotMode := func(rule *hotspot.Rule) *spec.Mode { return &rule.Mode }
	next.Hotspot = reshapeFamily(r, set.Hotspot, hotspotMode, func(old hotspot.Rule) hotspot.Rule {
		rule := drawHotspot(r, old.ID)
		rule.Resource, rule.Match, rule.Index, rule.Param = old.Resource, old.Match, old.Index, old.Param
		return rule
	})
	systemMode := func(rule *system.Rule) *spec.Mode { return &rule.Mode }
	next.System = reshapeFamily(r, set.System, systemMode, func(old system.Rule) system.Rule {
		return drawSystem(r, old.ID)
	})
	isolationMode := func(rule *isolation.Rule) *spec.Mode { return &rule.Mode }
	next.Isolation = reshapeFamily(r, set.Isolation, isolationMode, func(old isolation.Rule) isolation.Rule {
		rule := drawIsolation(r, old.ID)
		rule.Resource, rule.Match = old.Resource, old.Match
		return rule
	})
	return next
}

func reshapeFamily[R spec.Rule](r *round, old []R, mode func(*R) *spec.Mode, change func(R) R) []R {
	next := slices.Clone(old)
	for i, rule := range next {
		switch r.IntN(7) {
		case 0, 1, 2:
			next[i] = change(rule)
		case 3:
			*mode(&next[i]) = drawMode(r)
		}
	}
	switch r.IntN(6) {
	case 0:
		r.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
	case 1:
		if len(next) > 0 {
			i := r.IntN(len(next))
			next = slices.Delete(next, i, i+1)
		}
	}
	return next
}

// withMode returns the rules of a set, all in the given mode and with the prefix before their IDs.
func withMode(r *round, set rules.Set, mode spec.Mode, prefix string) rules.Set {
	for i := range set.Authority {
		set.Authority[i].Mode, set.Authority[i].ID = mode, prefix+set.Authority[i].ID
	}
	for i := range set.System {
		set.System[i].Mode, set.System[i].ID = mode, prefix+set.System[i].ID
	}
	for i := range set.Hotspot {
		set.Hotspot[i].Mode, set.Hotspot[i].ID = mode, prefix+set.Hotspot[i].ID
		if r.one(2) {
			set.Hotspot[i].MaxValues = 1 + r.IntN(6)
		}
	}
	for i := range set.Flow {
		set.Flow[i].Mode, set.Flow[i].ID = mode, prefix+set.Flow[i].ID
	}
	for i := range set.Isolation {
		set.Isolation[i].Mode, set.Isolation[i].ID = mode, prefix+set.Isolation[i].ID
	}
	for i := range set.Adaptive {
		set.Adaptive[i].Mode, set.Adaptive[i].ID = mode, prefix+set.Adaptive[i].ID
	}
	for i := range set.Breaker {
		set.Breaker[i].Mode, set.Breaker[i].ID = mode, prefix+set.Breaker[i].ID
		set.Breaker[i].Ramp = 0 // which admits by chance
	}
	for i := range set.Outlier {
		set.Outlier[i].Mode, set.Outlier[i].ID = mode, prefix+set.Outlier[i].ID
	}
	return set
}
