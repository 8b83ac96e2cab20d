package clocks

import (
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// behavior is a way to limit callers, and their traffic.
type behavior struct {
	name    string
	rule    flow.Rule
	also    []flow.Rule
	every   []engine.Option
	context string
	origin  string

	// set returns the rules to load instead of rule and also, which then only state the
	// promise.
	set     func(change bool) rules.Set
	samples bool          // the machine is sampled at every instant
	grace   time.Duration // callers may be refused for this much longer than under other behaviors

	waits   bool // some calls have to wait
	parks   bool // waiting calls let time pass
	refuses bool // some calls are refused
	may     bool // now and then one is refused
}

const (
	limit    = 20 // a second
	permits  = 3
	interval = time.Second
)

var reject = flow.Rule{ID: "rule", Resource: "orders", Threshold: limit, Window: flow.Ring}

func with(change func(*flow.Rule)) flow.Rule {
	r := reject
	change(&r)
	if r.Metric == flow.Concurrency || r.Behavior != flow.Reject && r.Behavior != flow.WarmUp {
		r.Window = flow.Strict // has no effect there
	}
	return r
}

var queue = with(func(r *flow.Rule) { r.Behavior = flow.Throttle })

var behaviors = []behavior{
	{name: "reject", rule: reject, refuses: true},
	{name: "one bucket", rule: with(func(r *flow.Rule) { r.Buckets = 1 }), refuses: true},
	{name: "fifty buckets", rule: with(func(r *flow.Rule) { r.Buckets = 50 }), refuses: true},
	{name: "strict", rule: with(func(r *flow.Rule) { r.Window = flow.Strict }), refuses: true},
	{name: "warm-up", rule: with(func(r *flow.Rule) { r.Behavior, r.WarmUpPeriod = flow.WarmUp, 2*time.Second }), refuses: true},
	{name: "throttle", rule: queue, waits: true, parks: true},
	{name: "throttle, a full queue", rule: queue, waits: true, refuses: true},
	{name: "warm-up throttle", rule: with(func(r *flow.Rule) { r.Behavior, r.WarmUpPeriod = flow.WarmUpThrottle, 2*time.Second }), waits: true, refuses: true},
	{name: "token bucket", rule: with(func(r *flow.Rule) { r.Behavior, r.Burst = flow.TokenBucket, 3 }), refuses: true},
	{name: "concurrency", rule: with(func(r *flow.Rule) { r.Metric, r.Threshold = flow.Concurrency, permits }), refuses: true},
	{name: "associated", rule: with(func(r *flow.Rule) { r.Relation, r.Ref = flow.Associated, "stock" }),
		also: []flow.Rule{{ID: "stock", Resource: "stock", Threshold: limit}}, refuses: true},
	{name: "chain", rule: with(func(r *flow.Rule) { r.Relation, r.Ref = flow.Chain, "web" }), context: "web", refuses: true},
	{name: "a caller", rule: with(func(r *flow.Rule) { r.Origin = "app" }), origin: "app", refuses: true},
	{name: "other callers", rule: with(func(r *flow.Rule) { r.Origin = flow.OriginOther }), origin: "app", refuses: true},
	{name: "borrow", rule: reject, every: []engine.Option{engine.Prioritized()}, waits: true, parks: true, may: true},
	{name: "borrow, many at once", rule: with(func(r *flow.Rule) { r.Buckets = 4 }), every: []engine.Option{engine.Prioritized()}, waits: true, refuses: true},
	{name: "system, qps", rule: reject, set: inbound(system.Rule{Metric: system.QPS, Threshold: limit}), refuses: true},
	{name: "system, strict", rule: with(func(r *flow.Rule) { r.Window = flow.Strict }), set: inbound(system.Rule{Metric: system.QPS, Threshold: limit, Strict: true}), refuses: true},
	{name: "system, concurrency", rule: with(func(r *flow.Rule) { r.Metric, r.Threshold = flow.Concurrency, permits }),
		set: inbound(system.Rule{Metric: system.Concurrency, Threshold: permits}), refuses: true},
	// Calls take two pauses: those during which the clock leaps end as slow ones, and expire an
	// interval later.
	{name: "system, response time", rule: unbounded, set: inbound(system.Rule{Metric: system.RT, MaxRT: 3 * pause}), may: true, grace: 2 * pause},
	// On a machine that is always too busy.
	{name: "system, cpu", rule: unbounded, set: inbound(system.Rule{Metric: system.CPU, Threshold: 0.5}), samples: true, refuses: true},
	{name: "system, cpu by BBR", rule: unbounded, set: inbound(system.Rule{Metric: system.CPU, Threshold: 0.5, Strategy: system.BBR}), samples: true, refuses: true},
	{name: "memory", rule: reject, set: byMemory, samples: true, refuses: true},
	{name: "shadow", rule: with(func(r *flow.Rule) { r.Mode = spec.Shadow })},
	{name: "several rules", rule: reject, also: []flow.Rule{
		{ID: "strict", Resource: "orders", Threshold: limit, Window: flow.Strict},
		{ID: "permits", Resource: "orders", Threshold: permits, Metric: flow.Concurrency},
		{ID: "caller", Resource: "orders", Threshold: 15, Origin: "app", Interval: 500 * ms},
	}, origin: "app", refuses: true},
}

// unbounded is the promise if no number of calls is promised.
var unbounded = with(func(r *flow.Rule) { r.Mode = spec.Shadow })

// inbound returns a system rule, and its edited version.
func inbound(r system.Rule) func(change bool) rules.Set {
	return func(change bool) rules.Set {
		edited := r
		if change && r.Metric == system.QPS {
			edited.Buckets, edited.Threshold = 20, limit-1
		}
		return rules.Set{System: []system.Rule{edited}}
	}
}

// byMemory returns a rule whose threshold equals the limit when three quarters of the memory are
// used, and its edited version.
func byMemory(change bool) rules.Set {
	r := reject
	r.Threshold, r.MemoryThreshold, r.LowMemory, r.HighMemory = 1.5*limit, 0.5*limit, flow.Share(0.5), flow.Share(1)
	if change {
		r.Buckets = 20
	}
	return rules.Set{Flow: []flow.Rule{r}}
}

// reaches reports whether calls go through the phase.
func (b behavior) reaches(p phase) bool {
	switch p {
	case duringWait, afterWait:
		return b.waits
	case duringRefuse, duringRetry:
		return b.refuses
	}
	return true
}
