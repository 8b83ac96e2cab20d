package flow_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/stat"
)

func throttle(threshold float64, maxWait time.Duration) flow.Rule {
	return flow.Rule{ID: "r", Resource: "orders", Threshold: threshold, Behavior: flow.Throttle, MaxWait: maxWait}
}

func TestThrottle(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rules  []flow.Rule
		script []step
	}{
		{"ten per second", []flow.Rule{throttle(10, 500*ms)}, []step{
			{0, "orders", 8, "pass, 100ms, 200ms, 300ms, 400ms, 500ms, block x2"},
			{50 * ms, "orders", 2, "block x2"},
			{100 * ms, "orders", 2, "500ms, block"},
			{5 * time.Second, "orders", 3, "pass, 100ms, 200ms"}, // idle time earns no credit
		}},
		{"half a second is the usual wait", []flow.Rule{throttle(10, 0)}, []step{
			{0, "orders", 7, "pass, 100ms, 200ms, 300ms, 400ms, 500ms, block"},
		}},
		{"nobody waits", []flow.Rule{throttle(10, 1)}, []step{
			{0, "orders", 2, "pass, block"},
			{100*ms - 2, "orders", 1, "block"},
			{100*ms - 1, "orders", 1, "1ns"},
			{200 * ms, "orders", 2, "pass, block"},
		}},
		{"half a call per second", []flow.Rule{throttle(0.5, 4*time.Second)}, []step{ // known bug 40
			{0, "orders", 4, "pass, 2s, 4s, block"},
			{2 * time.Second, "orders", 2, "4s, block"},
		}},
		{"a threshold per minute", []flow.Rule{{Resource: "orders", Threshold: 6, Interval: time.Minute, Behavior: flow.Throttle, MaxWait: 20 * time.Second}}, []step{
			{0, "orders", 4, "pass, 10s, 20s, block"},
		}},
		{"batches", []flow.Rule{throttle(10, 500*ms)}, []step{
			{0, "orders x1000", 1, "pass"}, // the first call after idle time doesn't wait
			{0, "orders x3", 2, "300ms, block"},
			{0, "orders x2", 2, "500ms, block"},
			{500 * ms, "orders x6", 1, "block"}, // its own cost is beyond the queue
			{700 * ms, "orders x2", 1, "pass"},
		}},
		{"zero", []flow.Rule{throttle(0, time.Hour)}, []step{
			{0, "orders", 3, "block x3"},
			{time.Hour, "orders first", 3, "block x3"},
		}},
		{"nobody borrows", []flow.Rule{throttle(10, 100*ms)}, []step{
			{0, "orders first", 4, "pass, 100ms, block x2"},
		}},
		{"with a reject rule", []flow.Rule{throttle(10, 500*ms), {Resource: "orders", Threshold: 3, Window: flow.Ring}}, []step{
			{0, "orders", 5, "pass, 100ms, 200ms, block x2"},
			{1 * time.Second, "orders", 1, "pass"}, // the refused calls took no turns
			{1 * time.Second, "orders", 1, "100ms"},
		}},
		{"the longest of two queues", []flow.Rule{throttle(10, 500*ms), {Resource: "orders", ID: "s", Threshold: 4, Behavior: flow.Throttle}}, []step{
			{0, "orders", 4, "pass, 250ms, 500ms, block"},
			{200 * ms, "orders", 1, "block"},
			{250 * ms, "orders", 1, "500ms"},
		}},
		{"the longest of two queues, the other way round", []flow.Rule{{Resource: "orders", ID: "s", Threshold: 4, Behavior: flow.Throttle}, throttle(10, 500*ms)}, []step{
			{0, "orders", 4, "pass, 250ms, 500ms, block"},
			{250 * ms, "orders", 1, "500ms"},
		}},
		{"callers apart", []flow.Rule{{Resource: "orders", Threshold: 10, Behavior: flow.Throttle, Origin: "app"}}, []step{
			{0, "orders from app", 2, "pass, 100ms"},
			{0, "orders from web", 2, "pass x2"},
			{0, "orders", 2, "pass x2"},
		}},
		{"a pattern: a queue for each resource", []flow.Rule{{Resource: ".*", Match: spec.MatchRegex, Threshold: 10, Behavior: flow.Throttle}}, []step{
			{0, "orders", 2, "pass, 100ms"},
			{0, "carts", 2, "pass, 100ms"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newGuard(t, tt.rules...).run(tt.script)
		})
	}
}

// Whatever the threshold, queued calls get turns whose distances add up.
// known bug 41, 43, 45
func TestThrottleKeepsItsRate(t *testing.T) {
	for _, threshold := range []float64{
		1e-3, 0.1, 0.3, 0.7, 1, 3, 7, 60, 99.9, 333, 1000, 1999, 2001, 12345.678, 1e6, 3e6, 7e7, 123456789, 6e8, 999999999, 1e9,
	} {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			rule := throttle(threshold, 24*time.Hour)
			if threshold < 1 { // a long queue of calls far apart
				rule.Threshold, rule.Interval = threshold*1000, 1000*time.Second
			}
			g := newGuard(t, rule)
			perUnit := 1e9 / threshold
			const calls = 5_000
			n := int(min(calls, 20*3600*threshold))
			var units, slot float64
			for i := range n {
				if i > 0 {
					units++
				}
				e, err := g.Enter(t.Context(), "orders", nil)
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				e.Exit()
			}
			slept := g.clock.Slept()
			slot = float64(slept[len(slept)-1])
			assert.InDelta(t, units*perUnit, slot, 1+units*perUnit*1e-9)
		})
	}
}

// Calls that arrive exactly when their turn is due, to the nanosecond that a clock can show, get no
// more than the rate either: the fraction of the nanosecond is carried over.
func TestThrottleKeepsItsRateForCallersOnTime(t *testing.T) {
	for _, threshold := range []float64{7, 333, 3e6, 7e7, 3e8, 6e8, 7e8} {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			clock := new(sleepless)
			g := newGuardWith(t, engine.Config{Clock: clock}, throttle(threshold, time.Nanosecond))
			perUnit := 1e9 / threshold
			const calls = 5000
			for range calls {
				e, err := g.Enter(t.Context(), "orders", nil)
				require.NoError(t, err)
				e.Exit()
				clock.now += int64(perUnit)
			}
			assert.GreaterOrEqual(t, float64(clock.now), calls*perUnit*(1-1e-6)-2)
		})
	}
}

// sleepless is a clock that Sleep advances.
type sleepless struct{ now int64 }

func (c *sleepless) Now() int64 { return c.now }
func (c *sleepless) Sleep(_ context.Context, d time.Duration) error {
	c.now += int64(d)
	return nil
}

// The same with random arrivals: no two calls are closer than the cost of the later one, less the
// fraction of a nanosecond that a clock can't show.
func TestThrottleSpacing(t *testing.T) {
	rnd := random(t)
	for range 200 {
		threshold := math.Exp(rnd.Float64()*math.Log(1e12)) / 1e3 // 1e-3 to 1e9
		maxWait := time.Duration(1 + rnd.Float64()*10*1e9/threshold)
		maxWait = min(maxWait, 24*time.Hour)
		g := newGuard(t, throttle(threshold, maxWait))
		perUnit := 1e9 / threshold
		first, units, passed := int64(-1), 0., 0
		var last int64
		for range 100 {
			n := 1 + rnd.IntN(3)
			before := g.clock.Now()
			got := g.outcome(fmt.Sprintf("orders x%d", n))
			if got != "block" {
				at := before
				if got != "pass" {
					wait, err := time.ParseDuration(got)
					require.NoError(t, err)
					require.LessOrEqual(t, wait, maxWait)
					at += int64(wait)
				}
				if first >= 0 {
					require.GreaterOrEqual(t, float64(at-last), float64(n)*perUnit-1, "threshold %v", threshold)
					units += float64(n)
				} else {
					first = at
				}
				last = at
				passed++
			}
			g.clock.Advance(time.Duration(rnd.ExpFloat64() * perUnit))
		}
		require.GreaterOrEqual(t, float64(last-first), units*perUnit*(1-1e-6)-2, "threshold %v", threshold)
		require.Positive(t, passed)
	}
}

// known bug 13, 42, 50
func TestThrottleAfterALongIdleTime(t *testing.T) {
	for _, threshold := range []float64{1e-3, 1, 1e3, 1e9} {
		for _, idle := range []time.Duration{time.Second, time.Hour, 5 * 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
			t.Run(fmt.Sprint(threshold, idle), func(t *testing.T) {
				perUnit := time.Duration(1e9 / threshold)
				if idle < perUnit {
					idle = perUnit
				}
				g := newGuard(t, throttle(threshold, time.Nanosecond))
				assert.Equal(t, "pass", g.outcome("orders"))
				g.clock.Advance(idle)
				g.run([]step{{idle, "orders", 1, "pass"}})
				for range 3 { // no credit
					if perUnit > time.Nanosecond {
						assert.Equal(t, "block", g.outcome("orders"))
					}
				}
			})
		}
	}
}

func TestThrottleOfGiants(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 1e-15, Interval: 24 * time.Hour, Behavior: flow.Throttle, MaxWait: 24 * time.Hour})
	g.run([]step{
		{0, "orders x1048576", 1, "pass"},
		{0, "orders x1048576", 2, "block x2"},
		{10 * 365 * 24 * time.Hour, "orders", 2, "block x2"},
	})
}

func TestThrottleAtOddTimes(t *testing.T) {
	for _, at := range []time.Time{
		time.Unix(0, 0), time.Unix(0, -1), time.Unix(-100, 7), time.Date(1930, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2099, 12, 31, 0, 0, 0, 0, time.UTC), {},
	} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			g := newGuardWith(t, engine.Config{Clock: clocks.NewManual(at)}, throttle(10, 100*ms))
			for range 3 {
				assert.Equal(t, "pass", g.outcome("orders"))
				assert.Equal(t, "100ms", g.outcome("orders"))
				assert.Equal(t, "block", g.outcome("orders"))
				g.clock.Advance(time.Second)
			}
		})
	}
}

// A call that gives up leaves no gap, wherever it stands: the calls behind it get earlier turns and
// wake earlier, and the next call waits only for those before it.
// known bug 21, 128
func TestThrottleGivesBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cancel []int // indexes of waiting calls, in this order
		want   time.Duration
	}{
		{"none", nil, 500 * ms},
		{"the last", []int{3}, 400 * ms},
		{"the last two, from the back", []int{3, 2}, 300 * ms},
		{"the last two, from the front", []int{2, 3}, 300 * ms},
		{"the first", []int{0}, 400 * ms},
		{"the first two", []int{0, 1}, 300 * ms},
		{"one in the middle", []int{1}, 400 * ms},
		{"all, from the back", []int{3, 2, 1, 0}, 100 * ms},
		{"all, from the front", []int{0, 1, 2, 3}, 100 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(t, throttle(10, time.Hour))
			g.clock.SetSleep(clocks.SleepPark)
			assert.Equal(t, "pass", g.outcome("orders"))
			var cancels []context.CancelFunc
			var results []chan error
			for i := range 4 {
				ctx, cancel := context.WithCancel(t.Context())
				result := make(chan error, 1)
				cancels, results = append(cancels, cancel), append(results, result)
				go func() {
					e, err := g.Enter(ctx, "orders", nil)
					e.Exit()
					result <- err
				}()
				g.clock.AwaitParked(i + 1)
			}
			for _, i := range tt.cancel {
				cancels[i]()
				require.ErrorIs(t, <-results[i], context.Canceled)
			}
			g.clock.SetSleep(clocks.SleepRecord)
			assert.Equal(t, tt.want.String(), g.outcome("orders"))
			g.clock.SetSleep(clocks.SleepPark)
			waiting := int64(len(results) - len(tt.cancel))
			for i := range results {
				if slices.Contains(tt.cancel, i) {
					continue
				}
				g.clock.Advance(100*ms - 1)
				assert.Equal(t, waiting, g.Waiting(), "call %d runs too early", i)
				g.clock.Advance(1)
				require.NoError(t, <-results[i])
				waiting--
				assert.Equal(t, waiting, g.Waiting(), "after call %d", i)
				cancels[i]()
			}
		})
	}
}

// No call waits longer than the longest wait, for any rates, units and pauses.
// known bug 38
func TestThrottleWaitsAreInRange(t *testing.T) {
	r := random(t)
	g := newGuard(t)
	for range 300 {
		longest := time.Duration(1 + r.Int64N(int64(flow.MaxWaitLimit)))
		g.load(throttle(r.ExpFloat64()*1e3, longest))
		for range 20 {
			g.clock.Advance(time.Duration(r.Int64N(int64(time.Minute))))
			before := len(g.clock.Slept())
			g.outcome(fmt.Sprintf("orders x%d", 1+r.Int64N(stat.MaxUnits)))
			for _, wait := range g.clock.Slept()[before:] {
				require.Positive(t, wait)
				require.LessOrEqual(t, wait, longest)
			}
		}
	}
}

// leaping is a clock that skips the times at which calls should wake, as a process sees it that was
// paused.
type leaping struct {
	mu      sync.Mutex
	changed *sync.Cond
	now     int64
	asleep  []int64 // the times to wake at
}

func (c *leaping) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *leaping) Sleep(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := c.now + int64(d)
	c.asleep = append(c.asleep, until)
	c.changed.Broadcast()
	for c.now < until {
		c.changed.Wait()
	}
	return nil
}

// leap moves the clock, and wakes all sleepers whose time has come.
func (c *leaping) leap(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += int64(d)
	c.asleep = slices.DeleteFunc(c.asleep, func(until int64) bool { return until <= c.now })
	c.changed.Broadcast()
}

// await returns when n calls are sleeping.
func (c *leaping) await(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.asleep) != n {
		c.changed.Wait()
	}
}

// After a pause of the process for a second, waiting calls still run spaced and in order.
func TestThrottleAfterAStall(t *testing.T) {
	clock := &leaping{now: int64(time.Hour)}
	clock.changed = sync.NewCond(&clock.mu)
	g := newGuardWith(t, engine.Config{Clock: clock}, throttle(100, 500*ms))
	first, err := g.enter("orders")
	require.NoError(t, err)
	defer first.Exit()
	const waiting = 20
	ran := make(chan int, waiting)
	var over sync.WaitGroup
	defer over.Wait() // the last call exits after reporting that it ran
	for i := range waiting {
		over.Go(func() {
			ctx := context.Background() // as half of them have it: such calls can't give up
			if i%2 == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				defer cancel()
			}
			entry, err := g.Enter(ctx, "orders", nil)
			assert.NoError(t, err)
			ran <- i
			entry.Exit()
		})
		clock.await(i + 1)
	}
	clock.leap(time.Second)
	for i := range waiting {
		assert.Equal(t, i, <-ran)
		clock.await(waiting - 1 - i)
		assert.Empty(t, ran, "one at a time")
		clock.leap(10 * ms)
	}
}
