package core_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

func since(c *core.ManualClock) time.Duration { return time.Duration(c.Now() - start.UnixNano()) }

func TestManualClockStandsStill(t *testing.T) {
	c := core.NewManualClock(start)
	assert.Equal(t, start.UnixNano(), c.Now())
	assert.Equal(t, c.Now(), c.Now())
	c.Advance(time.Millisecond)
	assert.Equal(t, time.Millisecond, since(c))
}

func TestManualClockNeverGoesBack(t *testing.T) {
	c := core.NewManualClock(start)
	c.Advance(-time.Hour)
	assert.Zero(t, since(c))
	c.AdvanceTo(math.MinInt64)
	assert.Zero(t, since(c))
}

// time.Time{} lies beyond what nanoseconds since 1970 can show.
func TestManualClockFromTheZeroTime(t *testing.T) {
	c := core.NewManualClock(time.Time{})
	assert.Equal(t, int64(0), c.Now())
}

func TestManualClockModes(t *testing.T) {
	const d = 3 * time.Second
	for _, tt := range []struct {
		name  string
		mode  core.SleepMode
		moved time.Duration // by the sleep itself
		parks bool
	}{
		{name: "park", mode: core.SleepPark, parks: true},
		{name: "record", mode: core.SleepRecord},
		{name: "advance", mode: core.SleepAdvance, moved: d},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := core.NewManualClock(start)
			c.SetSleep(tt.mode)
			woke := make(chan error)
			go func() { woke <- c.Sleep(t.Context(), d) }()
			if tt.parks {
				c.AwaitParked(1)
				assert.Equal(t, 1, c.Parked())
				c.Advance(d - 1)
				assert.Equal(t, 1, c.Parked(), "a nanosecond early")
				c.Advance(1)
			}
			require.NoError(t, <-woke)
			assert.Zero(t, c.Parked())
			assert.Equal(t, []time.Duration{d}, c.Slept())
			if !tt.parks {
				assert.Equal(t, tt.moved, since(c))
			}
		})
	}
}

func TestManualClockDoesNotParkForNothing(t *testing.T) {
	c := core.NewManualClock(start)
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		require.NoError(t, c.Sleep(t.Context(), d))
	}
	assert.Len(t, c.Slept(), 3)
}

// What Advance wakes runs alone, at its own wake time, until its call has returned.
func TestAdvanceWakesInOrder(t *testing.T) {
	var clock *core.ManualClock
	var transcript []string // written without a lock: -race sees if two run at once
	chain := core.NewChain(waiter(), &fake{name: "recorder", passed: func(inv *core.Invocation) {
		transcript = append(transcript, fmt.Sprintf("%v %s", since(clock), inv.Args()[1]))
	}})
	e, clock := newEngine(t, core.Config{Chain: chain})
	var done sync.WaitGroup
	for i, sleeper := range []struct {
		wait time.Duration
		name string
	}{
		{30 * time.Millisecond, "a"},
		{10 * time.Millisecond, "b"},
		{20 * time.Millisecond, "c"},
		{10 * time.Millisecond, "d"}, // ties with b, which came first
		{time.Hour, "e"},
		{10 * time.Millisecond, "f"},
	} {
		done.Go(func() {
			_, err := e.Enter(t.Context(), "orders", []core.Option{core.Args(sleeper.wait, sleeper.name)})
			assert.NoError(t, err)
		})
		clock.AwaitParked(i + 1)
	}
	assert.Equal(t, int64(6), e.Waiting())
	clock.Advance(25 * time.Millisecond)
	assert.Equal(t, []string{"10ms b", "10ms d", "10ms f", "20ms c"}, transcript)
	assert.Equal(t, 25*time.Millisecond, since(clock))
	assert.Equal(t, 2, clock.Parked())
	clock.Advance(time.Hour)
	assert.Equal(t, []string{"30ms a", "1h0m0s e"}, transcript[4:])
	done.Wait()
}

// The order holds for random waits, also when sleepers arrive between two advances.
func TestAdvanceWakesRandomSleepersInOrder(t *testing.T) {
	rnd := random(t)
	type wake struct {
		at    time.Duration
		order int
	}
	var clock *core.ManualClock
	var woken []wake
	chain := core.NewChain(waiter(), &fake{name: "recorder", passed: func(inv *core.Invocation) {
		woken = append(woken, wake{since(clock), inv.Args()[1].(int)})
	}})
	e, clock := newEngine(t, core.Config{Chain: chain})
	var want []wake
	var done sync.WaitGroup
	for i := range 200 {
		wait := time.Duration(1+rnd.IntN(20)) * time.Millisecond
		want = append(want, wake{since(clock) + wait, i})
		parked := clock.Parked()
		done.Go(func() {
			_, err := e.Enter(t.Context(), "orders", []core.Option{core.Args(wait, i)})
			assert.NoError(t, err)
		})
		clock.AwaitParked(parked + 1)
		if rnd.IntN(4) == 0 {
			clock.Advance(time.Duration(rnd.IntN(10)) * time.Millisecond)
		}
	}
	clock.Advance(time.Second)
	done.Wait()
	slices.SortStableFunc(want, func(a, b wake) int { return int(a.at - b.at) })
	assert.Equal(t, want, woken)
}

func TestManualSleepEndsWithItsContext(t *testing.T) {
	c := core.NewManualClock(start)
	ctx, cancel := context.WithCancel(t.Context())
	woke := make(chan error)
	go func() { woke <- c.Sleep(ctx, time.Hour) }()
	c.AwaitParked(1)
	cancel()
	require.ErrorIs(t, <-woke, context.Canceled)
	assert.Zero(t, c.Parked())
	assert.Zero(t, since(c))
	for _, mode := range []core.SleepMode{core.SleepPark, core.SleepRecord, core.SleepAdvance} {
		c.SetSleep(mode)
		require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.Canceled, "mode %d", mode)
	}
}

// What was cancelled before the clock moved doesn't wake up, whatever the schedule.
func TestCancelThenAdvance(t *testing.T) {
	c := core.NewManualClock(start)
	for range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		woke := make(chan error)
		go func() { woke <- c.Sleep(ctx, time.Second) }()
		c.AwaitParked(1)
		cancel()
		c.Advance(time.Second)
		require.ErrorIs(t, <-woke, context.Canceled)
	}
}

// A cancellation that races with the wake-up ends in one of the two, and nobody is
// left behind. museum 58, 59
func TestCancelRacingWithTheWakeUp(t *testing.T) {
	c := core.NewManualClock(start)
	for range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		woke := make(chan error)
		go func() { woke <- c.Sleep(ctx, time.Second) }()
		c.AwaitParked(1)
		go cancel()
		c.Advance(time.Second)
		if err := <-woke; err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Zero(t, c.Parked())
	}
}

// One Advance that begins while another is under way adds to it.
func TestConcurrentAdvancesAddUp(t *testing.T) {
	awake, goOn := make(chan struct{}), make(chan struct{})
	chain := core.NewChain(waiter(), &fake{name: "recorder", passed: func(*core.Invocation) {
		close(awake)
		<-goOn
	}})
	e, clock := newEngine(t, core.Config{Chain: chain})
	var done sync.WaitGroup
	done.Go(func() {
		_, err := e.Enter(t.Context(), "orders", []core.Option{core.Args(time.Second)})
		assert.NoError(t, err)
	})
	clock.AwaitParked(1)
	done.Go(func() { clock.Advance(10 * time.Second) })
	<-awake
	done.Go(func() { clock.Advance(time.Second) })
	for range 1000 {
		runtime.Gosched() // lets it come as far as it can
	}
	close(goOn)
	done.Wait()
	assert.Equal(t, 11*time.Second, since(clock))
}

func TestAwaitParkedCountsThoseThatCameEarlier(t *testing.T) {
	c := core.NewManualClock(start)
	c.AwaitParked(0)
	var done sync.WaitGroup
	for range 10 {
		done.Go(func() { assert.NoError(t, c.Sleep(t.Context(), time.Second)) })
	}
	c.AwaitParked(10)
	c.AwaitParked(3)
	c.Advance(time.Second)
	done.Wait()
}
