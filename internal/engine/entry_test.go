package engine_test

import (
	"context"
	"errors"
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

func enter(t testing.TB, e *engine.Engine, ctx context.Context, opts ...engine.Option) engine.Entry {
	t.Helper()
	entry, err := e.Enter(ctx, "orders", opts)
	require.NoError(t, err)
	return entry
}

func TestZeroEntry(t *testing.T) {
	var e engine.Entry
	err := errors.New("x")
	e.Exit()
	e.Fail(err)
	e.ExitFailed()
	assert.Equal(t, context.Background(), e.Context())
}

// known bug 65
func TestSecondExitDoesNothing(t *testing.T) {
	e, _ := newEngine(t, engine.Config{}, flow.Rule{Resource: "orders", Threshold: 2, Metric: flow.Concurrency})
	first, second := enter(t, e, t.Context()), enter(t, e, t.Context())
	for range 3 {
		first.Exit()
		r := resource(t, e, "orders")
		totals := r.Totals()
		assert.Equal(t, int64(1), totals.Exited)
		assert.Equal(t, int64(1), r.Meters().Semaphore(nil).InUse())
	}
	second.Exit()
}

func TestOneOfManyExitsCounts(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	for range 200 {
		entry := enter(t, e, t.Context())
		var done sync.WaitGroup
		for range 8 {
			done.Go(entry.Exit)
		}
		done.Wait()
	}
	totals := resource(t, e, "orders").Totals()
	assert.Equal(t, int64(200), totals.Exited)
}

func TestEntriesExitInAnyOrderOnAnyGoroutine(t *testing.T) {
	rnd := random(t)
	e, _ := newEngine(t, engine.Config{}, flow.Rule{Resource: "orders", Threshold: 64, Metric: flow.Concurrency})
	for range 100 {
		entries := make([]engine.Entry, 64)
		for i := range entries {
			entries[i] = enter(t, e, t.Context())
		}
		_, err := e.Enter(t.Context(), "orders", nil)
		require.ErrorIs(t, err, core.ErrBlocked)
		var done sync.WaitGroup
		for _, i := range rnd.Perm(len(entries)) {
			done.Go(entries[i].Exit)
		}
		done.Wait()
	}
}

// No method of a stale handle has an effect while its state serves another call. known bug 53
func TestStaleEntry(t *testing.T) {
	failure := errors.New("x")
	for _, tt := range []struct {
		name string
		use  func(engine.Entry)
	}{
		{"Exit", engine.Entry.Exit},
		{"Fail", func(e engine.Entry) { e.Fail(failure) }},
		{"ExitFailed", engine.Entry.ExitFailed},
		{"Context", func(e engine.Entry) { assert.Equal(t, context.Background(), e.Context()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := newEngine(t, engine.Config{})
			const rounds = 200
			for range rounds { // some of them get the same state
				stale := enter(t, e, t.Context())
				stale.Exit()
				live := enter(t, e, t.Context())
				tt.use(stale)
				assert.Equal(t, int64(1), resource(t, e, "orders").InFlight())
				live.Exit()
				tt.use(stale)
			}
			totals := resource(t, e, "orders").Totals()
			assert.Equal(t, int64(2*rounds), totals.Exited)
			assert.Zero(t, totals.Exception)
		})
	}
}

func TestFail(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	exceptions := func() int64 {
		totals := resource(t, e, "orders").Totals()
		return totals.Exception
	}
	entry := enter(t, e, t.Context(), engine.Units(3))
	entry.Fail(nil)
	entry.Exit()
	assert.Zero(t, exceptions(), "no error")

	entry = enter(t, e, t.Context(), engine.Units(3))
	entry.Fail(errors.New("x"))
	entry.Fail(errors.New("y"))
	assert.Zero(t, exceptions(), "not before it exits")
	entry.Exit()
	entry.Fail(errors.New("z"))
	assert.Equal(t, int64(3), exceptions(), "once, all units")

	enter(t, e, t.Context()).Exit()
	assert.Equal(t, int64(3), exceptions(), "the next call is another")
}

// Response times are never negative and include the wait. known bug 25
func TestResponseTime(t *testing.T) {
	e, clock := newEngine(t, engine.Config{Chain: nil}, flow.Rule{Resource: "orders", Threshold: 10, Behavior: flow.Throttle})
	clock.SetSleep(clocks.SleepAdvance)
	for range 3 {
		entry := enter(t, e, t.Context())
		clock.Advance(7 * time.Millisecond)
		entry.Exit()
	}
	totals := resource(t, e, "orders").Totals()
	assert.Equal(t, 2*(100-7)*time.Millisecond+3*7*time.Millisecond, totals.RT)
	fastest, _ := totals.MinRT()
	assert.Equal(t, 7*time.Millisecond, fastest)
}
