package model

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

const ms = time.Millisecond

var resources = []string{"a", "a", "b"}

func span(from, to time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(int64(from), int64(to)), func(n int64) time.Duration { return time.Duration(n) })
}

// step is how far the clock moves: to where it hurts, or anywhere.
var step = rapid.OneOf(
	rapid.SampledFrom([]time.Duration{0, 1, 50 * ms, 100 * ms, 250 * ms, 500*ms - 1, 500 * ms, 500*ms + 1, time.Second - 1, time.Second}),
	span(0, 300*ms),
	span(0, 3*time.Second),
	rapid.SampledFrom([]time.Duration{5 * time.Second, 59 * time.Second, 61 * time.Second, time.Hour}),
)

// back is how far the clock is set back.
var back = rapid.SampledFrom([]time.Duration{ms, 9 * ms, 11 * ms, 100 * ms, 499 * ms, 500 * ms, time.Second, 10 * time.Second, time.Hour, 365 * 24 * time.Hour})

// rule draws a rule with a given ID, that says only what it reads.
func rule(t *rapid.T, id string) flow.Rule {
	r := flow.Rule{
		ID:        id,
		Resource:  rapid.SampledFrom(resources).Draw(t, "rule on"),
		Threshold: threshold.Draw(t, "threshold"),
		Interval:  rapid.SampledFrom([]time.Duration{time.Second, time.Second, 100 * ms, 500 * ms, 2 * time.Second, 10 * time.Second}).Draw(t, "interval"),
		Buckets:   rapid.SampledFrom([]int{2, 2, 1, 4, 5, 10}).Draw(t, "buckets"),
		Metric:    rapid.SampledFrom([]flow.Metric{flow.QPS, flow.QPS, flow.QPS, flow.Concurrency}).Draw(t, "metric"),
		Origin:    rapid.SampledFrom([]string{"", "", "x", "y", flow.OriginOther}).Draw(t, "origin"),
		Relation:  rapid.SampledFrom([]flow.Relation{flow.Direct, flow.Direct, flow.Direct, flow.Chain, flow.Associated}).Draw(t, "relation"),
		Mode:      rapid.SampledFrom([]spec.Mode{spec.Enforce, spec.Enforce, spec.Enforce, spec.Shadow, spec.Off}).Draw(t, "mode"),
	}
	switch r.Relation {
	case flow.Chain:
		r.Ref = contextName(rapid.SampledFrom([]string{"", "web"}).Draw(t, "ref"))
	case flow.Associated:
		r.Ref = rapid.SampledFrom(resources).Draw(t, "ref")
	}
	r.Behavior = rapid.SampledFrom([]flow.Behavior{
		flow.Reject, flow.Reject, flow.WarmUp, flow.Throttle, flow.Throttle, flow.WarmUpThrottle, flow.TokenBucket,
	}).Draw(t, "behavior")
	r.WarmUpPeriod = rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, 10 * time.Second}).Draw(t, "warm-up period")
	r.ColdFactor = rapid.SampledFrom([]int{2, 3, 5}).Draw(t, "cold factor")
	r.MaxWait = rapid.SampledFrom([]time.Duration{1, 200 * ms, 500 * ms, 5 * time.Second}).Draw(t, "longest wait")
	r.Burst = rapid.SampledFrom([]int{0, 0, 1, 2, 5, 10}).Draw(t, "burst")
	if rapid.IntRange(0, 3).Draw(t, "ring") != 0 {
		r.Window = flow.Ring
	}
	return meaningful(r)
}

// meaningful is the rule without what one of its metric, relation and behavior doesn't read, and
// with a behavior that goes with those.
func meaningful(r flow.Rule) flow.Rule {
	if r.Metric == flow.Concurrency {
		r.Behavior, r.Interval = flow.Reject, 0
	}
	if r.Relation == flow.Associated && r.Behavior != flow.WarmUp {
		r.Behavior = flow.Reject
	}
	if r.Relation == flow.Direct {
		r.Ref = ""
	}
	if r.Metric == flow.Concurrency || r.Behavior != flow.Reject && r.Behavior != flow.WarmUp {
		r.Buckets, r.Window = 0, flow.Strict
	}
	if r.Behavior != flow.WarmUp && r.Behavior != flow.WarmUpThrottle {
		r.WarmUpPeriod, r.ColdFactor = 0, 0
	}
	if r.Behavior != flow.Throttle && r.Behavior != flow.WarmUpThrottle {
		r.MaxWait = 0
	}
	if r.Behavior != flow.TokenBucket {
		r.Burst = 0
	}
	return r
}

var threshold = rapid.SampledFrom([]float64{0, 0.5, 1, 1.5, 2, 3, 4, 5, 7, 10})

func ruleSet(t *rapid.T) (set []flow.Rule) {
	for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
		set = append(set, rule(t, fmt.Sprint("rule ", i)))
	}
	return set
}

// changed is the set with one rule changed, added, removed, or none.
func changed(t *rapid.T, set []flow.Rule) []flow.Rule {
	set = slices.Clone(set)
	if len(set) == 0 || rapid.IntRange(0, 9).Draw(t, "add") == 0 {
		free := 0
		for slices.ContainsFunc(set, func(r flow.Rule) bool { return r.ID == fmt.Sprint("rule ", free) }) {
			free++
		}
		return append(set, rule(t, fmt.Sprint("rule ", free)))
	}
	i := rapid.IntRange(0, len(set)-1).Draw(t, "rule")
	r := &set[i]
	other := rule(t, r.ID)
	switch rapid.SampledFrom([]string{"threshold", "threshold", "shape", "mode", "whose", "how", "all", "remove", "nothing"}).Draw(t, "change") {
	case "threshold":
		r.Threshold = other.Threshold
	case "shape":
		r.Interval, r.Buckets, r.Window = other.Interval, other.Buckets, other.Window
	case "mode":
		r.Mode = other.Mode
	case "whose":
		r.Origin, r.Relation, r.Ref = other.Origin, other.Relation, other.Ref
	case "how":
		r.Behavior, r.WarmUpPeriod, r.ColdFactor, r.MaxWait, r.Burst = other.Behavior, other.WarmUpPeriod, other.ColdFactor, other.MaxWait, other.Burst
	case "all":
		*r = other
	case "remove":
		return slices.Delete(set, i, i+1)
	}
	*r = meaningful(*r)
	return set
}
