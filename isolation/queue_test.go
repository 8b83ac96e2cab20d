package isolation_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
)

func TestCallsWaitInLine(t *testing.T) {
	g := newGuard(t, queued(1, 4, time.Second))
	running := g.enter()
	a := g.waits("a")
	b := g.waits("b")
	first := g.waits("first", engine.Prioritized())
	second := g.waits("second", engine.Prioritized())
	g.refused() // the queue is full
	g.refused(engine.Prioritized())
	assert.EqualValues(t, 4, g.Waiting())
	assert.EqualValues(t, 4, g.queued())
	g.clock.Advance(time.Second - 1)
	running.Exit()
	for _, c := range []*call{first, a, second, b} {
		<-c.done
		require.NoError(t, c.err)
		c.exit()
	}
	assert.Equal(t, []string{"first", "a", "second", "b"}, g.order())
	assert.Zero(t, g.Waiting())
	assert.Zero(t, g.queued())
	g.enter().Exit()
}

// A call's time in the queue is part of its response time, and it counts as passed when it runs.
func TestFiguresOfACallInLine(t *testing.T) {
	g := newGuard(t, queued(1, 1, time.Minute))
	running := g.enter()
	a := g.waits("a")
	g.clock.Advance(10 * time.Second)
	r, _ := g.FindResource("orders")
	assert.EqualValues(t, 1, r.Totals().Pass)
	running.Exit()
	<-a.done
	assert.EqualValues(t, 2, r.Totals().Pass)
	g.clock.Advance(time.Second)
	a.exit()
	totals := r.Totals()
	assert.Equal(t, 21*time.Second, totals.RT)
}

// No later call jumps ahead of a batch at the head of the queue.
func TestBatchInTheQueue(t *testing.T) {
	g := newGuard(t, queued(3, 5, time.Second))
	x, y := g.enter(engine.Units(2)), g.enter()
	batch := g.waits("batch", engine.Units(3))
	small := g.waits("small")
	y.Exit()
	assert.False(t, batch.ended())
	assert.False(t, small.ended())
	x.Exit()
	batch.exit()
	small.exit()
	assert.Equal(t, []string{"batch", "small"}, g.order())
}

func TestLongestWaitInLine(t *testing.T) {
	g := newGuard(t, queued(1, 2, time.Second))
	running := g.enter()
	a := g.waits("a")
	g.clock.Advance(400 * ms)
	b := g.waits("b")
	g.clock.Advance(600*ms - 1)
	assert.False(t, a.ended())
	g.clock.Advance(1)
	<-a.done
	require.ErrorIs(t, a.err, core.ErrBlocked)
	require.NotErrorIs(t, a.err, context.DeadlineExceeded)
	assert.Equal(t, core.KindIsolation, core.KindOf(a.err))
	assert.EqualValues(t, 1, g.queued())
	running.Exit()
	b.exit()
	require.NoError(t, b.err)
	assert.EqualValues(t, 1, g.figures("permits").Refused)
	g.enter().Exit()
}

// known bug 61
func TestContextEndsInLine(t *testing.T) {
	g := newGuard(t, queued(1, 3, time.Hour))
	running := g.enter()
	ctx, cancel := context.WithCancel(t.Context())
	a := g.starts(ctx, "a")
	b := g.waits("b")
	cancel()
	<-a.done
	require.ErrorIs(t, a.err, context.Canceled)
	require.ErrorIs(t, a.err, core.ErrBlocked)
	assert.Equal(t, core.KindIsolation, core.KindOf(a.err))
	assert.EqualValues(t, 1, g.queued())
	_, err := g.Enter(ctx, "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked, "it had ended before")
	require.NotErrorIs(t, err, context.Canceled)
	assert.EqualValues(t, 1, g.queued())
	running.Exit()
	b.exit()
	require.NoError(t, b.err)
}

// dated is a context with a deadline that only the test's clock knows.
type dated struct {
	context.Context
	at time.Time
}

func (d dated) Deadline() (time.Time, bool) { return d.at, true }

// The wait is not known in advance, so a call with a deadline waits until then.
func TestDeadlineInTheQueue(t *testing.T) {
	g := newGuard(t, queued(1, 3, time.Hour))
	running := g.enter()
	a := g.starts(dated{t.Context(), start.Add(time.Second)}, "a")
	b := g.starts(dated{t.Context(), start.Add(time.Second)}, "b")
	g.clock.Advance(time.Second - 1)
	assert.False(t, a.ended())
	running.Exit()
	<-a.done
	require.NoError(t, a.err)
	g.clock.Advance(1)
	<-b.done
	require.ErrorIs(t, b.err, context.DeadlineExceeded)
	assert.Equal(t, core.KindIsolation, core.KindOf(b.err))
	a.exit()
	e, err := g.Enter(dated{t.Context(), start}, "orders", nil)
	require.NoError(t, err, "who needn't wait doesn't look at it")
	e.Exit()
}

// On a clock that doesn't really wait, no other call can end during the wait, so the call is refused
// when its time in the queue expires.
func TestSleepModes(t *testing.T) {
	for _, mode := range []clocks.SleepMode{clocks.SleepRecord, clocks.SleepAdvance} {
		g := newGuard(t, queued(1, 1, time.Second))
		g.clock.SetSleep(mode)
		running := g.enter()
		g.refused()
		assert.Equal(t, []time.Duration{time.Second}, g.clock.Slept())
		running.Exit()
		g.enter().Exit()
	}
}

// With a throttle before the queue, a call is queued while it waits for its turn; after its turn it
// waits for the remainder of MaxWait.
func TestThrottleThenLine(t *testing.T) {
	g := newGuard(t)
	throttle := flow.Rule{ID: "even", Resource: "orders", Threshold: 10, Behavior: flow.Throttle, MaxWait: time.Second}
	g.loadWith([]flow.Rule{throttle}, queued(1, 3, 500*ms))
	running := g.enter()
	a, b, c := g.waits("a"), g.waits("b"), g.waits("c") // turns at 100, 200, 300 ms
	running.Exit()                                      // a gets its permit, and waits for its turn
	assert.False(t, a.ended())
	assert.EqualValues(t, 2, g.queued())
	g.clock.Advance(100 * ms)
	<-a.done
	require.NoError(t, a.err)
	g.clock.Advance(100 * ms)
	assert.False(t, b.ended(), "it is b's turn, and no permit is free")
	a.exit()
	<-b.done
	require.NoError(t, b.err)
	g.clock.Advance(299 * ms)
	assert.False(t, c.ended())
	g.clock.Advance(ms)
	<-c.done
	assert.Equal(t, core.KindIsolation, core.KindOf(c.err))
	b.exit()
	assert.Equal(t, []time.Duration{100 * ms, 200 * ms, 300 * ms, 300 * ms, 200 * ms}, g.clock.Slept())
}

// If a throttle's turn is later than MaxWait, the call has its permit by then, or is refused.
func TestThrottleLongerThanLine(t *testing.T) {
	for _, ends := range []bool{true, false} {
		g := newGuard(t)
		throttle := flow.Rule{ID: "even", Resource: "orders", Threshold: 1, Behavior: flow.Throttle, MaxWait: time.Second}
		g.loadWith([]flow.Rule{throttle}, queued(1, 3, 500*ms))
		running := g.enter()
		a := g.waits("a")
		if g.clock.Advance(700 * ms); ends {
			running.Exit()
		}
		g.clock.Advance(300 * ms)
		<-a.done
		assert.Equal(t, ends, a.err == nil, "%v", a.err)
		assert.Len(t, g.clock.Slept(), 1)
		a.exit()
		running.Exit()
	}
}

// With two permits, two calls run, and b, which wants two, c and d are queued.
// known bug 64
func TestRulesChangeWhileCallsWait(t *testing.T) {
	off, shadow, renamed := queued(2, 9, time.Hour), queued(2, 9, time.Hour), queued(2, 9, time.Hour)
	off.Mode, shadow.Mode, renamed.ID = spec.Off, spec.Shadow, "renamed"
	wide := isolation.Rule{ID: "wide", Resource: ".*", Match: spec.MatchRegex, Threshold: 3}
	for _, tt := range []struct {
		name string
		next []isolation.Rule
		left int64 // units queued then
		lost int   // calls
	}{
		{"the same", []isolation.Rule{queued(2, 9, time.Hour)}, 4, 0},
		{"higher", []isolation.Rule{queued(4, 9, time.Hour)}, 2, 0},
		{"higher, but not for b", []isolation.Rule{queued(3, 9, time.Hour)}, 4, 0},
		{"higher, no queue", []isolation.Rule{permits(5)}, 1, 0},
		{"much higher", []isolation.Rule{queued(9, 9, time.Hour)}, 0, 0},
		{"lower", []isolation.Rule{queued(1, 9, time.Hour)}, 2, 1},
		{"zero", []isolation.Rule{permits(0)}, 0, 3},
		{"renamed", []isolation.Rule{renamed}, 4, 0},
		{"a wide one is left", []isolation.Rule{wide}, 4, 0},
		{"none", nil, 0, 0},
		{"off", []isolation.Rule{off}, 0, 0},
		{"shadow", []isolation.Rule{shadow}, 0, 0},
		{"of another resource", []isolation.Rule{{Resource: "other", Threshold: 1}}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(t, queued(2, 9, time.Hour), wide)
			running := []engine.Entry{g.enter(), g.enter()}
			b := g.waits("b", engine.Units(2))
			calls := []*call{b, g.waits("c"), g.waits("d")}
			g.load(tt.next...)
			require.Equal(t, tt.left, g.queued())
			if tt.left == 0 {
				for _, c := range calls { // not when others exit
					<-c.done
				}
			}
			for _, e := range running {
				e.Exit()
			}
			lost := 0
			for _, c := range calls {
				if <-c.done; c.err != nil {
					assert.Equal(t, core.KindIsolation, core.KindOf(c.err))
					assert.NotErrorIs(t, c.err, context.Canceled)
					lost++
				}
				c.exit()
			}
			assert.Equal(t, tt.lost, lost)
			assert.Zero(t, g.queued())
			g.load(permits(2))
			g.enter(engine.Units(2)).Exit()
		})
	}
}

// A later slot refuses, at once or when asked again, or panics: the next call in the queue gets the
// place, or the permit.
func TestRefusedBehindTheLine(t *testing.T) {
	for _, when := range []string{"take", "recheck"} {
		t.Run(when, func(t *testing.T) {
			late := &lateSlot{when: when, refusal: engine.NewCounted(core.BlockError{Kind: core.KindBreaker, Resource: "orders", Rule: "late"}, nil, nil, nil)}
			g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(late, engine.After("isolation"))}, queued(1, 3, time.Second))
			running := g.enter()
			if when == "take" {
				_, err := g.Enter(t.Context(), "orders", []engine.Option{engine.Units(1), engine.Args("refuse")})
				assert.Equal(t, core.KindBreaker, core.KindOf(err))
				assert.Zero(t, g.queued())
				running.Exit()
				g.enter().Exit()
				return
			}
			a := g.waits("a", engine.Args("refuse"))
			b := g.waits("b")
			running.Exit()
			<-a.done
			assert.Equal(t, core.KindBreaker, core.KindOf(a.err))
			b.exit()
			require.NoError(t, b.err)
		})
	}
}

type lateSlot struct {
	when    string
	refusal *core.BlockError
}

func (s *lateSlot) Name() string { return "late" }

func (s *lateSlot) says(when string, inv *engine.Invocation) engine.Verdict {
	if when == s.when && len(inv.Args()) > 0 {
		return engine.Verdict{Block: s.refusal}
	}
	return engine.Verdict{}
}

func (s *lateSlot) Ask(*engine.Invocation) engine.Verdict         { return engine.Verdict{} }
func (s *lateSlot) Take(inv *engine.Invocation) engine.Verdict    { return s.says("take", inv) }
func (s *lateSlot) Recheck(inv *engine.Invocation) engine.Verdict { return s.says("recheck", inv) }

// faulty is a user's clock that fails while a call waits.
type faulty struct{ sleep func() }

func (c *faulty) Now() int64 { return start.UnixNano() }

func (c *faulty) Sleep(context.Context, time.Duration) error {
	c.sleep()
	return nil
}

// hostile is a context with a method that panics.
type hostile struct {
	context.Context
	on string
}

func (c hostile) Done() <-chan struct{} {
	if c.on == "Done" {
		panic("Done")
	}
	return c.Context.Done()
}

func (c hostile) Err() error {
	if c.on == "Err" {
		panic("Err")
	}
	return c.Context.Err()
}

// If a clock or a context panics or ends the goroutine while the call is queued, the call is refused
// and gives up its place.
// known bug 54, 63
func TestPanicsInLine(t *testing.T) {
	c := new(faulty)
	g := newGuardWith(t, engine.Config{Clock: c}, queued(1, 3, time.Second))
	running := g.enter()
	c.sleep = func() { panic("asleep") }
	assert.PanicsWithValue(t, "asleep", func() { _, _ = g.Enter(t.Context(), "orders", nil) })
	for _, on := range []string{"Done", "Err"} {
		c.sleep = func() {}
		assert.PanicsWithValue(t, on, func() { _, _ = g.Enter(hostile{t.Context(), on}, "orders", nil) })
	}
	c.sleep = runtime.Goexit
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = g.Enter(t.Context(), "orders", nil)
	}()
	<-over
	assert.Zero(t, g.queued())
	assert.Zero(t, g.Waiting())
	assert.EqualValues(t, 4, g.figures("permits").Refused)
	running.Exit()
	g.enter().Exit()
	assert.Zero(t, g.Failures())
}

// When guarded code panics, its permit goes to the next call.
// known bug 55, 63
func TestPanicInGuardedCode(t *testing.T) {
	g := newGuard(t, queued(1, 3, time.Second))
	running := g.enter()
	a := g.waits("a")
	assert.Panics(t, func() {
		defer running.ExitFailed()
		panic("guarded")
	})
	a.exit()
	require.NoError(t, a.err)
}

// A rule is loaded while calls are in flight: waiting calls get the permits they free.
// known bug 59, 64
func TestQueueBehindCallsThatWereThereBefore(t *testing.T) {
	g := newGuard(t)
	early := g.enter(engine.Units(2))
	g.load(queued(2, 3, time.Hour))
	a := g.waits("a")
	early.Exit()
	a.exit()
	require.NoError(t, a.err)
}
