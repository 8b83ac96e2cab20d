package engine_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// apart runs f on a separate goroutine, which f may end, and returns its panic.
func apart(f func()) (reason any) {
	var done sync.WaitGroup
	done.Go(func() {
		defer func() { reason = recover() }()
		f()
	})
	done.Wait()
	return reason
}

// oddClock is a clock whose methods do something else first.
type oddClock struct {
	*clocks.Manual
	now, sleep func()
}

func (c *oddClock) Now() int64 { c.now(); return c.Manual.Now() }

// Sleep hides ManualClock's Sleep, and the type hides its other ways to sleep.
func (c *oddClock) Sleep(ctx context.Context, d time.Duration) error {
	c.sleep()
	return c.Manual.Sleep(ctx, d)
}

type clockOnly struct{ clocks.Clock }

// oddContext is a context whose methods do something else first.
type oddContext struct {
	context.Context
	err, done, deadline func()
}

func (c oddContext) Err() error                  { c.err(); return c.Context.Err() }
func (c oddContext) Done() <-chan struct{}       { c.done(); return c.Context.Done() }
func (c oddContext) Deadline() (time.Time, bool) { c.deadline(); return c.Context.Deadline() }

// The clock and the context are the caller's own code as well. If they panic, or end the goroutine,
// while a call waits, it gives its units back and is counted as rejected; the panic reaches the
// caller.
func TestPanicDuringTheWait(t *testing.T) {
	nothing := func() {}
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for _, at := range []string{"Sleep", "Now", "Err", "Done", "Deadline"} {
			t.Run(name+" in "+at, func(t *testing.T) {
				manual := clocks.NewManual(start)
				odd := &oddClock{Manual: manual, now: nothing, sleep: nothing}
				var clock clocks.Clock = clockOnly{odd}
				ctx := oddContext{t.Context(), nothing, nothing, nothing}
				switch at {
				case "Sleep":
					odd.sleep = end
				case "Now":
					manual.SetSleep(clocks.SleepAdvance)
					odd.sleep = func() { odd.now = end }
				case "Err":
					ctx.err = end
				case "Done":
					clock, ctx.done = manual, end // it waits by itself
				case "Deadline":
					ctx.deadline = end
				}
				k := newTaker(t)
				e, _ := newEngine(t, engine.Config{Clock: clock, Chain: trial.Chain().With(k, engine.After("flow")).With(waiter(), engine.After("flow"))})
				reason := apart(func() {
					_, err := e.Enter(ctx, "orders", []engine.Option{engine.Args(time.Second)})
					t.Error("it returned:", err)
				})
				if name == "panic" {
					assert.Equal(t, "boom", reason)
				}
				odd.now, odd.sleep = nothing, nothing
				manual.Advance(time.Minute) // if it woke a call, that would delay it
				assert.Zero(t, k.semaphore.InUse(), "permits are back")
				assert.Zero(t, k.window.Sum(start.UnixNano()), "units are back")
				assert.Equal(t, int64(1), resource(t, e, "orders").Totals().Block)
				assert.Zero(t, manual.Parked())

				manual.SetSleep(clocks.SleepAdvance)
				entry, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Args(time.Second)})
				require.NoError(t, err, "the next call is as if nothing had happened")
				entry.Exit()
			})
		}
	}
}

// A panic of the clock when a call asks reaches the caller. The call holds nothing and is counted
// nowhere.
func TestPanicOfTheClockOnEnter(t *testing.T) {
	odd := &oddClock{Manual: clocks.NewManual(start), now: func() {}}
	e, _ := newEngine(t, engine.Config{Clock: odd})
	odd.now = func() { panic("boom") }
	assert.PanicsWithValue(t, "boom", func() { _, _ = e.Enter(t.Context(), "orders", nil) })
	odd.now = func() {}
	enter(t, e, t.Context()).Exit()
	assert.Equal(t, int64(1), resource(t, e, "orders").Totals().Pass)
}

// A clock that panics when a call exits costs its response time, not its units.
func TestPanicOfTheClockOnExit(t *testing.T) {
	odd := &oddClock{Manual: clocks.NewManual(start), now: func() {}}
	k := newTaker(t)
	e, _ := newEngine(t, engine.Config{Clock: odd, Chain: trial.Chain().With(k, engine.After("flow"))})
	entry := enter(t, e, t.Context())
	odd.now = func() { panic("boom") }
	assert.Nil(t, apart(entry.Exit))
	odd.now = func() {}
	assert.Zero(t, k.semaphore.InUse())
	assert.Equal(t, int64(1), resource(t, e, "orders").Totals().Exited)
	assert.Equal(t, int64(1), e.Failures())
	entry.Exit()
	enter(t, e, t.Context()).Exit()
	assert.Equal(t, int64(2), resource(t, e, "orders").Totals().Exited)
}
