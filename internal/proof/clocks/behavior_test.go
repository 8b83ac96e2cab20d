package clocks

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// behavior is a way in which callers are limited, and how they come.
type behavior struct {
	name    string
	rule    flow.Rule
	also    []flow.Rule
	every   []core.Option
	context string
	origin  string

	waits   bool // some calls have to wait
	parks   bool // who waits lets time pass
	refuses bool // some calls are refused
	may     bool // now and then one is refused
}

const (
	limit    = 20 // a second
	permits  = 3
	interval = time.Second
)

var reject = flow.Rule{ID: "rule", Resource: "orders", Threshold: limit}

func with(change func(*flow.Rule)) flow.Rule {
	r := reject
	change(&r)
	return r
}

var queue = with(func(r *flow.Rule) { r.Behavior = flow.Throttle })

var behaviors = []behavior{
	{name: "reject", rule: reject, refuses: true},
	{name: "one bucket", rule: with(func(r *flow.Rule) { r.Buckets = 1 }), refuses: true},
	{name: "fifty buckets", rule: with(func(r *flow.Rule) { r.Buckets = 50 }), refuses: true},
	{name: "strict", rule: with(func(r *flow.Rule) { r.Strict = true }), refuses: true},
	{name: "warm-up", rule: with(func(r *flow.Rule) { r.Behavior, r.WarmUpPeriod = flow.WarmUp, 2*time.Second }), refuses: true},
	{name: "throttle", rule: queue, waits: true, parks: true},
	{name: "throttle, a full queue", rule: queue, waits: true, refuses: true},
	{name: "warm-up throttle", rule: with(func(r *flow.Rule) { r.Behavior, r.WarmUpPeriod = flow.WarmUpThrottle, 2*time.Second }), waits: true, refuses: true},
	{name: "concurrency", rule: with(func(r *flow.Rule) { r.Metric, r.Threshold = flow.Concurrency, permits }), refuses: true},
	{name: "associated", rule: with(func(r *flow.Rule) { r.Relation, r.Ref = flow.Associated, "stock" }),
		also: []flow.Rule{{ID: "stock", Resource: "stock", Threshold: limit}}, refuses: true},
	{name: "chain", rule: with(func(r *flow.Rule) { r.Relation, r.Ref = flow.Chain, "web" }), context: "web", refuses: true},
	{name: "a caller", rule: with(func(r *flow.Rule) { r.Origin = "app" }), origin: "app", refuses: true},
	{name: "other callers", rule: with(func(r *flow.Rule) { r.Origin = flow.OriginOther }), origin: "app", refuses: true},
	{name: "borrow", rule: reject, every: []core.Option{core.Prioritized()}, waits: true, parks: true, may: true},
	{name: "borrow, many at once", rule: with(func(r *flow.Rule) { r.Buckets = 4 }), every: []core.Option{core.Prioritized()}, waits: true, refuses: true},
	{name: "shadow", rule: with(func(r *flow.Rule) { r.Mode = core.Shadow })},
	{name: "several rules", rule: reject, also: []flow.Rule{
		{ID: "strict", Resource: "orders", Threshold: limit, Strict: true},
		{ID: "permits", Resource: "orders", Threshold: permits, Metric: flow.Concurrency},
		{ID: "caller", Resource: "orders", Threshold: 15, Origin: "app", Interval: 500 * ms},
	}, origin: "app", refuses: true},
}

// reaches reports whether calls come through that phase.
func (b behavior) reaches(p phase) bool {
	switch p {
	case duringWait, afterWait:
		return b.waits
	case duringRefuse, duringRetry:
		return b.refuses
	}
	return true
}
