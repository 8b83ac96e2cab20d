package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
)

// A periodic task keeps its period on the engine's clock, until it is stopped or the engine is
// closed.
func TestEvery(t *testing.T) {
	e, clock := newEngine(t, engine.Config{})
	var at []time.Duration
	stop := e.Every(100*time.Millisecond, func(now int64) { at = append(at, time.Duration(now-start.UnixNano())) })
	clock.Advance(350 * time.Millisecond)
	assert.Equal(t, []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond}, at)
	stop()
	stop()
	clock.Advance(time.Second)
	assert.Len(t, at, 3)

	runs := 0
	e.Every(time.Second, func(int64) { runs++ })
	clock.Advance(time.Second)
	require.NoError(t, e.Close())
	clock.Advance(time.Minute)
	assert.Equal(t, 1, runs)
	stop = e.Every(time.Second, func(int64) { t.Error("a closed engine does nothing") })
	clock.Advance(time.Minute)
	stop()
	require.NoError(t, e.Close())
}

// A panic is counted, and the task continues.
func TestEveryOutlivesAPanic(t *testing.T) {
	e, clock := newEngine(t, engine.Config{})
	runs := 0
	e.Every(time.Second, func(int64) { runs++; panic("once more") })
	clock.Advance(3 * time.Second)
	assert.Equal(t, 3, runs)
	assert.EqualValues(t, 3, e.Failures())
	require.NoError(t, e.Close())
}

// A task may stop itself, and start another.
func TestEveryStopsItself(t *testing.T) {
	e, clock := newEngine(t, engine.Config{})
	runs := 0
	var stop func()
	stop = e.Every(time.Second, func(int64) {
		if runs++; runs == 2 {
			stop()
			stop = e.Every(time.Minute, func(int64) { runs += 100 })
		}
	})
	clock.Advance(62 * time.Second)
	assert.Equal(t, 102, runs)
	require.NoError(t, e.Close())
}

// With another kind of clock the task runs on the machine's timer, never twice at once. When Close
// returns nothing runs.
func TestEveryByTheMachinesTimer(t *testing.T) {
	e, _ := newEngine(t, engine.Config{Clock: clocks.NewSystem()})
	var running, runs atomic.Int64
	var often sync.WaitGroup
	often.Add(20)
	e.Every(time.Microsecond, func(int64) {
		if running.Add(1) != 1 {
			t.Error("twice at once")
		}
		running.Add(-1)
		if runs.Add(1) <= 20 {
			often.Done()
		}
	})
	often.Wait()
	require.NoError(t, e.Close())
	after := runs.Load()
	for range 1000 {
		entry, _ := e.Enter(context.Background(), "r", nil)
		entry.Exit()
	}
	assert.Equal(t, after, runs.Load())
}
