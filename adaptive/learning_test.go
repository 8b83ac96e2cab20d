package adaptive_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
)

// sixteen returns a service that can do sixteen calls at once, under a rule.
func sixteen(t *testing.T, rule adaptive.Rule, times func(*rand.Rand) float64) *service {
	s := newService(t, newGuard(t, rule), *seed, 16, 20*ms, times)
	s.learns = true
	return s
}

// wave makes calls at once until one is refused or there are n, keeps them open for length and ends
// them; fails decides their errors.
func (g *guard) wave(n int, length time.Duration, fails func(i int) error) (admitted int) {
	g.t.Helper()
	var in []engine.Entry
	for range n {
		e, refused := g.Enter(g.t.Context(), "orders", nil)
		if refused != nil {
			break
		}
		in = append(in, e)
	}
	g.clock.Advance(length)
	for i, e := range in {
		if fails != nil {
			e.Fail(fails(i))
		}
		e.Exit()
	}
	return len(in)
}

// A limit that is never reached doesn't move for hours, up or down, and no call is refused for its
// sake.
func TestUnusedLimitStays(t *testing.T) {
	for _, limit := range []int{20, 100} {
		s := sixteen(t, learning(limit), lognormal(1))
		v := s.watch(0.2, 24)
		assert.Zero(t, v.refused)
		assert.EqualValues(t, limit, s.limit().Limit)
		s.at += time.Hour
		s.clock.Advance(time.Hour)
		v = s.watch(0.2, 6)
		assert.Zero(t, v.refused)
		assert.EqualValues(t, limit, s.limit().Limit)
	}
}

// After a pause of hours, with calls in flight that take all of it, or a jump of the clock, the
// learned limit is still known.
func TestPauseIsNoEvidence(t *testing.T) {
	s := sixteen(t, learning(20), lognormal(0.5))
	s.settle(1.5, 30*time.Second)
	for _, pause := range []time.Duration{time.Second, time.Minute, 10 * time.Hour} {
		for range 5 {
			before := s.limit().Limit
			s.clock.Advance(pause) // not modelled by the service: every call in flight took that long
			s.settle(1.5, 100*ms)
			assert.InDelta(t, before, s.limit().Limit, 2)
			s.settle(1.5, 7*time.Second)
		}
		assert.LessOrEqual(t, s.watch(1.5, 4).off(16), 0.1, "%v", pause)
	}
}

// Calls are faster than the clock's resolution, with any number in flight. The limit grows to the
// ceiling, and all stats are valid numbers.
func TestNoTimeAtAll(t *testing.T) {
	g := newGuard(t, adaptive.Rule{Resource: "orders", Ceiling: 50, Window: 10 * ms})
	for range 3000 {
		g.wave(100, 0, nil)
		g.clock.Advance(ms)
	}
	l := g.limit()
	assert.EqualValues(t, 50, l.Limit)
	assert.Equal(t, time.Microsecond, l.FloorRT)
	assert.Equal(t, time.Microsecond, l.LimitRT)
	assert.Greater(t, l.Throughput, 0.0)
	assert.Less(t, l.Throughput, 1e6)
}

// If no call succeeds, nothing is learned about the limit.
// known bug 51
func TestNothingGoesWell(t *testing.T) {
	g := newGuard(t, adaptive.Rule{Resource: "orders", Window: 10 * ms})
	for range 1000 {
		g.wave(100, 10*ms, func(int) error { return errWork })
	}
	assert.EqualValues(t, 20, g.limit().Limit)
	assert.Zero(t, g.limit().FloorRT)
}

// If the calls beyond eight fail, after as long as the others take, the limit falls to the lowest
// one that still shows it.
func TestTooManyFail(t *testing.T) {
	g := newGuard(t, adaptive.Rule{Resource: "orders", Window: 10 * ms})
	for range 2000 {
		g.wave(100, 10*ms, func(i int) error {
			if i < 8 {
				return nil
			}
			return errWork
		})
	}
	assert.InDelta(t, 7, g.limit().Limit, 1)
}

// A call that waits for a throttle is not in flight until it runs, and its wait is not part of its
// duration. If it finds the limit reached when it runs, it is refused.
func TestWaitingIsNotInFlight(t *testing.T) {
	g := newGuard(t)
	g.clock.SetSleep(clocks.SleepAdvance)
	load := func(rule adaptive.Rule) {
		require.NoError(t, g.Update(func(b *engine.SnapshotBuilder) error {
			if err := flow.Compile(b, []flow.Rule{{Resource: "orders", Threshold: 1000, Behavior: flow.Throttle, MaxWait: time.Second}}); err != nil {
				return err
			}
			return adaptive.Compile(b, []adaptive.Rule{rule})
		}))
	}
	load(at(2))
	a, b := g.enter(), g.enter()
	assert.Len(t, g.clock.Slept(), 1)
	g.refused()
	assert.Len(t, g.clock.Slept(), 1, "who would not fit doesn't wait")
	a.Exit()
	b.Exit()

	load(adaptive.Rule{ID: "other", Resource: "orders", Ceiling: 2, Start: 1, Window: 10 * ms})
	for range 200 {
		a := g.enter()
		b, err := g.Enter(t.Context(), "orders", nil) // waits 1 ms, if admitted
		g.clock.Advance(3 * ms)
		b.Exit()
		if err != nil {
			g.clock.Advance(ms)
		}
		a.Exit()
	}
	l := g.limit()
	assert.InDelta(t, 4*ms, l.FloorRT, float64(ms)/10, "the first call runs while the second waits")
	assert.InDelta(t, 3*ms, l.LimitRT, float64(ms)/10)
}

// If another rule holds calls back, the limit is not reached, and stays.
func TestHeldBackByOthers(t *testing.T) {
	g := newGuard(t)
	require.NoError(t, g.Update(func(b *engine.SnapshotBuilder) error {
		if err := flow.Compile(b, []flow.Rule{{Resource: "orders", Threshold: 5, Metric: flow.Concurrency}}); err != nil {
			return err
		}
		return adaptive.Compile(b, []adaptive.Rule{{Resource: "orders"}})
	}))
	for range 1000 {
		assert.Equal(t, 5, g.wave(100, 10*ms, nil))
	}
	assert.EqualValues(t, 20, g.limit().Limit)
}

// The floor and the ceiling hold, wherever the knee is.
func TestFloorAndCeiling(t *testing.T) {
	race.OneGoroutine(t)
	for _, tt := range []struct{ floor, ceiling, want int }{{30, 40, 30}, {2, 10, 10}} {
		s := sixteen(t, adaptive.Rule{Resource: "orders", Floor: tt.floor, Ceiling: tt.ceiling}, lognormal(0.5))
		for range 600 {
			s.settle(3, 100*ms)
			l := s.limit()
			assert.GreaterOrEqual(t, l.InForce, int64(tt.floor))
			assert.LessOrEqual(t, l.InForce, int64(tt.ceiling))
		}
		assert.InDelta(t, tt.want, s.limit().Limit, 1)
	}
}

// The stats show the true state.
func TestFigures(t *testing.T) {
	s := sixteen(t, learning(20), always)
	l := s.limit()
	assert.Equal(t, adaptive.LimitStats{Resource: "orders", Limit: 20, InForce: 40}, l)
	s.settle(3, 30*time.Second)
	l = s.limit()
	assert.EqualValues(t, 16, l.Limit)
	assert.InDelta(t, 20*ms, l.FloorRT, float64(ms))
	assert.InDelta(t, 25*ms, l.LimitRT, float64(2*ms))
	assert.InDelta(t, 750, l.Throughput, 75)
}
