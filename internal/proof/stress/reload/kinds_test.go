package reload

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// kind is a rule for "orders", with the number of calls that it admits in one instant. The callers
// in these tests have the origin "app" and the context "web".
type kind struct {
	name string
	rule flow.Rule
	most int
	open bool // the calls stay in flight
}

// kinds covers every behavior, metric, relation and choice of callers.
var kinds = []kind{
	{name: "reject", rule: flow.Rule{Threshold: 10}, most: 10},
	{name: "reject, strict", rule: flow.Rule{Threshold: 10, Window: flow.Strict}, most: 10},
	{name: "reject, a minute", rule: flow.Rule{Threshold: 10, Interval: time.Minute}, most: 10},
	{name: "reject, of a caller", rule: flow.Rule{Threshold: 10, Origin: "app"}, most: 10},
	{name: "reject, of others", rule: flow.Rule{Threshold: 10, Origin: flow.OriginOther}, most: 10},
	{name: "reject, on a path", rule: flow.Rule{Threshold: 10, Relation: flow.Chain, Ref: "web"}, most: 10},
	{name: "reject, by itself as the other resource", rule: flow.Rule{Threshold: 10, Relation: flow.Associated, Ref: "orders"}, most: 10},
	{name: "concurrency", rule: flow.Rule{Threshold: 10, Metric: flow.Concurrency}, most: 10, open: true},
	{name: "concurrency, of a caller", rule: flow.Rule{Threshold: 10, Metric: flow.Concurrency, Origin: "app"}, most: 10, open: true},
	{name: "concurrency, of others", rule: flow.Rule{Threshold: 10, Metric: flow.Concurrency, Origin: flow.OriginOther}, most: 10, open: true},
	{name: "concurrency, on a path", rule: flow.Rule{Threshold: 10, Metric: flow.Concurrency, Relation: flow.Chain, Ref: "web"}, most: 10, open: true},
	{name: "concurrency, by itself as the other resource", rule: flow.Rule{Threshold: 10, Metric: flow.Concurrency, Relation: flow.Associated, Ref: "orders"}, most: 10, open: true},
	{name: "warm-up", rule: flow.Rule{Threshold: 30, Behavior: flow.WarmUp}, most: 10},
	{name: "warm-up, strict, of a caller", rule: flow.Rule{Threshold: 30, Behavior: flow.WarmUp, Window: flow.Strict, Origin: "app"}, most: 10},
	{name: "warm-up, on a path", rule: flow.Rule{Threshold: 30, Behavior: flow.WarmUp, Relation: flow.Chain, Ref: "web"}, most: 10},
	{name: "throttle", rule: flow.Rule{Threshold: 10, Behavior: flow.Throttle}, most: 6},
	{name: "throttle, of a caller", rule: flow.Rule{Threshold: 10, Behavior: flow.Throttle, Origin: "app"}, most: 6},
	{name: "throttle, of others", rule: flow.Rule{Threshold: 10, Behavior: flow.Throttle, Origin: flow.OriginOther}, most: 6},
	{name: "throttle, on a path", rule: flow.Rule{Threshold: 10, Behavior: flow.Throttle, Relation: flow.Chain, Ref: "web"}, most: 6},
	{name: "token bucket", rule: flow.Rule{Threshold: 10, Behavior: flow.TokenBucket, Burst: 9}, most: 10},
	{name: "token bucket, of a caller", rule: flow.Rule{Threshold: 10, Behavior: flow.TokenBucket, Burst: 9, Origin: "app"}, most: 10},
	{name: "token bucket, of others", rule: flow.Rule{Threshold: 10, Behavior: flow.TokenBucket, Burst: 9, Origin: flow.OriginOther}, most: 10},
	{name: "token bucket, on a path", rule: flow.Rule{Threshold: 10, Behavior: flow.TokenBucket, Burst: 9, Relation: flow.Chain, Ref: "web"}, most: 10},
	{name: "warm-up and throttle", rule: flow.Rule{Threshold: 30, Behavior: flow.WarmUpThrottle}, most: 6},
}

// windows reports whether the rule counts calls in windows of nodes, which include the calls that
// passed without the rule.
func (k kind) windows() bool { return k.rule.Behavior == flow.Reject || k.rule.Behavior == flow.WarmUp }

// queues reports whether the rule spaces calls.
func (k kind) queues() bool {
	return k.rule.Behavior == flow.Throttle || k.rule.Behavior == flow.WarmUpThrottle
}

// mostOf returns how many calls the rule admits in one instant while it changes this way. For a
// queue it is found by queuing: each turn follows the previous one by the current rule's cost.
func (k kind) mostOf(c change, loads int) int {
	if !k.queues() {
		return k.most
	}
	passed, last := 0, time.Duration(0)
	for i := range loads {
		if c.rests && i%2 == 1 {
			continue
		}
		set := c.set(k.rule, i)
		at := slices.IndexFunc(set, func(r flow.Rule) bool {
			return r.Origin == k.rule.Origin && r.Threshold <= k.rule.Threshold && r.ID != other.ID
		})
		r := set[at]
		cost := time.Duration(math.MaxInt64)
		if r.Threshold > 0 {
			cost = time.Duration(float64(max(r.Interval, time.Second)) / r.Threshold)
		}
		if r.Behavior == flow.WarmUpThrottle {
			cost *= 3 // it is cold
		}
		longest := 500 * ms
		if r.MaxWait != 0 {
			longest = r.MaxWait
		}
		switch {
		case r.Threshold == 0:
		case passed == 0:
			passed++ // at once
		case last+cost <= longest:
			passed++
			last += cost
		}
	}
	return passed
}

// change returns the set of the i-th load from a kind's rule. It leaves the rule enforced in every
// even one, with no higher limit.
type change struct {
	name string
	set  func(r flow.Rule, i int) []flow.Rule
	// rests means that the rule is not enforced in any odd set.
	rests bool
}

// other is an unrelated rule.
var other = flow.Rule{ID: "other", Resource: "carts", Threshold: 1}

var changes = []change{
	{name: "nothing", set: func(r flow.Rule, _ int) []flow.Rule { return []flow.Rule{r} }},
	{name: "threshold", set: edit(func(r *flow.Rule, i int) { r.Threshold /= float64(1 + i%2) })},
	{name: "threshold, down to nothing", set: edit(func(r *flow.Rule, i int) { r.Threshold *= float64(1 - i%2) })},
	{name: "interval", set: edit(func(r *flow.Rule, i int) { r.Interval = max(r.Interval, time.Second) * time.Duration(1+i%5) })},
	{name: "interval, next to a rule that keeps it", set: func(r flow.Rule, i int) []flow.Rule {
		l := looser(r)
		r.ID, l.ID = "r", "l"
		r.Interval = max(r.Interval, time.Second) * time.Duration(1+i%5)
		return []flow.Rule{onlyRead(r), l}
	}},
	{name: "buckets", set: edit(func(r *flow.Rule, i int) { r.Buckets = []int{2, 5, 10, 1}[i%4] })},
	{name: "strict", set: edit(func(r *flow.Rule, i int) { r.Window = flow.Window(i % 2) })},
	{name: "warm-up period", set: edit(func(r *flow.Rule, i int) { r.WarmUpPeriod = time.Duration(10+i%2) * time.Second })},
	{name: "longest wait", set: edit(func(r *flow.Rule, i int) { r.MaxWait = 500*ms - time.Duration(i%7) })},
	{name: "ID", set: edit(func(r *flow.Rule, i int) { r.ID = string(rune('A' + i%20)) })},
	{name: "ID, set or not", set: edit(func(r *flow.Rule, i int) { r.ID = []string{"", "r"}[i%2] })},
	{name: "ID and threshold", set: edit(func(r *flow.Rule, i int) { r.ID = string(rune('A' + i/2%20)); r.Threshold /= float64(1 + i%2) })},
	{name: "order", set: func(r flow.Rule, i int) []flow.Rule { return swapped(i, r, looser(r)) }},
	{name: "order, with IDs", set: func(r flow.Rule, i int) []flow.Rule {
		l := looser(r)
		r.ID, l.ID = "r", "l"
		return swapped(i, r, l)
	}},
	{name: "order of three, one of which goes", set: func(r flow.Rule, i int) []flow.Rule {
		return swapped(i, other, r, looser(r))[:3-i%2*i/2%2]
	}},
	{name: "others are added and removed", set: func(r flow.Rule, i int) []flow.Rule { return []flow.Rule{other, r}[1-i%2:] }},
	{name: "name and pattern", set: edit(func(r *flow.Rule, i int) {
		r.ID = "r"
		if i%2 == 1 {
			r.Resource, r.Match = "or.*s", spec.MatchRegex
		}
	})},
	{name: "shadow", rests: true, set: edit(func(r *flow.Rule, i int) { r.Mode = []spec.Mode{spec.Enforce, spec.Shadow}[i%2] })},
	{name: "off", rests: true, set: edit(func(r *flow.Rule, i int) { r.Mode = []spec.Mode{spec.Enforce, spec.Off}[i%2] })},
	{name: "removed", rests: true, set: func(r flow.Rule, i int) []flow.Rule { return []flow.Rule{r}[:1-i%2] }},
}

// edit changes one rule, if it reads the changed field.
func edit(f func(r *flow.Rule, i int)) func(flow.Rule, int) []flow.Rule {
	return func(r flow.Rule, i int) []flow.Rule {
		f(&r, i)
		return []flow.Rule{onlyRead(r)}
	}
}

func onlyRead(r flow.Rule) flow.Rule {
	return trial.OnlyRead(r, func(r flow.Rule) (flow.Rule, error) { return r.Normalized(3) })
}

// looser returns a rule of the same kind that admits everything that r does.
func looser(r flow.Rule) flow.Rule {
	r.Threshold *= 2
	return r
}

func swapped(i int, list ...flow.Rule) []flow.Rule {
	if i%2 == 1 {
		list[0], list[len(list)-1] = list[len(list)-1], list[0]
	}
	return list
}
