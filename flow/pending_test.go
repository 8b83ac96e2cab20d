package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// A rule with an expression takes effect on a resource at the next call there. However late that is,
// the rule counts everything from the load on, and, from before the load, the same calls as a rule
// with a name.
// known bug 129
func TestExpressionCountsFromTheLoad(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rule   flow.Rule
		script []step // the rule is loaded at 8 ms, when 2 calls have passed
	}{
		{"the bucket of the load has ended", flow.Rule{Threshold: 2, Interval: 10 * ms, Buckets: 1, Window: flow.Ring}, []step{
			{10 * ms, "orders", 3, "pass x2, block"},
		}},
		{"a caller", flow.Rule{Threshold: 2, Interval: 10 * ms, Buckets: 1, Origin: "app", Window: flow.Ring}, []step{
			{9 * ms, "orders from app", 1, "block"},
			{10 * ms, "orders from app", 3, "pass x2, block"},
		}},
		{"within it", flow.Rule{Threshold: 3, Interval: 10 * ms, Buckets: 1, Window: flow.Ring}, []step{
			{9 * ms, "orders", 2, "pass, block"},
		}},
		{"no call borrows units that are free", flow.Rule{Threshold: 2, Interval: 100 * ms, Buckets: 10, Window: flow.Ring}, []step{
			{105 * ms, "orders first", 3, "pass x2, 95ms"},
		}},
		{"no call for minutes", flow.Rule{Threshold: 3, Interval: time.Hour, Window: flow.Ring}, []step{
			{10 * time.Minute, "orders", 2, "pass, block"},
			{time.Hour, "orders", 3, "pass x2, block"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(t)
			g.at(8 * ms)
			require.Equal(t, 2, g.passes(2, "orders from app"))
			tt.rule.Resource, tt.rule.Match = "or.*", spec.MatchRegex
			g.load(tt.rule)
			g.run(tt.script)
		})
	}
}

// The same holds if the resource still waits for a call when other rules are loaded.
// known bug 129
func TestExpressionCountsFromTheLoadAcrossAnother(t *testing.T) {
	g := newGuard(t)
	require.Equal(t, 2, g.passes(2, "orders"))
	hourly := flow.Rule{ID: "hourly", Resource: "or.*", Match: spec.MatchRegex, Threshold: 3, Interval: time.Hour}
	g.load(hourly)
	g.at(5 * time.Minute)
	g.load(hourly, flow.Rule{ID: "other", Resource: "ca.*", Match: spec.MatchRegex, Threshold: 3})
	g.at(10 * time.Minute)
	g.run([]step{{10 * time.Minute, "orders", 2, "pass, block"}})
}

// Counts remembered for the rule are for that rule alone: rules loaded later start with the calls
// of the last minute.
// known bug 129
func TestExpressionsForgetWhenTheyHaveBegun(t *testing.T) {
	g := newGuard(t)
	require.Equal(t, 2, g.passes(2, "orders"))
	g.load(flow.Rule{ID: "any", Resource: "or.*", Match: spec.MatchRegex, Threshold: 3})
	require.Equal(t, 1, g.passes(2, "orders"))
	g.at(10 * time.Minute)
	g.load(flow.Rule{ID: "hourly", Resource: "orders", Threshold: 3, Interval: time.Hour})
	assert.Equal(t, 3, g.passes(5, "orders"))
}

// A call that waited during the load, and runs before the next one arrives, counts when it runs.
// known bug 129
func TestExpressionCountsWhoWaited(t *testing.T) {
	for _, tt := range []struct {
		interval time.Duration
		left     int // of 3 units, ten minutes later
	}{
		{time.Hour, 1},
		{10 * ms, 3},
	} {
		g := newGuard(t, flow.Rule{ID: "queue", Resource: "orders", Threshold: 1, Behavior: flow.Throttle, MaxWait: time.Second})
		g.clock.SetSleep(clocks.SleepPark)
		require.Equal(t, "pass", g.outcome("orders"))
		waited := make(chan error)
		go func() {
			e, err := g.enter("orders")
			e.Exit()
			waited <- err
		}()
		g.clock.AwaitParked(1)
		g.load(flow.Rule{ID: "later", Resource: "or.*", Match: spec.MatchRegex, Threshold: 3, Interval: tt.interval})
		g.at(time.Second)
		require.NoError(t, <-waited)
		g.at(10 * time.Minute)
		assert.Equal(t, tt.left, g.passes(5, "orders"), "%v", tt.interval)
	}
}
