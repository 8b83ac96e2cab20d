package explained

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/system"
)

// Names are few, so that rules and calls interact.
var (
	resources = []string{"GET /users/1", "GET /users/2", "GET /orders", "jobs"}
	origins   = []string{"", "", "ann", "bob", "eve"}
	contexts  = []string{"", "web", "cron"}
	endpoints = []string{"", "a:80", "b:80", "c:80"}
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

const ms = time.Millisecond

// draw makes up rules until one is valid, and drops the fields that it doesn't read.
func draw[R any](normalized func(R) (R, error), make func() R) R {
	for {
		if rule, err := normalized(trial.OnlyRead(make(), normalized)); err == nil {
			return rule
		}
	}
}

// several returns up to most rules, each with an ID that names its family.
func several[R any](r *rand.Rand, most int, family string, normalized func(R) (R, error), one func(id string) R) (rules []R) {
	for i := range r.IntN(most + 1) {
		id := fmt.Sprintf("%s %d", family, i)
		rules = append(rules, draw(normalized, func() R { return one(id) }))
	}
	return rules
}

func drawName(r *rand.Rand) (name string, match spec.Match) {
	switch r.IntN(8) {
	case 0:
		return "GET /.*", spec.MatchRegex
	case 1:
		return "GET /*", spec.MatchPrefix
	case 2:
		return "GET /users/*", spec.MatchPath
	case 3:
		return "*", spec.MatchExact
	}
	return pick(r, resources...), spec.MatchExact
}

func drawMode(r *rand.Rand) spec.Mode {
	return pick(r, spec.Enforce, spec.Enforce, spec.Enforce, spec.Enforce, spec.Shadow, spec.Off)
}

func drawThreshold(r *rand.Rand) float64 {
	return pick(r, 0.0, 0.5, 1, 1, 1.5, 2, 3, 5, 7, 10, 20, 50)
}

func drawInterval(r *rand.Rand) time.Duration {
	return pick(r, 100*ms, 500*ms, time.Second, time.Second, 2*time.Second, time.Minute)
}

// drawSet returns rules of all families.
func drawSet(r *rand.Rand) (set api.RuleSet) {
	set.Authority = several(r, 1, "authority", authority.Rule.Normalized, func(id string) (rule authority.Rule) {
		rule = authority.Rule{ID: id, List: pick(r, authority.Allow, authority.Deny), AllowAnonymous: true, Origins: []string{"eve", "ann"}, Mode: drawMode(r)}
		rule.Resource, rule.Match = drawName(r)
		return rule
	})
	set.System = several(r, 2, "system", system.Rule.Normalized, func(id string) system.Rule {
		rule := system.Rule{ID: id, Metric: pick(r, system.QPS, system.Concurrency, system.RT), Mode: drawMode(r), Threshold: 5 * drawThreshold(r)}
		rule.Interval, rule.Strict = drawInterval(r), r.IntN(4) == 0
		if rule.Metric == system.RT {
			rule.Threshold, rule.MaxRT = 0, pick(r, ms, 100*ms, time.Minute)
		}
		return rule
	})
	set.Hotspot = several(r, 2, "hotspot", hotspot.Rule.Normalized, func(id string) hotspot.Rule {
		rule := hotspot.Rule{
			ID: id, Threshold: drawThreshold(r), Interval: drawInterval(r), Burst: pick(r, 0, 0, 1, 3),
			Metric:    pick(r, hotspot.QPS, hotspot.QPS, hotspot.Concurrency),
			Behavior:  pick(r, hotspot.Reject, hotspot.Throttle, hotspot.TokenBucket),
			MaxWait:   pick(r, 0, 50*ms, time.Second),
			MaxValues: pick(r, 0, 0, 1, 2, 4), Mode: drawMode(r),
			Missing: pick(r, hotspot.MissingNone, hotspot.MissingUnlimited, hotspot.MissingShared, hotspot.MissingRefuse),
		}
		rule.Resource, rule.Match = drawName(r)
		if rule.Param = "user"; r.IntN(3) == 0 {
			rule.Param, rule.Index = "", hotspot.At(pick(r, 0, -1))
		}
		if r.IntN(3) == 0 {
			rule.Exceptions = []hotspot.Exception{{Value: hotspot.ValueOf("u1"), Threshold: drawThreshold(r)}}
		}
		return rule
	})
	set.Flow = several(r, 4, "flow", func(rule flow.Rule) (flow.Rule, error) { return rule.Normalized(3) }, func(id string) flow.Rule {
		rule := flow.Rule{
			ID: id, Threshold: drawThreshold(r), Interval: drawInterval(r), Buckets: pick(r, 0, 0, 1, 2, 10),
			Metric:   pick(r, flow.QPS, flow.QPS, flow.QPS, flow.Concurrency),
			Origin:   pick(r, "", "", "", "ann", flow.OriginOther),
			Relation: pick(r, flow.Direct, flow.Direct, flow.Direct, flow.Associated, flow.Chain),
			Behavior: pick(r, flow.Reject, flow.Reject, flow.Throttle, flow.WarmUp, flow.WarmUpThrottle, flow.TokenBucket),
			MaxWait:  pick(r, 0, 50*ms, time.Second), Burst: pick(r, 0, 1, 3),
			Window: pick(r, flow.Strict, flow.Ring), WarmUpPeriod: pick(r, 0, 3*time.Second), Mode: drawMode(r),
		}
		rule.Resource, rule.Match = drawName(r)
		switch rule.Relation {
		case flow.Associated:
			rule.Ref = pick(r, resources...)
		case flow.Chain:
			rule.Ref = "web"
		}
		return rule
	})
	set.Isolation = several(r, 2, "isolation", isolation.Rule.Normalized, func(id string) isolation.Rule {
		rule := isolation.Rule{ID: id, Threshold: pick(r, 0, 1, 3, 10, 50), Mode: drawMode(r)}
		if rule.Resource, rule.Match = drawName(r); r.IntN(2) == 0 {
			rule.MaxQueue, rule.MaxWait = pick(r, 1, 5), 300*ms
		}
		return rule
	})
	set.Adaptive = several(r, 1, "adaptive", adaptive.Rule.Normalized, func(id string) adaptive.Rule {
		rule := adaptive.Rule{ID: id, Floor: pick(r, 0, 1, 5), Ceiling: pick(r, 0, 2, 20), Mode: drawMode(r)}
		rule.Resource, rule.Match = drawName(r)
		return rule
	})
	set.Breaker = several(r, 2, "breaker", breaker.Rule.Normalized, func(id string) breaker.Rule {
		rule := breaker.Rule{
			ID: id, Strategy: pick(r, breaker.ErrorRatio, breaker.ErrorCount, breaker.SlowRatio, breaker.ConsecutiveErrors),
			Threshold: pick(r, 0.1, 0.5, 1, 3), MinCalls: pick(r, 0, 1, 3), Interval: drawInterval(r),
			Recovery: pick(r, 0, 50*ms, time.Second), Probes: pick(r, 0, 1, 3), ProbeTimeout: pick(r, 0, 50*ms),
			Ramp: pick(r, 0, 0, time.Second), SlowRT: 50 * ms, Mode: drawMode(r),
		}
		rule.Resource, rule.Match = drawName(r)
		return rule
	})
	set.Outlier = several(r, 2, "outlier", outlier.Rule.Normalized, func(id string) outlier.Rule {
		rule := outlier.Rule{
			ID: id, Strategy: pick(r, breaker.ErrorRatio, breaker.ConsecutiveErrors), Threshold: pick(r, 0.5, 1, 3),
			MaxEjected: pick(r, 0.0, 1.0), MinCalls: pick(r, 0, 1, 3), Interval: drawInterval(r), Recovery: pick(r, 50*ms, time.Second), Mode: drawMode(r),
		}
		rule.Resource, rule.Match = drawName(r)
		return rule
	})
	return set
}
