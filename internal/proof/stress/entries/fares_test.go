package entries

import (
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

// fare is the course of a call if nothing breaks off.
type fare struct {
	name  string
	rules []flow.Rule
	// before is the number of calls made first; then the clock advances by pause.
	before int
	pause  time.Duration
	opts   []engine.Option

	blocked     bool // it ends in a refusal
	waits       bool
	cancel      bool // its context ends while it waits
	late, again bool // the last slot refuses it when it takes, or is asked again
	nested      bool
	fails       bool
}

const (
	most = 4 // of every window
	room = 3 // of every semaphore
)

// fares lists every behavior with each of its outcomes. All rules are on the resource orders, and
// all have room for most calls, or for room if it is set, once time has passed.
func fares() []fare {
	rule := func(change func(*flow.Rule)) flow.Rule {
		r := flow.Rule{Resource: "orders", Threshold: most, Interval: time.Second, Buckets: 2, Window: flow.Ring}
		if change != nil {
			change(&r)
		}
		if r.Metric == flow.Concurrency || r.Behavior != flow.Reject && r.Behavior != flow.WarmUp {
			r.Window = flow.Strict // has no effect there
		}
		return r
	}
	concurrency := flow.Rule{ID: "room", Resource: "orders", Threshold: room, Metric: flow.Concurrency}
	reject := []flow.Rule{rule(nil), concurrency}
	strict := []flow.Rule{rule(func(r *flow.Rule) { r.Window = flow.Strict }), concurrency}
	warm := []flow.Rule{rule(func(r *flow.Rule) { r.Behavior = flow.WarmUp }), concurrency}
	throttle := []flow.Rule{rule(func(r *flow.Rule) { r.Behavior, r.Buckets = flow.Throttle, 0 }), concurrency}
	warmThrottle := []flow.Rule{rule(func(r *flow.Rule) { r.Behavior, r.Buckets, r.MaxWait = flow.WarmUpThrottle, 0, time.Second }), concurrency}
	origin := []flow.Rule{rule(func(r *flow.Rule) { r.Origin = "app" }), rule(func(r *flow.Rule) { r.ID, r.Threshold = "all", most+1 }), concurrency}
	chain := []flow.Rule{rule(func(r *flow.Rule) { r.Relation, r.Ref, r.Threshold = flow.Chain, "web", most+1 }), rule(func(r *flow.Rule) { r.ID = "all" }), concurrency}
	shadow := []flow.Rule{rule(func(r *flow.Rule) { r.Mode, r.Threshold = spec.Shadow, 0 }), rule(func(r *flow.Rule) { r.ID = "real" }), concurrency}
	both := append([]flow.Rule{rule(func(r *flow.Rule) { r.ID = "window" })}, throttle...)
	first := []engine.Option{engine.Prioritized()}

	all := []fare{
		{name: "no rule"},
		{name: "no rule, nested and failed", nested: true, fails: true},
		{name: "shut", rules: []flow.Rule{rule(func(r *flow.Rule) { r.Threshold = 0 })}, blocked: true},
		{name: "borrows", rules: reject, before: most, pause: 600 * time.Millisecond, opts: first, waits: true},
		{name: "borrows, cancelled", rules: reject, before: most, pause: 600 * time.Millisecond, opts: first, waits: true, cancel: true, blocked: true},
		{name: "borrows, refused again", rules: reject, before: most, pause: 600 * time.Millisecond, opts: first, waits: true, again: true, blocked: true},
		{name: "can't borrow", rules: reject, before: most, opts: first, blocked: true},
		{name: "strict, borrows", rules: strict, before: most, pause: 1100 * time.Millisecond, opts: first, waits: true},
	}
	for name, rules := range map[string][]flow.Rule{
		"reject": reject, "strict": strict, "warm-up": warm, "origin": origin, "chain": chain, "shadow": shadow,
		"throttle": throttle, "warm-up throttle": warmThrottle, "window and throttle": both,
	} {
		queued := name == "throttle" || name == "warm-up throttle" || name == "window and throttle"
		all = append(all,
			fare{name: name + ", passes", rules: rules},
			fare{name: name + ", from outside, nested, failed, prioritized", rules: rules, nested: true, fails: true,
				opts: []engine.Option{engine.Inbound(), engine.Prioritized()}},
			fare{name: name + ", refused late", rules: rules, late: true, blocked: true})
		if queued {
			all = append(all,
				fare{name: name + ", waits", rules: rules, before: 1, waits: true},
				fare{name: name + ", cancelled", rules: rules, before: 1, waits: true, cancel: true, blocked: true},
				fare{name: name + ", refused again", rules: rules, before: 1, waits: true, again: true, blocked: true})
		} else {
			all = append(all, fare{name: name + ", full", rules: rules, before: most, blocked: true})
		}
	}
	return all
}
