package main

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// shadowSets holds the rules enforced on two guards, and the shadow rules of one of them.
type shadowSets struct {
	hold, shadow rules.Set
	// quiet are rules that refuse nobody. They alternate between the two: when a rule that was in
	// shadow mode becomes enforced, it continues with its state, and the other guard has one
	// without any.
	quiet, quietShadow rules.Set
	pause              time.Duration // between calls
	loads              int
}

func drawShadowSets(r *round) *shadowSets {
	s := &shadowSets{hold: drawSet(r, 2), shadow: drawSet(r, 3), pause: pick(r, ms, 100*ms, 100*ms, 3000*ms)}
	if r.one(2) { // values beyond the cap, as others are evicted
		s.pause = pick(r, 10*ms, 100*ms, 1000*ms)
		s.hold = rules.Set{Hotspot: []hotspot.Rule{drawHotspot(r, "hotspot")}}
		s.shadow.Hotspot = append(s.shadow.Hotspot, drawHotspot(r, "hotspot"))
		for _, list := range [][]hotspot.Rule{s.hold.Hotspot, s.shadow.Hotspot} {
			for i := range list {
				list[i].Resource, list[i].Match, list[i].Interval = ".*", spec.MatchRegex, s.pause
			}
		}
		s.hold, s.shadow = onlyRead(s.hold), onlyRead(s.shadow)
	}
	s.hold, s.shadow = withMode(r, s.hold, spec.Enforce, ""), withMode(r, s.shadow, spec.Shadow, "shadow ")
	s.quietShadow = withMode(r, drawQuiet(r), spec.Shadow, "quiet ")
	return s
}

// drawQuiet returns rules that refuse nobody, and hold no state beyond the nodes' state.
func drawQuiet(r *round) (set rules.Set) {
	for range r.IntN(4) {
		rule := drawFlow(r, "flow")
		rule.Behavior, rule.Threshold = flow.Reject, 1e6
		rule.ID = "flow " + string(rune('a'+len(set.Flow)))
		rule.Resource, rule.Match = pick(r, resources...), spec.MatchExact // the names that an expression matches are state
		set.Flow = append(set.Flow, rule)
	}
	set = onlyRead(set)
	if r.one(2) {
		rule := drawAuthority(r, "authority")
		rule.List, rule.Origins, rule.AllowAnonymous = authority.Deny, []string{"nobody"}, false
		set.Authority = append(set.Authority, rule)
	}
	if r.one(2) {
		set.Isolation = append(set.Isolation, isolation.Rule{ID: "isolation", Threshold: 1_000_000, Resource: pick(r, resources...)})
	}
	return set
}

// both returns the rules without shadow rules, and all rules.
func (s *shadowSets) both(r *round) [2]rules.Set {
	hold := joined(s.quiet, s.hold)
	return [2]rules.Set{hold, merge(r, hold, joined(s.quietShadow, s.shadow))}
}

// change prepares a load: some rules change, some enforced ones are dropped or moved to shadow
// mode, and the quiet rules are reordered. A rule under which calls wait keeps deciding about
// them, with everything it has learned since: so none is taken out while anybody waits.
//
// It reports whether an enforced expression changes. Resources that were not called since another
// one was loaded, perhaps in shadow mode, remember more precisely than the others when calls
// passed: so all must be called before.
func (s *shadowSets) change(r *round, waited bool) (expression bool) {
	s.loads++
	what := r.IntN(4)
	if what == 0 { // not when others are removed: it might be mistaken for one of them under another name
		rule := drawFlow(r, "flow "+string(rune('A'+s.loads)))
		rule.Mode = spec.Enforce
		s.hold.Flow = append(slices.Clone(s.hold.Flow), rule)
		return rule.Match == spec.MatchRegex
	}
	if r.one(2) {
		s.quiet, s.quietShadow = s.quietShadow, s.quiet
		s.quiet, s.quietShadow = withMode(r, s.quiet, spec.Enforce, ""), withMode(r, s.quietShadow, spec.Shadow, "")
	}
	if what == 1 {
		s.shadow = withMode(r, drawSet(r, 3), spec.Shadow, "shadow "+string(rune('a'+s.loads))+" ")
	}
	for i, old := range s.hold.Flow {
		if r.one(3) {
			rule := draw(func() flow.Rule {
				rule := drawFlow(r, old.ID)
				rule.Resource, rule.Match, rule.Origin, rule.Relation, rule.Ref = old.Resource, old.Match, old.Origin, old.Relation, old.Ref
				rule.Mode = spec.Enforce
				return rule
			}, normalizedFlow)
			s.hold.Flow[i] = rule
			expression = expression || rule.Match == spec.MatchRegex
		}
	}
	if r.one(3) && !waited {
		retire(r, &s.hold.Flow, &s.shadow.Flow, func(rule *flow.Rule) { rule.Mode = spec.Shadow })
		retire(r, &s.hold.Hotspot, &s.shadow.Hotspot, func(rule *hotspot.Rule) { rule.Mode = spec.Shadow })
		retire(r, &s.hold.Isolation, &s.shadow.Isolation, func(rule *isolation.Rule) { rule.Mode = spec.Shadow })
		retire(r, &s.hold.Breaker, &s.shadow.Breaker, func(rule *breaker.Rule) { rule.Mode = spec.Shadow })
		retire(r, &s.hold.Adaptive, &s.shadow.Adaptive, func(rule *adaptive.Rule) { rule.Mode = spec.Shadow })
		retire(r, &s.hold.Outlier, &s.shadow.Outlier, func(rule *outlier.Rule) { rule.Mode = spec.Shadow })
		retire(r, &s.hold.System, &s.shadow.System, func(rule *system.Rule) { rule.Mode = spec.Shadow })
		retire(r, &s.hold.Authority, &s.shadow.Authority, func(rule *authority.Rule) { rule.Mode = spec.Shadow })
	}
	return expression
}

// retire drops one of the enforced rules; usually it is in shadow mode from then on.
func retire[R any](r *round, hold, shadow *[]R, inShadow func(*R)) {
	if len(*hold) == 0 || r.one(2) {
		return
	}
	i := r.IntN(len(*hold))
	rule := (*hold)[i]
	*hold = slices.Delete(slices.Clone(*hold), i, i+1)
	if !r.one(3) {
		inShadow(&rule)
		*shadow = append(*shadow, rule)
	}
}

// drawCaps returns caps that a few names reach.
func drawCaps(r *round) node.Caps {
	return node.Caps{Resources: 1 + r.IntN(6), Contexts: 1 + r.IntN(6), Calls: 1 + r.IntN(6), Origins: 1 + r.IntN(6)}
}

// strange gives some calls names that appear in no rule.
func strange(r *round, c *call) {
	if r.one(2) {
		c.resource = pick(r, "o1", "o2", "s1", "s2", "x")
	}
	if r.one(3) {
		c.context = pick(r, "c1", "c2", "c3", "c4")
	}
	if r.one(3) {
		c.origin = pick(r, "dan", "fay", "gus")
	}
}

// joined returns the rules of a, followed by the rules of b.
func joined(a, b rules.Set) rules.Set {
	return rules.Set{
		Authority: slices.Concat(a.Authority, b.Authority), System: slices.Concat(a.System, b.System),
		Hotspot: slices.Concat(a.Hotspot, b.Hotspot), Flow: slices.Concat(a.Flow, b.Flow),
		Isolation: slices.Concat(a.Isolation, b.Isolation), Adaptive: slices.Concat(a.Adaptive, b.Adaptive),
		Breaker: slices.Concat(a.Breaker, b.Breaker), Outlier: slices.Concat(a.Outlier, b.Outlier),
	}
}

// merge returns the rules of two sets as one, and keeps the order within each set.
func merge(r *round, a, b rules.Set) rules.Set {
	return rules.Set{
		Authority: mixed(r, a.Authority, b.Authority), System: mixed(r, a.System, b.System),
		Hotspot: mixed(r, a.Hotspot, b.Hotspot), Flow: mixed(r, a.Flow, b.Flow),
		Isolation: mixed(r, a.Isolation, b.Isolation), Adaptive: mixed(r, a.Adaptive, b.Adaptive),
		Breaker: mixed(r, a.Breaker, b.Breaker), Outlier: mixed(r, a.Outlier, b.Outlier),
	}
}

func mixed[R any](r *round, a, b []R) (all []R) {
	for len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && r.one(2) {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return all
}
