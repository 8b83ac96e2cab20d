package flow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

func burst(threshold float64, burst int, maxWait time.Duration) flow.Rule {
	r := throttle(threshold, maxWait)
	r.Burst = burst
	return r
}

// The first units of a throttle with a burst pass at once, and the next ones are spaced.
func TestThrottleWithABurst(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script []step
	}{
		{"three at once beyond the one that is due", []step{
			{0, "orders", 10, "pass x4, 100ms, 200ms, 300ms, 400ms, 500ms, block"},
			{500 * ms, "orders", 1, "100ms"},
		}},
		{"idle time is saved up", []step{
			{0, "orders", 4, "pass x4"},
			{250 * ms, "orders", 3, "pass x2, 50ms"},
			{time.Second, "orders", 5, "pass x4, 100ms"},
		}},
		{"batches", []step{
			{0, "orders x1000", 1, "pass"}, // the first call after idle time doesn't wait
			{0, "orders x3", 2, "pass, 300ms"},
			{300*ms + 100*ms, "orders x2", 1, "100ms"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newGuard(t, burst(10, 3, 500*ms)).run(tt.script)
		})
	}
}

// Random calls of random rules wait exactly as long as those of a naive twin: until the units before
// them have been paid for by the rate and the burst, beginning with any earlier call. In no interval
// does more run.
func TestThrottleWithABurstIsItsTwin(t *testing.T) {
	r := random(t)
	calls, waited, refused := 0, 0, 0
	for range rounds(300) {
		cost := []time.Duration{1, 2, 4, 5, 8, 10, 20, 25, 40, 50}[r.IntN(10)] * time.Millisecond // so that the rate is a whole number
		slack := time.Duration(r.IntN(20)) * cost
		maxWait := time.Duration(1+r.Int64N(20)) * cost
		g := newGuard(t, burst(float64(time.Second)/float64(cost), int(slack/cost), maxWait))
		var twin burstTwin
		now := time.Duration(0)
		for range 64 {
			now += time.Duration(r.Int64N(2) * r.Int64N(int64(3*cost)))
			units := 1 + r.Int64N(2)*r.Int64N(5)
			want := twin.arrives(now, time.Duration(units)*cost, slack, maxWait)
			g.at(now)
			require.Equal(t, want, g.outcome(fmt.Sprintf("orders x%d", units)), "at %v, after %v", now, twin.calls)
			switch calls++; want {
			case "pass":
			case "block":
				refused++
			default:
				waited++
			}
		}
		for i := range twin.calls {
			sum := time.Duration(0)
			for j := i + 1; j < len(twin.calls); j++ {
				sum += twin.calls[j].cost
				require.LessOrEqual(t, sum, twin.calls[j].runs-twin.calls[i].runs+slack)
			}
		}
	}
	assert.Greater(t, 10*waited, calls)
	assert.Greater(t, 10*refused, calls)
}

func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// burstTwin has the arrival, the cost and the start of each call of a throttle.
type burstTwin struct {
	calls []struct{ at, cost, runs time.Duration }
}

func (b *burstTwin) arrives(now, cost, slack, maxWait time.Duration) string {
	turn, sum := now-slack, cost
	for i := len(b.calls) - 1; i >= 0; i-- {
		turn = max(turn, b.calls[i].at-slack+sum)
		sum += b.calls[i].cost
	}
	wait := max(0, turn-now)
	if wait > maxWait {
		return "block"
	}
	b.calls = append(b.calls, struct{ at, cost, runs time.Duration }{now, cost, now + wait})
	if wait == 0 {
		return "pass"
	}
	return wait.String()
}

// A changed rule keeps its turns: the units that are missing from its burst are not handed out again.
func TestThrottleWithABurstReloaded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		after  flow.Rule
		script []step
	}{
		{"as before", burst(10, 9, time.Second), []step{{0, "orders", 1, "100ms"}}},
		{"a higher threshold", burst(100, 9, time.Second), []step{{0, "orders", 2, "10ms, 20ms"}, {20*ms + 50*ms, "orders", 6, "pass x5, 10ms"}}},
		{"a lower threshold", burst(1, 9, time.Second), []step{{0, "orders", 1, "1s"}, {9 * time.Second, "orders", 9, "pass x8, 1s"}}},
		{"no burst", throttle(10, time.Second), []step{{0, "orders", 2, "100ms, 200ms"}}},
		{"a token bucket", tokens(10, 9), []step{{0, "orders", 1, "block"}, {100 * ms, "orders", 2, "pass, block"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(t, burst(10, 9, time.Second))
			g.run([]step{{0, "orders", 10, "pass x10"}})
			g.load(tt.after)
			g.run(tt.script)
		})
	}
	t.Run("half of it is left", func(t *testing.T) {
		g := newGuard(t, burst(10, 9, time.Second))
		g.run([]step{{0, "orders", 5, "pass x5"}})
		g.load(burst(1000, 9, time.Second))
		g.run([]step{{0, "orders", 7, "pass x5, 1ms, 2ms"}})
	})
	t.Run("a burst is saved up, not given", func(t *testing.T) {
		g := newGuard(t, throttle(10, time.Second))
		g.run([]step{{0, "orders", 1, "pass"}})
		g.load(burst(10, 9, time.Second))
		g.run([]step{{0, "orders", 1, "100ms"}, {time.Second, "orders", 10, "pass x9, 100ms"}})
	})
	t.Run("changed again and again", func(t *testing.T) {
		g, r := newGuard(t, burst(10, 9, 1)), rand.New(rand.NewPCG(1, 2))
		passed := 0
		for range 100 {
			g.load(burst(10*float64(1+r.IntN(9)), 1+r.IntN(9), 1))
			passed += g.passes(20, "orders")
		}
		assert.LessOrEqual(t, passed, 10)
	})
}

func TestThrottleWithABurstRefusesFields(t *testing.T) {
	for field, change := range map[string]func(*flow.Rule){
		"share":           func(r *flow.Rule) { r.Share = spec.Share{By: "origin"} },
		"shed":            func(r *flow.Rule) { r.Shed = spec.ShedLevels },
		"memoryThreshold": func(r *flow.Rule) { r.MemoryThreshold, r.LowMemory, r.HighMemory = 2, flow.Share(0.4), flow.Share(0.9) },
	} {
		r := burst(10, 3, time.Second)
		change(&r)
		_, err := r.Normalized(3)
		require.ErrorContains(t, err, "burst: has no meaning for "+field)
	}
}

// Calls that wait, and turns that are only charged, hide no unused part of a burst from a reload.
// known bug 299
func TestBurstBehindAQueueReloaded(t *testing.T) {
	queue := func(threshold float64, maxWait time.Duration) flow.Rule {
		r := burst(threshold, 20, maxWait)
		r.Unit = "tokens"
		return r
	}
	bucket := func(threshold float64) flow.Rule {
		r := tokens(threshold, 20)
		r.Unit = "tokens"
		return r
	}
	type open struct {
		*guard
		leave func()
		ran   int
	}
	start := func(first flow.Rule, ran, waits int) *open {
		g := &open{guard: newGuard(t, first)}
		one := engine.Cost("tokens", 1)
		for range ran {
			e, err := g.Enter(t.Context(), "orders", []engine.Option{one})
			require.NoError(t, err)
			e.Exit()
			g.ran++
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		g.clock.SetSleep(clocks.SleepPark)
		go func() {
			_, err := g.Enter(ctx, "orders", []engine.Option{engine.Cost("tokens", int64(waits))})
			done <- err
		}()
		g.clock.AwaitParked(1)
		g.leave = func() {
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
			g.clock.SetSleep(clocks.SleepRecord)
		}
		return g
	}
	now := func(g *open) int {
		n := 0
		for {
			e, err := g.Enter(t.Context(), "orders", []engine.Option{engine.Cost("tokens", 1)})
			if e.Exit(); err != nil {
				return n
			}
			n++
		}
	}
	t.Run("another rate", func(t *testing.T) {
		g := start(queue(10, time.Hour), 19, 5)
		g.load(queue(1000, 1))
		g.leave()
		assert.LessOrEqual(t, g.ran+now(g), 21)
	})
	t.Run("a bucket between", func(t *testing.T) {
		g := start(queue(10, time.Hour), 21, 1)
		g.load(bucket(10))
		g.load(bucket(1000))
		g.at(60 * ms)
		ran := now(g)
		g.load(queue(1000, 1))
		g.leave()
		assert.LessOrEqual(t, ran+now(g), 21)
	})
	for _, between := range []flow.Rule{queue(0, 1), func() flow.Rule { r := queue(1000, 1); r.Burst = 0; return r }()} {
		t.Run("none between", func(t *testing.T) {
			g := &open{guard: newGuard(t, queue(10, 1))}
			for range 20 {
				e, err := g.Enter(t.Context(), "orders", []engine.Option{engine.Cost("tokens", 1)})
				require.NoError(t, err)
				e.Exit()
			}
			g.load(between)
			g.load(queue(1000, 1))
			assert.LessOrEqual(t, now(g), 1)
		})
	}
	t.Run("a charge that nobody waits for", func(t *testing.T) {
		g := newGuard(t, queue(10, time.Hour))
		g.clock.SetSleep(clocks.SleepRecord)
		var last engine.Entry
		for range 22 {
			e, err := g.Enter(t.Context(), "orders", []engine.Option{engine.Cost("tokens", 1)})
			require.NoError(t, err)
			last.Exit()
			last = e
		}
		last.Settle("tokens", 2)
		last.Exit()
		g.at(time.Minute)
		g.load(bucket(10))
		ran := now(&open{guard: g})
		assert.Equal(t, 21, ran)
		g.load(queue(10, 1))
		assert.Zero(t, now(&open{guard: g}))
	})
}
