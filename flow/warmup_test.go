package flow_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

// demand offers perSecond calls evenly in each of the seconds, and returns how many passed in each.
func (g *guard) demand(perSecond, seconds int) []int {
	var passed []int
	for range seconds {
		n := 0
		for range 10 {
			n += g.passes(perSecond/10, "orders")
			g.clock.Advance(100 * ms)
		}
		passed = append(passed, n)
	}
	return passed
}

// A cold resource gets a third, and under load the full threshold after about the warm-up period.
func TestWarmUpRises(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 90, Behavior: flow.WarmUp, WarmUpPeriod: 10 * time.Second, Window: flow.Ring})
	passed := g.demand(200, 20)
	assert.Equal(t, 30, passed[0])
	for i := range passed[1:] {
		assert.GreaterOrEqual(t, passed[i+1], passed[i], "%v", passed)
	}
	assert.Less(t, passed[5], 80, "%v", passed)
	assert.Equal(t, 90, passed[15], "%v", passed)
	assert.Equal(t, 90, passed[19], "%v", passed)
	// After a long pause it is cold again.
	g.clock.Advance(time.Minute)
	assert.Equal(t, 30, g.passes(200, "orders"))
}

// Light traffic keeps a resource cold.
func TestWarmUpStaysColdUnderLittleTraffic(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 90, Behavior: flow.WarmUp, WarmUpPeriod: 10 * time.Second})
	g.demand(20, 30)
	g.clock.Advance(time.Second)
	assert.Equal(t, 30, g.passes(200, "orders"))
}

// known bug 35, and what semantics.md says of D1
func TestWarmUpStartsColdWhateverTheClock(t *testing.T) {
	for _, at := range []time.Time{
		start, start.Add(999_999_999), time.Unix(0, 0), time.Unix(0, 1), time.Unix(0, -1), time.Unix(-1, 0), time.Unix(-1000, 5),
		time.Unix(1, 0), time.Date(1930, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2099, 12, 31, 0, 0, 0, 0, time.UTC), {},
	} {
		for _, behavior := range []flow.Behavior{flow.WarmUp, flow.WarmUpThrottle} {
			t.Run(fmt.Sprint(at, behavior), func(t *testing.T) {
				g := newGuardWith(t, engine.Config{Clock: clocks.NewManual(at)}, flow.Rule{Resource: "orders", Threshold: 30, Behavior: behavior})
				if behavior == flow.WarmUp {
					assert.Equal(t, 10, g.passes(100, "orders"))
				} else {
					assert.Equal(t, 1+5, g.passes(100, "orders"), "a tenth of a second apart")
				}
			})
		}
	}
}

// The limit lies between a cold resource's share, or one call, and the threshold, for any numbers.
// known bug 35, 37, 51
func TestWarmUpRange(t *testing.T) {
	rnd := random(t)
	pick := func(all ...float64) float64 { return all[rnd.IntN(len(all))] }
	for range 300 {
		rule := flow.Rule{
			Resource:     "orders",
			Threshold:    pick(0.1, 0.5, 1, 1.5, 2, 3, 7, 10, 33.3, 100, 1000, 12345, 1e6, 1e9, 1e12, 1e15),
			Interval:     time.Duration(pick(10e6, 50e6, 100e6, 300e6, 700e6, 1e9, 2e9, 60e9, 86400e9)),
			WarmUpPeriod: time.Duration(pick(1e9, 2e9, 10e9, 86400e9)),
			ColdFactor:   int(pick(2, 3, 5, 1000)),
			Behavior:     flow.WarmUp, Window: flow.Ring,
		}
		low := int64(max(rule.Threshold/float64(rule.ColdFactor), min(rule.Threshold, 1)))
		high := int64(rule.Threshold)
		g := newGuard(t, rule)
		first := true
		for range 8 {
			// The limit is found by asking for larger and larger batches, up to the units a call
			// may take.
			limit := g.fits(high)
			require.GreaterOrEqual(t, limit, min(low, 1<<20), "%+v", rule)
			require.LessOrEqual(t, limit, high, "%+v", rule)
			if first && low < 1<<19 {
				require.InDelta(t, low, limit, 1+float64(low)*1e-9, "starts cold: %+v", rule)
			}
			first = false
			g.clock.Advance(time.Duration(rnd.Int64N(int64(2 * rule.Interval))))
			g.clock.Advance(rule.Interval) // earlier calls no longer count
		}
	}
}

// fits returns the largest batch that passes now, up to high and the units a call may take.
func (g *guard) fits(high int64) int64 {
	high = min(high, 1<<20)
	low := int64(0)
	for low < high {
		n := low + (high-low+1)/2
		if g.outcome(fmt.Sprintf("orders x%d", n)) != "block" {
			return g.exactly(n, high)
		}
		high = n - 1
	}
	return low
}

// exactly adds to n passed units as many more as fit.
func (g *guard) exactly(n, high int64) int64 {
	for step := high - n; step > 0; {
		if g.outcome(fmt.Sprintf("orders x%d", step)) != "block" {
			n += step
			step = min(step, high-n)
		} else {
			step /= 2
		}
	}
	return n
}

// A warm resource gets its full threshold, even if the interval is not a power of two of a second.
func TestWarmUpReachesTheThreshold(t *testing.T) {
	for _, interval := range []time.Duration{10 * ms, 30 * ms, 70 * ms, 90 * ms, 100 * ms, 130 * ms, 300 * ms, 700 * ms, time.Second, 1100 * ms} {
		for _, threshold := range []float64{6, 9, 10, 21, 49, 63, 100} {
			g := newGuard(t, flow.Rule{Resource: "orders", Threshold: threshold, Interval: interval, Buckets: 1, Behavior: flow.WarmUp, WarmUpPeriod: time.Second, Window: flow.Ring})
			least := int(threshold / 3)
			require.GreaterOrEqual(t, g.passes(int(threshold)+1, "orders"), least, "cold, %v per %v", threshold, interval)
			for range int(4 * time.Second / interval) {
				g.clock.Advance(interval)
				g.passes(int(threshold)+1, "orders")
			}
			// It stays warm for the remainder of this second.
			g.clock.Advance(interval)
			assert.Equal(t, int(threshold), g.passes(int(threshold)+1, "orders"), "%v per %v", threshold, interval)
		}
	}
}

// The spacing shrinks from the cold resource's to the threshold's.
func TestWarmUpThrottle(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 30, Behavior: flow.WarmUpThrottle, WarmUpPeriod: 2 * time.Second, MaxWait: time.Hour})
	spacing := func() float64 {
		before := len(g.clock.Slept())
		g.passes(2, "orders")
		slept := g.clock.Slept()
		if len(slept) == before+1 {
			return float64(slept[before])
		}
		return float64(slept[before+1] - slept[before])
	}
	assert.InDelta(t, 100e6, spacing(), 1)
	last := 100e6
	for range 200 { // two calls every 50 ms exceed the limit: the queue grows
		g.clock.Advance(50 * ms)
		now := spacing()
		assert.LessOrEqual(t, now, last+1)
		last = now
	}
	assert.InDelta(t, 1e9/30, last, 1)
}

// Threshold 0 blocks every call.
// known bug 39
func TestWarmUpOfNothing(t *testing.T) {
	for _, behavior := range []flow.Behavior{flow.WarmUp, flow.WarmUpThrottle} {
		g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 0, Behavior: behavior})
		for range 5 {
			assert.Zero(t, g.passes(100, "orders"))
			g.clock.Advance(time.Minute)
		}
	}
}

// The engine's cold factor holds if the rule has none.
func TestColdFactor(t *testing.T) {
	g := newGuardWith(t, engine.Config{ColdFactor: 5},
		flow.Rule{Resource: "orders", Threshold: 100, Behavior: flow.WarmUp},
		flow.Rule{Resource: "carts", Threshold: 100, Behavior: flow.WarmUp, ColdFactor: 2})
	assert.Equal(t, 20, g.passes(100, "orders"))
	assert.Equal(t, 50, g.passes(100, "carts"))
}

// The rate is settled once per second, by the first call in it, even if many arrive.
func TestWarmUpSettlesOnceASecond(t *testing.T) {
	quiet := newGuard(t, flow.Rule{Resource: "orders", Threshold: 90, Behavior: flow.WarmUp})
	busy := newGuard(t, flow.Rule{Resource: "orders", Threshold: 90, Behavior: flow.WarmUp})
	for range 15 {
		want := quiet.passes(100, "orders")
		got := busy.passes(100, "orders")
		require.Equal(t, want, got)
		for range 9 {
			busy.clock.Advance(100 * ms)
			busy.passes(3, "carts")
			_, err := busy.enter("orders x1000")
			require.ErrorIs(t, err, core.ErrBlocked)
		}
		busy.clock.Advance(100 * ms)
		quiet.clock.Advance(time.Second)
	}
}

// Many callers arrive as a second begins: the bucket is settled once, and the limit holds.
func TestWarmUpUnderConcurrency(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 90, Behavior: flow.WarmUp})
	alone := newGuard(t, flow.Rule{Resource: "orders", Threshold: 90, Behavior: flow.WarmUp})
	for range 20 {
		var done sync.WaitGroup
		var mu sync.Mutex
		passed := 0
		for range 8 {
			done.Go(func() {
				for range 15 {
					if e, err := g.Enter(t.Context(), "orders", nil); err == nil {
						e.Exit()
						mu.Lock()
						passed++
						mu.Unlock()
					}
				}
			})
		}
		done.Wait()
		assert.Equal(t, alone.passes(120, "orders"), passed)
		g.clock.Advance(time.Second)
		alone.clock.Advance(time.Second)
	}
}

func TestWarmUpNeverNaN(t *testing.T) {
	for _, threshold := range []float64{math.SmallestNonzeroFloat64, 1e-300, 1e-9, 1, 1e15} {
		for _, behavior := range []flow.Behavior{flow.WarmUp, flow.WarmUpThrottle} {
			rule := flow.Rule{Resource: "orders", Threshold: threshold, Behavior: behavior, WarmUpPeriod: 24 * time.Hour, ColdFactor: 1000, Interval: 24 * time.Hour}
			if behavior == flow.WarmUpThrottle {
				rule.MaxWait = 1 * ms
				rule.Threshold = min(threshold, 1e9)
			}
			g := newGuard(t, rule)
			for range 5 {
				got := g.outcome("orders")
				if threshold >= 1 {
					assert.NotEqual(t, "block", got, "threshold %v, %v", threshold, behavior)
				}
				g.clock.Advance(25 * time.Hour)
			}
		}
	}
}

// Asking a refusal for RetryAfter leaves the warm-up unchanged: it doesn't lose tokens for calls
// that the rule doesn't apply to.
func TestAskingWhenToComeAgainWarmsNothing(t *testing.T) {
	g := newGuard(t, flow.Rule{
		Resource: "orders", Threshold: 2, Origin: "x", Behavior: flow.WarmUpThrottle, WarmUpPeriod: 3 * time.Second, ColdFactor: 5, MaxWait: 1,
	})
	ctx := engine.WithOrigin(t.Context(), "x")
	enter := func() error {
		e, err := g.Enter(ctx, "orders", nil)
		e.Exit()
		return err
	}
	require.NoError(t, enter())
	refused, ok := errors.AsType[*core.BlockError](enter())
	require.True(t, ok)
	require.Equal(t, 10, g.passes(10, "orders"), "others")
	g.at(1100 * ms)
	refused.RetryAfter()
	g.at(1400 * ms)
	require.Error(t, enter(), "one call in 1.5 s after one that passed cold")
	g.at(1500 * ms)
	require.NoError(t, enter())
}
