package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

// A limit that becomes 0 admits nothing; when it is raised again after a pause, it admits exactly
// the new limit, regardless of the previous one.
// known bug 39, 44
func TestThresholdGoesToZeroAndBack(t *testing.T) {
	for _, c := range []struct {
		name string
		rule flow.Rule
		want int // of 100 calls at one instant
	}{
		{"reject", flow.Rule{Window: flow.Ring}, 10},
		{"strict", flow.Rule{Window: flow.Strict}, 10},
		{"warm-up", flow.Rule{Behavior: flow.WarmUp, WarmUpPeriod: time.Second, Window: flow.Ring}, 10},
		{"throttle", flow.Rule{Behavior: flow.Throttle, MaxWait: 500 * ms}, 1 + 5},
		{"warm-up and throttle", flow.Rule{Behavior: flow.WarmUpThrottle, WarmUpPeriod: time.Second, MaxWait: 500 * ms}, 1 + 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := func(threshold float64) flow.Rule {
				r := c.rule
				r.ID, r.Resource, r.Threshold = "r", "orders", threshold
				return r
			}
			g := newGuard(t, rule(0))
			assert.Zero(t, g.passes(100, "orders"), "from the start")
			for range 3 {
				g.load(rule(10))
				for range 30 { // until it is warm
					g.clock.Advance(time.Second)
					g.passes(100, "orders")
				}
				g.clock.Advance(1100 * ms)
				assert.Equal(t, c.want, g.passes(100, "orders"))

				g.load(rule(0))
				for range 30 {
					assert.Zero(t, g.passes(100, "orders"))
					g.clock.Advance(100 * ms)
				}
			}
		})
	}
}

// known bug 44
func TestConcurrencyThresholdGoesToZeroAndBack(t *testing.T) {
	rule := func(threshold float64) flow.Rule {
		return flow.Rule{ID: "r", Resource: "orders", Metric: flow.Concurrency, Threshold: threshold}
	}
	g := newGuard(t, rule(0))
	for range 3 {
		assert.Equal(t, "block", g.outcome("orders"))
		g.load(rule(1))
		e, err := g.enter("orders")
		assert.NoError(t, err)
		assert.Equal(t, "block", g.outcome("orders"))
		g.load(rule(0))
		assert.Equal(t, "block", g.outcome("orders"))
		e.Exit()
		assert.Equal(t, "block", g.outcome("orders"))
	}
}
