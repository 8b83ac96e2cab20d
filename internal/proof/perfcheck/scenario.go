package main

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// scenario is a path whose cost is checked.
type scenario struct {
	name string
	// of names the scenario that this one is compared with, and most is the maximum ratio to its
	// cost. The usual ratio is about two thirds of that.
	of   string
	most float64
	// instructions is the cost of a call, compiled by countedWith; 0 means not counted. A call may
	// take 3 % more. Counts of one program are within 0.1 % of each other, on a busy machine too,
	// and within 0.6 % for names in turn, which are hashed with another seed every time.
	instructions float64
	// batch is the number of calls timed at once, 0 for the usual number.
	batch int
	setup func() (run func(calls int))
}

const clock = "two clock readings"

var scenarios = []scenario{
	{name: clock, setup: func() func(int) {
		began := time.Now()
		return func(n int) {
			for range n {
				_ = time.Since(began)
				_ = time.Since(began)
			}
		}
	}},
	{name: "no rule", of: clock, most: 3.7, instructions: 1571, setup: calls{}.setup},

	// One rule of each family alone. A name without a family means flow.
	{name: "one rule", of: clock, most: 4.4, instructions: 1802, setup: calls{rules: flowRules(1)}.setup},
	{name: "one authority rule", of: clock, most: 5, instructions: 2012,
		setup: calls{ctx: fromApp, rules: rules.Set{
			Authority: []authority.Rule{{Resource: hot, Origins: []string{"app"}}}}}.setup},
	{name: "one system rule", of: clock, most: 5.4, instructions: 2121,
		setup: calls{opts: inbound, rules: rules.Set{
			System: []system.Rule{{Metric: system.QPS, Threshold: 1e9}}}}.setup},
	{name: "one hotspot rule", of: clock, most: 5.3, instructions: 2173,
		setup: calls{opts: forAnn, rules: rules.Set{
			Hotspot: []hotspot.Rule{{Resource: hot, Param: "user", Threshold: 1e9}}}}.setup},
	{name: "a value's token", of: clock, most: 5.5, instructions: 2335,
		setup: calls{opts: forAnn, rules: rules.Set{Hotspot: []hotspot.Rule{
			{Resource: hot, Param: "user", Threshold: 1e9, Behavior: hotspot.TokenBucket, Burst: 1e9}}}}.setup},
	{name: "one isolation rule", of: clock, most: 4.7, instructions: 1921, setup: calls{rules: rules.Set{
		Isolation: []isolation.Rule{{Resource: hot, Threshold: 1e9}}}}.setup},
	// The window is so long that no count includes its end, which would be 200,000 instructions
	// once.
	{name: "one adaptive rule", of: clock, most: 7, instructions: 2711, setup: calls{rules: rules.Set{
		Adaptive: []adaptive.Rule{{Resource: hot, Window: adaptive.MaxWindow}}}}.setup},
	{name: "one breaker rule", of: clock, most: 4.5, instructions: 1793, setup: calls{rules: rules.Set{
		Breaker: []breaker.Rule{{Resource: hot, Threshold: 0.5}}}}.setup},
	{name: "a row of failures", of: clock, most: 4.5, instructions: 1793, setup: calls{rules: rules.Set{
		Breaker: []breaker.Rule{{Resource: hot, Strategy: breaker.ConsecutiveErrors, Threshold: 5}}}}.setup},
	{name: "one outlier rule", of: clock, most: 7, instructions: 2577,
		setup: calls{opts: toEndpoint, rules: rules.Set{
			Outlier: []outlier.Rule{{Resource: hot, Threshold: 0.5}}}}.setup},

	// Some of these after processors have contended for their counters: the lanes cost about 3 %.
	{name: "contended rule", of: "one rule", most: 1.5, instructions: 1856,
		setup: calls{rules: flowRules(1)}.contended},
	{name: "contended system", of: "one system rule", most: 1.5, instructions: 2176,
		setup: calls{opts: inbound, rules: rules.Set{
			System: []system.Rule{{Metric: system.QPS, Threshold: 1e9}}}}.contended},
	{name: "contended isolation", of: "one isolation rule", most: 1.5, instructions: 1988,
		setup: calls{rules: rules.Set{
			Isolation: []isolation.Rule{{Resource: hot, Threshold: 1e9}}}}.contended},

	// Limits shared by a cluster, spent from leases: at most 1.3 times the cost of local limits.
	// Buckets last a second, so that few leases end under valgrind.
	{name: "a lease", of: "one rule", most: 1.3, instructions: 1963, setup: leased(rules.Set{
		Flow: []flow.Rule{{ID: hot, Resource: hot, Threshold: 1e9, Interval: 10 * time.Second, Buckets: cluster.Buckets, Cluster: shared}}})},
	{name: "a leased permit", of: "one isolation rule", most: 1.3, instructions: 2087, setup: leased(rules.Set{
		Isolation: []isolation.Rule{{ID: hot, Resource: hot, Threshold: 1e9, Cluster: shared}}})},

	{name: "two families", of: "one rule", most: 1.6, instructions: 2146, setup: calls{rules: twoFamilies(1e9)}.setup},
	{name: "six families", of: clock, most: 10, instructions: 4127, setup: sixFamilies},
	{name: "ten rules", of: "one rule", most: 1.6, instructions: 2021, setup: calls{rules: flowRules(10)}.setup},
	{name: "rules elsewhere", of: "one rule", most: 1.4, instructions: 1801,
		setup: calls{rules: elsewhere(10_000)}.setup},

	{name: "blocked", of: "one rule", most: 0.8, instructions: 1208, setup: calls{rules: rules.Set{
		Flow: []flow.Rule{{Resource: hot, Threshold: 1, Interval: 24 * time.Hour}}}}.setup},
	{name: "blocked by second", of: "one rule", most: 1.4, instructions: 1674,
		setup: calls{rules: twoFamilies(0)}.setup},
	{name: "a turn at once", of: "one rule", most: 1.8, instructions: 2272, setup: turnAtOnce(nil)},
	{name: "a prioritized turn", of: "one rule", most: 1.9, instructions: 2314, setup: turnAtOnce(prioritized)},
	// The wait itself advances the clock, so the machine's timers don't matter.
	{name: "a turn awaited", of: "one rule", most: 3.4, instructions: 4726, setup: turnAwaited(context.Background())},
	// If the context may end, its end also wakes the call.
	{name: "one that can be left", of: "one rule", most: 7.5, instructions: 7122, setup: turnAwaited(endsSometime)},
	{name: "a prioritized one", of: "one rule", most: 5.5, instructions: 4927,
		setup: turnAwaited(context.Background(), prioritized...)},
	{name: "a token", of: "one rule", most: 1.6, instructions: 1900, setup: calls{rules: rules.Set{
		Flow: []flow.Rule{{Resource: hot, Threshold: 1e9, Behavior: flow.TokenBucket, Burst: 1e9}}}}.setup},
	{name: "no token left", of: "one rule", most: 1.1, instructions: 1385, setup: calls{rules: rules.Set{
		Flow: []flow.Rule{{Resource: hot, Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.TokenBucket}}}}.setup},
	{name: "prioritized", of: "one rule", most: 1.8, instructions: 2049,
		setup: calls{opts: prioritized, rules: flowRules(1)}.setup},

	// A custom slot should cost a call at most 15 ns: about 200 instructions, since rules execute
	// 12 to 14 a nanosecond. With rules it costs more, because every family is asked before any
	// takes. Targets: 1740, 2030 and 2300 instructions, and ratios of 1.12, 1.10 and 1.09.
	{name: "own slot", of: "no rule", most: 1.6, instructions: 1616, setup: calls{ownSlot: true}.setup},
	{name: "own slot, one rule", of: "one rule", most: 1.8, instructions: 1851,
		setup: calls{ownSlot: true, rules: flowRules(1)}.setup},
	{name: "own slot, two rules", of: "two families", most: 2.1, instructions: 2190,
		setup: calls{ownSlot: true, rules: twoFamilies(1e9)}.setup},

	{name: "four nodes", of: clock, most: 5.8, instructions: 2366,
		setup: calls{opts: inbound, ctx: fromApp, rules: flowRules(1)}.setup},
	// A batch has enough calls to look like dense traffic to the clock, even on a slow machine.
	// Under valgrind it never does: the count would be as for an idle clock.
	{name: "coarse clock", of: clock, most: 3.2, batch: 1000,
		setup: calls{rules: flowRules(1), clock: clocks.NewCoarse}.setup},
	{name: "names in turn", of: clock, most: 4.8, instructions: 1850, setup: namesInTurn},
	{name: "handles in turn", of: "names in turn", most: 1, instructions: 1552, setup: handlesInTurn},
}

// shared makes a rule's limit global.
var shared = cluster.Rule{Scope: cluster.Global}

// Options of calls.
var (
	fromApp         = api.WithOrigin(api.WithContext(context.Background(), "web"), "app")
	inbound         = []engine.Option{api.Inbound()}
	endsSometime, _ = context.WithCancel(context.Background())
	forAnn          = []engine.Option{api.Param("user", "ann")}
	toEndpoint      = []engine.Option{api.Endpoint("10.0.0.1:80")}
	prioritized     = []engine.Option{api.Prioritized()}
)
