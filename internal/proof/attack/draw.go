package main

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// The names of random rules and calls. They are few, so that rules and calls interact.
var (
	resources = []string{"orders", "users", "search"}
	patterns  = []string{".*", "o.*|users", "[su].*"}
	contexts  = []string{"", "web", "cron"}
	origins   = []string{"", "ann", "bob", "eve", flow.OriginDefault, flow.OriginOther}
	params    = []string{"user", "item"}
)

// draw generates random rules until one is valid, and clears the fields that the rule doesn't use.
func draw[R any](make func() R, normalized func(R) (R, error)) R {
	for {
		if rule, err := normalized(trial.OnlyRead(make(), normalized)); err == nil {
			return rule
		}
	}
}

// onlyRead takes a set that was changed field by field. It returns the set without fields that its
// rules no longer read, and with defaults filled in for the others.
func onlyRead(set rules.Set) rules.Set {
	fit(set.Flow, normalizedFlow)
	fit(set.Hotspot, hotspot.Rule.Normalized)
	fit(set.System, system.Rule.Normalized)
	return set
}

func fit[R any](list []R, normalized func(R) (R, error)) {
	for i, rule := range list {
		list[i] = draw(func() R { return rule }, normalized)
	}
}

func normalizedFlow(rule flow.Rule) (flow.Rule, error) { return rule.Normalized(3) }

// drawSet returns rules of all families, at most most of each. Every rule has a unique ID that
// names its family.
func drawSet(r *round, most int) (set rules.Set) {
	for i := range r.IntN(most + 1) {
		set.Authority = append(set.Authority, drawAuthority(r, fmt.Sprintf("authority %d", i)))
	}
	for i := range r.IntN(most + 1) {
		set.System = append(set.System, drawSystem(r, fmt.Sprintf("system %d", i)))
	}
	for i := range r.IntN(most + 1) {
		set.Hotspot = append(set.Hotspot, drawHotspot(r, fmt.Sprintf("hotspot %d", i)))
	}
	for i := range r.IntN(2*most + 1) {
		set.Flow = append(set.Flow, drawFlow(r, fmt.Sprintf("flow %d", i)))
	}
	for i := range r.IntN(most + 1) {
		set.Isolation = append(set.Isolation, drawIsolation(r, fmt.Sprintf("isolation %d", i)))
	}
	for i := range r.IntN(most + 1) {
		set.Adaptive = append(set.Adaptive, drawAdaptive(r, fmt.Sprintf("adaptive %d", i)))
	}
	for i := range r.IntN(most + 1) {
		set.Breaker = append(set.Breaker, drawBreaker(r, fmt.Sprintf("breaker %d", i)))
	}
	for i := range r.IntN(most + 1) {
		set.Outlier = append(set.Outlier, drawOutlier(r, fmt.Sprintf("outlier %d", i)))
	}
	return set
}

// drawName returns a resource, or an expression that matches some.
func drawName(r *round) (name string, match spec.Match) {
	if r.one(5) {
		return pick(r, patterns...), spec.MatchRegex
	}
	return pick(r, resources...), spec.MatchExact
}

func drawMode(r *round) spec.Mode {
	return pick(r, spec.Enforce, spec.Enforce, spec.Enforce, spec.Enforce, spec.Shadow, spec.Off)
}

// drawThreshold returns a threshold that a few dozen calls usually reach.
func drawThreshold(r *round) float64 {
	return pick(r, 0, 0.5, 1, 1, 1.5, 2, 2, 3, 3, 4, 5, 7, 10, 20, 50, 1000)
}

func drawInterval(r *round) time.Duration {
	return pick(r, 10*ms, 100*ms, 500*ms, time.Second, time.Second, time.Second, 2*time.Second, 5*time.Second,
		time.Minute, time.Hour)
}

func drawFlow(r *round, id string) flow.Rule {
	return draw(func() flow.Rule {
		rule := flow.Rule{
			ID: id, Threshold: drawThreshold(r), Interval: drawInterval(r),
			Buckets:  pick(r, 0, 0, 1, 2, 4, 5, 10, 20),
			Metric:   pick(r, flow.QPS, flow.QPS, flow.QPS, flow.Concurrency),
			Origin:   pick(r, "", "", "", "ann", "bob", flow.OriginOther, flow.OriginDefault),
			Relation: pick(r, flow.Direct, flow.Direct, flow.Direct, flow.Direct, flow.Associated, flow.Chain),
			Behavior: pick(r, flow.Reject, flow.Reject, flow.Reject, flow.Throttle, flow.WarmUp, flow.WarmUpThrottle, flow.TokenBucket),
			MaxWait:  pick(r, 0, time.Nanosecond, 50*ms, time.Second, time.Hour),
			Burst:    pick(r, 0, 1, 3, 10),
			Window:   pick(r, flow.Strict, flow.Ring),
			Mode:     drawMode(r),
		}
		rule.Resource, rule.Match = drawName(r)
		switch rule.Relation {
		case flow.Associated:
			rule.Ref = pick(r, resources...)
		case flow.Chain:
			rule.Ref = pick(r, "web", "cron")
		}
		if r.one(2) {
			rule.WarmUpPeriod, rule.ColdFactor = pick(r, time.Second, 3*time.Second, time.Minute), pick(r, 2, 3, 10)
		}
		return rule
	}, normalizedFlow)
}

func drawHotspot(r *round, id string) hotspot.Rule {
	return draw(func() hotspot.Rule {
		rule := hotspot.Rule{
			ID: id, Threshold: drawThreshold(r), Interval: drawInterval(r),
			Burst:     pick(r, 0, 0, 1, 3),
			Window:    pick(r, hotspot.Strict, hotspot.Refill),
			Metric:    pick(r, hotspot.QPS, hotspot.QPS, hotspot.Concurrency),
			Behavior:  pick(r, hotspot.Reject, hotspot.Reject, hotspot.Throttle, hotspot.TokenBucket),
			MaxWait:   pick(r, 0, 50*ms, time.Second, time.Minute),
			MaxValues: pick(r, 0, 0, 0, 1, 2, 3, 6),
			Mode:      drawMode(r),
		}
		rule.Resource, rule.Match = drawName(r)
		if r.one(3) {
			rule.Index = hotspot.At(pick(r, 0, 1, -1))
		} else {
			rule.Param = pick(r, params...)
		}
		for i := range r.IntN(3) {
			rule.Exceptions = append(rule.Exceptions, hotspot.Exception{Value: argument.Of(i), Threshold: drawThreshold(r)})
		}
		return rule
	}, hotspot.Rule.Normalized)
}

// drawSystem returns a rule that doesn't look at the machine.
func drawSystem(r *round, id string) system.Rule {
	return draw(func() system.Rule {
		rule := system.Rule{ID: id, Metric: pick(r, system.QPS, system.QPS, system.Concurrency, system.RT), Mode: drawMode(r)}
		rule.Interval, rule.Buckets = drawInterval(r), pick(r, 0, 1, 2, 5, 10)
		if rule.Metric == system.RT {
			rule.MaxRT = pick(r, ms, 100*ms, time.Minute)
			return rule
		}
		rule.Threshold, rule.Strict = drawThreshold(r), r.one(4)
		return rule
	}, system.Rule.Normalized)
}

func drawAuthority(r *round, id string) authority.Rule {
	return draw(func() authority.Rule {
		rule := authority.Rule{
			ID: id, List: pick(r, authority.Allow, authority.Deny, authority.Deny),
			AllowAnonymous: r.one(2), Mode: drawMode(r),
		}
		rule.Resource, rule.Match = drawName(r)
		for _, name := range origins[1:] {
			if r.one(3) == (rule.List == authority.Deny) {
				rule.Origins = append(rule.Origins, name)
			}
		}
		return rule
	}, authority.Rule.Normalized)
}

func drawIsolation(r *round, id string) isolation.Rule {
	return draw(func() isolation.Rule {
		rule := isolation.Rule{ID: id, Threshold: pick(r, 0, 1, 2, 3, 5, 10, 50), Mode: drawMode(r)}
		rule.Resource, rule.Match = drawName(r)
		if r.one(2) {
			rule.MaxQueue, rule.MaxWait = pick(r, 1, 2, 5, 100), pick(r, 10*ms, 300*ms, time.Minute)
		}
		return rule
	}, isolation.Rule.Normalized)
}

func drawAdaptive(r *round, id string) adaptive.Rule {
	return draw(func() adaptive.Rule {
		rule := adaptive.Rule{ID: id, Floor: pick(r, 0, 1, 5, 10), Ceiling: pick(r, 0, 2, 20, 100), Window: pick(r, 0, 10*ms, time.Second), Mode: drawMode(r)}
		rule.Resource, rule.Match = drawName(r)
		return rule
	}, adaptive.Rule.Normalized)
}

func drawBreaker(r *round, id string) breaker.Rule {
	return draw(func() breaker.Rule {
		rule := breaker.Rule{
			ID: id, Strategy: pick(r, breaker.ErrorRatio, breaker.ErrorCount, breaker.SlowRatio, breaker.ConsecutiveErrors),
			Threshold: pick(r, 0, 0.1, 0.5, 1, 3), MinCalls: pick(r, 0, 1, 3, 10),
			Interval: drawInterval(r), Buckets: pick(r, 0, 1, 2, 10),
			Recovery: pick(r, 0, ms, time.Second), Probes: pick(r, 0, 1, 3), ProbeTimeout: pick(r, 0, ms, time.Second),
			Ramp: pick(r, 0, 0, time.Second), Mode: drawMode(r),
		}
		rule.Resource, rule.Match = drawName(r)
		if r.one(4) {
			rule.Resource, rule.Match = spec.AnyResource, spec.MatchExact
			rule.Exclude = append(rule.Exclude, pick(r, resources...))
		}
		if rule.Strategy == breaker.SlowRatio {
			rule.SlowRT = pick(r, ms, 100*ms, time.Minute)
		}
		if rule.Strategy == breaker.ConsecutiveErrors {
			rule.MinCalls, rule.Interval, rule.Buckets = 0, 0, 0
		}
		return rule
	}, breaker.Rule.Normalized)
}

func drawOutlier(r *round, id string) outlier.Rule {
	return draw(func() outlier.Rule {
		rule := outlier.Rule{
			ID: id, Strategy: pick(r, breaker.ErrorRatio, breaker.ErrorCount, breaker.ConsecutiveErrors), Threshold: pick(r, 0, 0.5, 1, 3),
			MaxEjected: pick(r, 0, 0.3, 1), MaxEndpoints: pick(r, 0, 4, 10), MinCalls: pick(r, 0, 1, 3),
			Interval: drawInterval(r), Recovery: pick(r, 0, ms, time.Second), Mode: drawMode(r),
		}
		if rule.Strategy == breaker.ConsecutiveErrors {
			rule.MinCalls, rule.Interval = 0, 0
		}
		rule.Resource, rule.Match = drawName(r)
		return rule
	}, outlier.Rule.Normalized)
}
