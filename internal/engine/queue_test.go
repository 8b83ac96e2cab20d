package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/stat"
)

// taker is a slot that holds a bucket and permits while the call waits.
type taker struct {
	fake
	window    *stat.Window
	semaphore meter.Semaphore
}

func newTaker(t *testing.T) *taker {
	window, err := stat.NewWindow(stat.Shape{Interval: time.Minute, Buckets: 1})
	require.NoError(t, err)
	k := &taker{window: window}
	k.fake = fake{name: "taker", take: func(inv *engine.Invocation) engine.Verdict {
		bucket, ok := k.window.TryAdd(0, inv.Now(), inv.Units(), 100)
		require.True(t, ok)
		inv.ReserveBucket(k.window, bucket, inv.Units(), 100)
		k.semaphore.Acquire(inv.Lane(), inv.Units())
		inv.ReserveSemaphore(&k.semaphore)
		return engine.Verdict{}
	}}
	return k
}

// The call waits once, for the longest of all waits. If it is rejected, the error names the rule
// that asked for that wait.
func TestOneWaitTheLongest(t *testing.T) {
	says := func(name string, d time.Duration) *fake {
		return &fake{name: name, take: func(*engine.Invocation) engine.Verdict {
			return engine.Verdict{Wait: d, By: refusal(name)}
		}}
	}
	for _, tt := range []struct {
		name  string
		waits []time.Duration // of slots a, b, c
		want  time.Duration
		by    string
	}{
		{name: "first", waits: []time.Duration{3, 2, 1}, want: 3, by: "a"},
		{name: "middle", waits: []time.Duration{1, 3, 2}, want: 3, by: "b"},
		{name: "last", waits: []time.Duration{1, 2, 3}, want: 3, by: "c"},
		{name: "the first wins a tie", waits: []time.Duration{0, 3, 3}, want: 3, by: "b"},
		{name: "nothing below zero", waits: []time.Duration{-1, 0, -3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chain := engine.NewChain(says("a", tt.waits[0]), says("b", tt.waits[1]), says("c", tt.waits[2]))
			e, clock := newEngine(t, engine.Config{Chain: chain})
			clock.SetSleep(clocks.SleepRecord)
			enter(t, e, t.Context()).Exit()
			if tt.want == 0 {
				assert.Empty(t, clock.Slept())
				return
			}
			assert.Equal(t, []time.Duration{tt.want}, clock.Slept())

			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := e.Enter(ended, "orders", nil)
			var b *core.BlockError
			require.ErrorAs(t, err, &b)
			assert.Equal(t, tt.by, b.Rule)
		})
	}
}

func TestDeadlines(t *testing.T) {
	for _, tt := range []struct {
		name     string
		deadline time.Time
		refused  bool
	}{
		{name: "none"},
		{name: "far", deadline: start.Add(time.Hour)},
		{name: "right then", deadline: start.Add(time.Second)},
		{name: "a nanosecond early", deadline: start.Add(time.Second - 1), refused: true},
		{name: "beyond nanoseconds", deadline: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
	} {
		for _, clockName := range []string{"manual", "of a user"} {
			t.Run(tt.name+"/"+clockName, func(t *testing.T) {
				manual := clocks.NewManual(start)
				manual.SetSleep(clocks.SleepAdvance)
				var clock clocks.Clock = manual
				if clockName != "manual" {
					clock = userClock{manual}
				}
				k := newTaker(t)
				chain := trial.Chain().With(k, engine.After("flow")).With(waiter(), engine.After("flow"))
				e, _ := newEngine(t, engine.Config{Clock: clock, Chain: chain})
				// The context itself never ends here: its time is not the clock's.
				ctx := t.Context()
				if !tt.deadline.IsZero() {
					ctx = deadline{ctx, tt.deadline}
				}
				entry, err := e.Enter(ctx, "orders", []engine.Option{engine.Args(time.Second)})
				entry.Exit()
				assert.Zero(t, k.semaphore.InUse())
				totals := resource(t, e, "orders").Totals()
				if !tt.refused {
					require.NoError(t, err)
					assert.Equal(t, int64(1), k.window.Sum(manual.Now()))
					return
				}
				require.ErrorIs(t, err, core.ErrBlocked)
				assert.NotErrorIs(t, err, context.DeadlineExceeded, "it has not ended yet")
				assert.Empty(t, manual.Slept(), "refused at once")
				assert.Zero(t, k.window.Sum(manual.Now()))
				assert.Equal(t, int64(1), totals.Block)
			})
		}
	}
}

type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

// userClock is a custom clock.
type userClock struct{ manual *clocks.Manual }

func (c userClock) Now() int64 { return c.manual.Now() }
func (c userClock) Sleep(ctx context.Context, d time.Duration) error {
	return c.manual.Sleep(ctx, d)
}

// A context that has ended rejects a call that would have to wait, and no other.
func TestEndedContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	e, clock := newEngine(t, engine.Config{Chain: trial.Chain().With(waiter(), engine.After("flow"))})
	enter(t, e, ended).Exit()
	_, err := e.Enter(ended, "orders", []engine.Option{engine.Args(time.Second)})
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Empty(t, clock.Slept())
}

func TestNilContext(t *testing.T) {
	e, clock := newEngine(t, engine.Config{Chain: trial.Chain().With(waiter(), engine.After("flow"))})
	clock.SetSleep(clocks.SleepAdvance)
	var none context.Context
	for _, opts := range [][]engine.Option{nil, {engine.Args(time.Second)}} {
		entry, err := e.Enter(none, "orders", opts)
		require.NoError(t, err)
		assert.NotNil(t, entry.Context())
		entry.Exit()
	}
	assert.Nil(t, engine.ContextOf(none))
	assert.Equal(t, "app", engine.ContextOf(engine.WithOrigin(engine.WithContext(none, "web"), "app")).Origin())
}

// A context that ends while the call waits gives everything back, and the error has its cause.
// known bug 58, 61
func TestContextEndsDuringTheWait(t *testing.T) {
	k := newTaker(t)
	chain := trial.Chain().With(k, engine.After("flow")).With(waiter(), engine.After("flow"))
	e, clock := newEngine(t, engine.Config{Chain: chain})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := e.Enter(ctx, "orders", []engine.Option{engine.Args(time.Second), engine.Units(3)})
		result <- err
	}()
	clock.AwaitParked(1)
	assert.Equal(t, int64(1), e.Waiting())
	assert.Equal(t, int64(3), k.semaphore.InUse(), "permits are held while waiting")
	assert.Equal(t, int64(3), k.window.Sum(clock.Now()))
	cancel()
	err := <-result
	require.ErrorIs(t, err, core.ErrBlocked)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, core.KindFlow, core.KindOf(err))
	assert.Equal(t, `penstock: gave up waiting for flow rule "waiter" on "orders": context canceled`, err.Error())
	assert.Zero(t, k.semaphore.InUse())
	assert.Zero(t, k.window.Sum(clock.Now()))
	totals := resource(t, e, "orders").Totals()
	assert.Equal(t, int64(3), totals.Block)
	assert.Zero(t, totals.Pass)
}

// Everything is given back on the real clock too, in fake time: after a thousand waits, a third of
// them ended by their context, some at the instant of the grant.
func TestWaitsOnTheSystemClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTaker(t)
		chain := trial.Chain().With(k, engine.After("flow")).With(waiter(), engine.After("flow"))
		e, _ := newEngine(t, engine.Config{Clock: clocks.NewSystem(), Chain: chain})
		var done sync.WaitGroup
		var mu sync.Mutex
		passed := int64(0)
		for i := range 90 {
			done.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%3 == 0 {
					time.AfterFunc(time.Duration(10+i%2)*time.Millisecond, cancel)
				}
				began := time.Now()
				entry, err := e.Enter(ctx, "orders", []engine.Option{engine.Args(11 * time.Millisecond)})
				switch {
				case err == nil:
					assert.Equal(t, 11*time.Millisecond, time.Since(began))
					mu.Lock()
					passed++
					mu.Unlock()
				case i%3 != 0:
					t.Error(err)
				default:
					assert.ErrorIs(t, err, context.Canceled)
				}
				entry.Exit()
			})
		}
		done.Wait()
		assert.Equal(t, passed, k.window.Sum(e.Config().Clock.Now()))
		assert.Zero(t, k.semaphore.InUse())
	})
}

// A slot that makes a call wait without naming a rule rejects it with an error like any other,
// never a nil pointer in an error.
func TestWaitInNobodysName(t *testing.T) {
	nameless := &fake{name: "nameless", take: func(*engine.Invocation) engine.Verdict { return engine.Verdict{Wait: time.Second} }}
	e, _ := newEngine(t, engine.Config{Chain: trial.Chain().With(nameless, engine.After("flow"))})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Enter(ended, "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Contains(t, err.Error(), `"orders"`)
	assert.Equal(t, core.KindNone, core.KindOf(err))
	assert.Zero(t, time.Duration(e.Failures()))
}

// A slot sees the time at which the call asked and, in later phases, the times at which it was
// released and exited.
func TestTimesOfACall(t *testing.T) {
	var clock *clocks.Manual
	seen := map[string]time.Duration{}
	note := func(phase string, inv *engine.Invocation) {
		seen[phase] = time.Duration(inv.Now() - start.UnixNano())
		seen[phase+" began"] = time.Duration(inv.Began() - start.UnixNano())
		seen[phase+" runs"] = time.Duration(inv.Runs() - start.UnixNano())
	}
	spy := &fake{name: "spy",
		ask:       func(inv *engine.Invocation) engine.Verdict { note("Ask", inv); return engine.Verdict{} },
		passed:    func(inv *engine.Invocation) { note("Passed", inv); assert.False(t, inv.Borrowed()) },
		completed: func(inv *engine.Invocation) { note("Completed", inv) },
	}
	e, clock := newEngine(t, engine.Config{Chain: engine.NewChain(spy, waiter())})
	clock.SetSleep(clocks.SleepAdvance)
	entry := enter(t, e, t.Context(), engine.Args(2*time.Second))
	clock.Advance(5 * time.Second)
	entry.Exit()
	assert.Equal(t, map[string]time.Duration{
		"Ask": 0, "Ask began": 0, "Ask runs": 0,
		"Passed": 2 * time.Second, "Passed began": 0, "Passed runs": 2 * time.Second,
		"Completed": 7 * time.Second, "Completed began": 0, "Completed runs": 7 * time.Second,
	}, seen)
}

// A clock that is set back during a call gives it no negative times. known bug 23, 25, 26
func TestClockThatGoesBack(t *testing.T) {
	c := &steppedClock{now: start.UnixNano()}
	e, _ := newEngine(t, engine.Config{Clock: c, Chain: trial.Chain().With(waiter(), engine.After("flow"))})
	entry := enter(t, e, t.Context())
	c.now -= int64(time.Hour)
	entry.Exit()
	totals := resource(t, e, "orders").Totals()
	assert.Zero(t, totals.RT)
	enter(t, e, t.Context(), engine.Args(time.Second)).Exit()
	assert.Equal(t, int64(2), resource(t, e, "orders").Totals().Pass)
}

type steppedClock struct{ now int64 }

func (c *steppedClock) Now() int64                                 { return c.now }
func (c *steppedClock) Sleep(context.Context, time.Duration) error { return nil }

var errOwn = errors.New("own")

// The error from a custom context is returned.
func TestOwnContextError(t *testing.T) {
	e, _ := newEngine(t, engine.Config{Clock: failingClock{}, Chain: trial.Chain().With(waiter(), engine.After("flow"))})
	_, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Args(time.Second)})
	require.ErrorIs(t, err, errOwn)
	require.ErrorIs(t, err, core.ErrBlocked)
}

type failingClock struct{}

func (failingClock) Now() int64                                 { return start.UnixNano() }
func (failingClock) Sleep(context.Context, time.Duration) error { return errOwn }

// A call that would have to wait and can't takes nothing, not even for an instant: others may have
// queued behind it before it gives its turn back.
func TestWhoCantWaitTakesNothing(t *testing.T) {
	took := 0
	slot := &fake{name: "queue",
		ask: func(*engine.Invocation) engine.Verdict {
			return engine.Verdict{Wait: time.Second, By: refusal("queue")}
		},
		take: func(*engine.Invocation) engine.Verdict {
			took++
			return engine.Verdict{Wait: time.Second, By: refusal("queue")}
		},
	}
	e, clock := newEngine(t, engine.Config{Chain: trial.Chain().With(slot, engine.After("flow"))})
	clock.SetSleep(clocks.SleepRecord)
	ended, end := context.WithCancel(t.Context())
	end()
	soon, cancel := context.WithDeadline(t.Context(), start.Add(time.Second-1))
	defer cancel()
	for _, ctx := range []context.Context{ended, soon} {
		_, err := e.Enter(ctx, "orders", nil)
		require.ErrorIs(t, err, core.ErrBlocked)
		assert.Zero(t, took)
	}
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	entry.Exit()
	assert.Equal(t, 1, took)
}
