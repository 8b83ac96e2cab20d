package hotspot_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// A limit of ten per second holds in every second: there are no nineteen around the moment at which
// a bucket would be refilled.
// known bug 232
func TestStrictWindowOfAValue(t *testing.T) {
	around := func(window hotspot.Window) int {
		g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 10, Window: window})
		assert.Equal(t, 1, g.passes(1, user("ann")))
		g.at(990 * ms)
		passed := g.passes(20, user("ann"))
		g.at(1010 * ms)
		return passed + g.passes(20, user("ann"))
	}
	assert.Equal(t, 19, around(hotspot.Refill), "in 20 ms")
	assert.Equal(t, 9, around(hotspot.Strict))
}

// No value gets more than the limit in any real interval, regardless of the units that its callers
// ask for or return because another rule refuses, and even while the rule changes its interval or
// from a bucket to a window. A value with an even rate gets at least ten elevenths.
func TestStrictIntervals(t *testing.T) {
	r := random(t)
	for range figure.Size(20, 200, 2000, 20_000) {
		rule := hotspot.Rule{ID: "r", Param: "user", Threshold: float64(1 + r.IntN(6)), Interval: []time.Duration{10 * ms, 70*ms + 1, time.Second}[r.IntN(3)]}
		if r.IntN(3) == 0 {
			rule.Window = hotspot.Refill
		}
		other := hotspot.Rule{ID: "other", Param: "item", Threshold: 1, Interval: max(rule.Interval/2, 10*ms)}
		g := newGuard(t, rule, other)
		type take struct{ at, n int64 }
		var taken []take
		since := int64(0) // start of the time in which the rule is strict, with this interval
		for now := int64(0); now < 20*int64(rule.Interval); now += r.Int64N(int64(rule.Interval) / 3) {
			g.at(time.Duration(now))
			if r.IntN(40) == 0 {
				rule.Window = hotspot.Strict
				rule.Interval = []time.Duration{rule.Interval, rule.Interval * 2, rule.Interval / 2}[r.IntN(3)]
				rule.Interval = max(rule.Interval, 10*ms)
				g.load(rule, other)
				since = now
			}
			n := 1 + r.Int64N(2)
			opts := []engine.Option{user("ann"), engine.Units(int(n))}
			if r.IntN(2) == 0 {
				opts = append(opts, engine.Param("item", 1)) // a rule on item may refuse the call
			}
			if g.outcome(opts...) == "pass" && rule.Window == hotspot.Strict {
				taken = append(taken, take{now, n})
			}
			sum := int64(0)
			for _, k := range taken {
				if k.at >= since && k.at >= now-int64(rule.Interval) {
					sum += k.n
				}
			}
			if sum > int64(rule.Threshold) {
				t.Fatalf("%+v: %d units in the interval up to %v, -seed=%d", rule, sum, time.Duration(now), *seed)
			}
		}
	}

	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 110})
	passed := 0
	for i := range 22_000 {
		g.at(time.Duration(i) * ms)
		passed += g.passes(1, user("ann"))
	}
	assert.Equal(t, 2200, passed, "ten elevenths of 110 per second in 22 s")
}

// Units that a value has used still count when its window changes its interval, or when a window
// becomes a bucket or a bucket a window; a call that gives units back after that returns them there.
func TestWindowsAreHandedOver(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 3}
	g := newGuard(t, rule)
	assert.Equal(t, 3, g.passes(4, user("ann")))
	for _, change := range []func(){
		func() { rule.Interval = 10 * time.Second },
		func() { rule.Window = hotspot.Refill },
		func() { rule.Window = hotspot.Strict },
		func() { rule.Behavior, rule.MaxWait = hotspot.Throttle, 1 },
		func() { rule.Behavior, rule.MaxWait = hotspot.Reject, 0 },
		func() { rule.Mode = spec.Off },
		func() { rule.Mode = spec.Enforce },
	} {
		change()
		g.load(rule)
		if rule.Behavior == hotspot.Reject && rule.Mode == spec.Enforce {
			assert.Equal(t, "block", g.outcome(user("ann")), "%+v", rule)
		}
	}
	g.at(11 * time.Second)
	assert.Equal(t, 3, g.passes(4, user("ann")))
}
