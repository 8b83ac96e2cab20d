package flow_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

// A warm-up whose bucket holds less than a token still warms up.
// known bug 121
func TestWarmUpAtLowRates(t *testing.T) {
	for _, c := range []struct {
		threshold float64
		interval  time.Duration
		period    time.Duration
		factor    int
		cold      int
	}{
		{300, time.Hour, 10 * time.Second, 3, 100},
		{30, 5 * time.Minute, 10 * time.Second, 3, 10},
		{1000, 24 * time.Hour, 10 * time.Second, 5, 200},
		{10, time.Minute, 10 * time.Second, 10, 1},
		{9, 10 * time.Second, time.Second, 3, 3},
		{12, time.Hour, 5 * time.Minute, 4, 3},
		{12, time.Hour, 5 * time.Minute, 1000, 1},
	} {
		t.Run(fmt.Sprintf("%v per %v, factor %d in %v", c.threshold, c.interval, c.factor, c.period), func(t *testing.T) {
			rule := flow.Rule{
				Resource: "orders", Threshold: c.threshold, Interval: c.interval, Buckets: 10,
				Behavior: flow.WarmUp, WarmUpPeriod: c.period, ColdFactor: c.factor, Window: flow.Ring,
			}
			g := newGuard(t, rule)
			all := int(c.threshold)
			assert.Equal(t, c.cold, g.passes(2*all, "orders"), "cold")
			g.clock.Advance(time.Second)
			assert.Equal(t, all-c.cold, g.passes(2*all, "orders"), "as much as that has warmed it up")
			// The distance between calls that don't warm it up.
			distance := c.interval / time.Duration(all) * time.Duration(c.factor)
			g.clock.Advance(max(c.interval+c.period, distance+time.Second))
			assert.Equal(t, c.cold, g.passes(2*all, "orders"), "cold again")

			g = newGuard(t, rule)
			passed := 0
			for range 4 * all {
				passed += g.passes(1, "orders")
				g.clock.Advance(c.interval/time.Duration(all) + 1)
			}
			assert.GreaterOrEqual(t, passed, 4*all-1, "used as much as it may be, it is warm")

			g = newGuard(t, rule)
			for range 5 {
				g.passes(1, "orders")
				g.clock.Advance(distance + time.Second)
			}
			assert.LessOrEqual(t, g.passes(2*all, "orders"), c.cold, "used a little, it stays cold")
		})
	}
}

// Two rules on a resource read the same total, each from the start of its own second.
func TestWarmUpsAtLowRatesBesideEachOther(t *testing.T) {
	one := flow.Rule{ID: "one", Resource: "orders", Threshold: 30, Interval: 5 * time.Minute, Behavior: flow.WarmUp}
	two := one
	two.ID, two.Origin = "two", "app"
	g := newGuard(t, one, two)
	assert.Equal(t, 10, g.passes(100, "orders"))
	g.clock.Advance(time.Second)
	assert.Equal(t, 10, g.passes(100, "orders from app"), "cold for its caller")
	g.clock.Advance(time.Second)
	assert.Equal(t, 10, g.passes(100, "orders from app"), "30 for all")
}

// A queue of one call in 36 s becomes one in 12 s while it is used, however often it is asked.
// known bug 121
func TestWarmUpThrottleAtLowRates(t *testing.T) {
	g := newGuard(t, flow.Rule{
		Resource: "orders", Threshold: 300, Interval: time.Hour, Behavior: flow.WarmUpThrottle, MaxWait: time.Second,
	})
	var at []time.Duration
	for now := time.Duration(0); now < 3*time.Minute; now += time.Second {
		at = append(at, slices.Repeat([]time.Duration{now}, g.passes(1, "orders"))...)
		g.clock.Advance(time.Second)
	}
	want := []time.Duration{0}
	for now := 11 * time.Second; now < 3*time.Minute; now += 12 * time.Second { // it may wait a second
		want = append(want, now)
	}
	assert.Equal(t, want, at)
	g.clock.Advance(time.Minute)
	assert.Equal(t, 1, g.passes(1, "orders"))
	assert.Equal(t, "block", g.outcome("orders"))
	g.clock.Advance(35 * time.Second)
	assert.Equal(t, 1, g.passes(1, "orders"), "cold again")
}
