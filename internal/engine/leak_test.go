package engine_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// leaky forgets to exit.
func leaky(t testing.TB, e *engine.Engine, name string) engine.Entry {
	entry, err := e.Enter(t.Context(), name, nil)
	require.NoError(t, err)
	return entry
}

// A call that does not exit is reported once, when it is due, with the code that made it. A call
// that exits in time never is. known bug 55
func TestLeakIsReported(t *testing.T) {
	var log lines
	e, clock := newEngine(t, engine.Config{LeakAfter: time.Minute, Logger: log.logger()})
	clock.Advance(10 * time.Second)
	leaked := leaky(t, e, "orders")
	for range 100 {
		enter(t, e, t.Context()).Exit()
	}
	clock.Advance(time.Minute - 1)
	assert.Empty(t, e.Leaks())
	assert.Empty(t, log.all(), "not before its time")

	clock.Advance(1)
	require.Len(t, log.all(), 1)
	line := log.all()[0]
	assert.Contains(t, line, `level=WARN msg="penstock: a call has not exited" resource=orders count=1 age=1m0s stack="`)
	leaks := e.Leaks()
	require.Len(t, leaks, 1)
	assert.Equal(t, "orders", leaks[0].Resource)
	assert.Equal(t, time.Minute, leaks[0].Age)
	first, rest, _ := strings.Cut(leaks[0].Stack, "\n")
	assert.True(t, strings.HasSuffix(first, "engine_test.leaky"), "the first frame is the caller's: %s", first)
	assert.Contains(t, rest, "engine_test.TestLeakIsReported")
	assert.Contains(t, rest, "leak_test.go:")
	assert.NotContains(t, leaks[0].Stack, "penstock/internal/engine.")
	assert.NotContains(t, leaks[0].Stack, "runtime.goexit")
	assert.Contains(t, line, "engine_test.leaky")

	clock.Advance(time.Hour)
	assert.Len(t, log.all(), 1, "once")
	assert.Equal(t, int64(1), e.Leaked())
	assert.Equal(t, time.Hour+time.Minute, e.Leaks()[0].Age)

	leaked.Exit() // late, and counted like any other
	assert.Empty(t, e.Leaks())
	assert.Equal(t, int64(101), resource(t, e, "orders").Totals().Exited)
	clock.Advance(time.Hour)
	assert.Equal(t, int64(1), e.Leaked())

	again := leaky(t, e, "orders") // perhaps with the same state
	clock.Advance(2 * time.Minute)
	assert.Equal(t, int64(2), e.Leaked(), "another call, another report")
	again.Exit()
}

// Calls of one resource with one stack are reported in one line, with their number.
func TestLeaksOfOneStackMakeOneLine(t *testing.T) {
	var log lines
	e, clock := newEngine(t, engine.Config{LeakAfter: time.Second, Logger: log.logger()})
	var open []engine.Entry
	for range 40 {
		open = append(open, leaky(t, e, "orders"))
		clock.Advance(time.Millisecond)
	}
	open = append(open, leaky(t, e, "carts"))
	clock.Advance(time.Second + time.Second/8)
	assert.Equal(t, int64(41), e.Leaked())
	assert.LessOrEqual(t, len(log.all()), 3)
	leaks := e.Leaks()
	require.Len(t, leaks, 41)
	for i := 1; i < len(leaks); i++ {
		assert.GreaterOrEqual(t, leaks[i-1].Age, leaks[i].Age, "the oldest first")
	}
	for _, entry := range open {
		entry.Exit()
	}
}

// A name chosen by an outsider can't add a line of its own. known bug 104
func TestLeakOfAHostileName(t *testing.T) {
	var log lines
	e, clock := newEngine(t, engine.Config{LeakAfter: time.Second, Logger: log.logger()})
	entry := leaky(t, e, "a\nlevel=ERROR msg=forged")
	clock.Advance(time.Second)
	require.Len(t, log.all(), 1)
	assert.Contains(t, log.all()[0], `resource="a\\nlevel=ERROR msg=forged"`)
	entry.Exit()
}

// The age counts from admission, not from the beginning of the wait; a waiting call is not a leak,
// nor is a rejected one.
func TestLeaksAreOfCallsThatRun(t *testing.T) {
	e, clock := newEngine(t, engine.Config{LeakAfter: time.Second, Chain: trial.Chain().With(waiter(), engine.After("flow"))},
		flow.Rule{Resource: "closed", Threshold: 0})
	_, err := e.Enter(t.Context(), "closed", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	entered := make(chan engine.Entry)
	go func() {
		entry, _ := e.Enter(t.Context(), "orders", []engine.Option{engine.Args(time.Minute)})
		entered <- entry
	}()
	clock.AwaitParked(1)
	clock.Advance(time.Minute - 1)
	assert.Zero(t, e.Leaked())
	clock.Advance(1)
	entry := <-entered
	clock.Advance(time.Second - 1)
	assert.Empty(t, e.Leaks())
	clock.Advance(1)
	assert.Len(t, e.Leaks(), 1)
	assert.Equal(t, int64(1), e.Leaked())
	entry.Exit()
}

// With the machine's clock, leaks are found by a timer, which Close stops.
func TestLeaksOnTheSystemClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		e, _ := newEngine(t, engine.Config{Clock: clocks.NewSystem(), LeakAfter: time.Minute, Logger: log.logger()})
		entry := leaky(t, e, "orders")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Len(t, log.all(), 1)
		require.NoError(t, e.Close())
		require.NoError(t, e.Close())
		late := leaky(t, e, "orders")
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Len(t, log.all(), 1, "no more reports")
		assert.Len(t, e.Leaks(), 2, "they are still known")
		entry.Exit()
		late.Exit()
	})
}

// A custom clock whose Sleep does nothing doesn't make the search spin.
func TestLeaksBesideAClockThatDoesNotSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(sleeplessClock)
		e, _ := newEngine(t, engine.Config{Clock: c, LeakAfter: time.Minute})
		entry := leaky(t, e, "orders")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Zero(t, e.Leaked(), "its time stood still")
		c.now.Add(int64(time.Hour))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, int64(1), e.Leaked())
		entry.Exit()
		require.NoError(t, e.Close())
	})
}

type sleeplessClock struct{ now atomic.Int64 }

func (c *sleeplessClock) Now() int64                                 { return c.now.Load() }
func (c *sleeplessClock) Sleep(context.Context, time.Duration) error { return nil }

// Advancing a clock finds leaks in every sleep mode.
func TestLeaksInEverySleepMode(t *testing.T) {
	for _, mode := range []clocks.SleepMode{clocks.SleepPark, clocks.SleepRecord, clocks.SleepAdvance} {
		e, clock := newEngine(t, engine.Config{LeakAfter: time.Minute})
		clock.SetSleep(mode)
		entry := leaky(t, e, "orders")
		clock.Advance(time.Minute)
		assert.Equal(t, int64(1), e.Leaked())
		assert.Empty(t, clock.Slept())
		assert.Zero(t, clock.Parked())
		entry.Exit()
	}
}

// The log is written without a lock that calls need, and a handler that panics loses only its line.
// known bug 60
func TestLeakHandlers(t *testing.T) {
	var e *engine.Engine
	seen := 0
	e, clock := newEngine(t, engine.Config{LeakAfter: time.Second, Logger: slog.New(handler(func(slog.Record) {
		seen++
		entry, err := e.Enter(context.Background(), "log", nil)
		assert.NoError(t, err)
		entry.Exit()
		assert.Len(t, e.Leaks(), 2)
		assert.NoError(t, e.Update(func(*engine.SnapshotBuilder) error { return nil }))
		panic("disk full")
	}))})
	first, second := leaky(t, e, "a"), leaky(t, e, "b")
	clock.Advance(time.Second)
	assert.Equal(t, 2, seen)
	assert.Equal(t, int64(2), e.Leaked())
	first.Exit()
	second.Exit()
}

type handler func(slog.Record)

func (handler) Enabled(context.Context, slog.Level) bool        { return true }
func (h handler) Handle(_ context.Context, r slog.Record) error { h(r); return nil }
func (h handler) WithAttrs([]slog.Attr) slog.Handler            { return h }
func (h handler) WithGroup(string) slog.Handler                 { return h }

// A leak's memory is bounded: beyond a number, calls are not watched, which is logged, and there is
// room again as calls exit.
func TestLeaksAreBounded(t *testing.T) {
	var log lines
	e, clock := newEngine(t, engine.Config{LeakAfter: time.Second, Logger: log.logger()})
	const most, beyond = 1 << 16, 10
	var open []engine.Entry
	for range most + beyond {
		open = append(open, enter(t, e, context.Background()))
	}
	clock.Advance(time.Second)
	assert.Equal(t, int64(most), e.Leaked())
	assert.Len(t, e.Leaks(), most)
	require.Len(t, log.all(), 2)
	assert.Contains(t, log.all()[1], "watched=65536 beyond=10")
	for _, entry := range open {
		entry.Exit()
	}
	assert.Empty(t, e.Leaks())
	entry := leaky(t, e, "orders")
	clock.Advance(2 * time.Second)
	assert.Equal(t, int64(most+1), e.Leaked())
	assert.Len(t, log.all(), 3)
	entry.Exit()
}

// Calls begin, end and leak on many goroutines while others list the leaks.
func TestLeaksUnderFire(t *testing.T) {
	e, clock := newEngine(t, engine.Config{LeakAfter: time.Second})
	const workers, rounds = 8, 500
	var calls, lookers sync.WaitGroup
	stop := make(chan struct{})
	lookers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				clock.Advance(100 * time.Millisecond)
				e.Leaks()
				runtime.Gosched()
			}
		}
	})
	kept := make([][]engine.Entry, workers)
	for g := range workers {
		calls.Go(func() {
			for i := range rounds {
				entry := leaky(t, e, "orders")
				if i%50 == 0 {
					kept[g] = append(kept[g], entry)
				} else {
					entry.Exit()
				}
			}
		})
	}
	calls.Wait()
	close(stop)
	lookers.Wait()
	clock.Advance(2 * time.Second)
	assert.Len(t, e.Leaks(), workers*rounds/50)
	assert.GreaterOrEqual(t, e.Leaked(), int64(workers*rounds/50))
	for _, entries := range kept {
		for _, entry := range entries {
			entry.Exit()
		}
	}
	assert.Empty(t, e.Leaks())
}

// The watch is off by default, and then lists nothing. If it is on, calls allocate nothing once the
// states exist.
func TestLeakWatchOffAndOn(t *testing.T) {
	off, clock := newEngine(t, engine.Config{})
	entry := leaky(t, off, "orders")
	clock.Advance(24 * time.Hour)
	assert.Empty(t, off.Leaks())
	assert.Zero(t, off.Leaked())
	entry.Exit()

	on, _ := newEngine(t, engine.Config{LeakAfter: time.Second})
	for _, e := range []*engine.Engine{off, on} {
		ctx := t.Context()
		race.AllocatesNothing(t, 1000, func() {
			entry, _ := e.Enter(ctx, "orders", nil)
			entry.Exit()
		})
	}
}
