package engine_test

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

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
)

// The clock shows no time before 1900 or after 2100. known bug 124
func TestManualClockAtItsEnds(t *testing.T) {
	for at, want := range map[time.Time]time.Time{
		time.Unix(0, 0).AddDate(-1968, 0, 0): year1900,
		year1900.Add(-1):                     year1900,
		year1900.Add(1):                      year1900.Add(1),
		year2100.Add(-1):                     year2100.Add(-1),
		year2100.Add(1):                      year2100,
		time.Unix(0, 0).AddDate(9999, 0, 0):  year2100,
	} {
		c := clocks.NewManual(at)
		assert.Equal(t, want.UnixNano(), c.Now(), "begun at %v", at)
		c.Advance(math.MinInt64)
		assert.Equal(t, want.UnixNano(), c.Now())
		c.Advance(math.MaxInt64)
		assert.Equal(t, year2100.UnixNano(), c.Now(), "begun at %v", at)
	}
	c := clocks.NewManual(year1900)
	c.AdvanceTo(math.MaxInt64)
	assert.Equal(t, year2100.UnixNano(), c.Now())
	require.NoError(t, c.Sleep(t.Context(), time.Second), "nobody is parked forever")

	c = clocks.NewManual(year2100.Add(-time.Second))
	c.SetSleep(clocks.SleepAdvance)
	require.NoError(t, c.Sleep(t.Context(), math.MaxInt64))
	assert.Equal(t, year2100.UnixNano(), c.Now())
}

// Periodic tasks don't prevent a leap of years: each runs a million times, then once more. None
// runs while time stands still.
func TestManualClockLeapsOverWhatRepeats(t *testing.T) {
	e, c := newEngine(t, engine.Config{})
	c.AdvanceTo(year1900.UnixNano())
	var times []int64
	done := 0
	e.Every(250*time.Millisecond, func(now int64) {
		if done++; done < 4 || done > 1<<20 {
			times = append(times, now)
		}
	})
	begin := c.Now()
	c.AdvanceTo(year2100.Add(-time.Second).UnixNano())
	assert.Equal(t, 1<<20+1, done)
	assert.Equal(t, []int64{begin + 250e6, begin + 500e6, begin + 750e6, year2100.Add(-time.Second).UnixNano()}, times)
	c.Advance(time.Hour)
	assert.Equal(t, 1<<20+5, done)
	c.Advance(time.Hour)
	assert.Equal(t, 1<<20+5, done)
	require.NoError(t, e.Close())
}

// time.Time{} is beyond the range of nanoseconds since 1970.
func TestManualClockFromTheZeroTime(t *testing.T) {
	c := clocks.NewManual(time.Time{})
	assert.Equal(t, int64(0), c.Now())
}

func TestManualClockModes(t *testing.T) {
	const d = 3 * time.Second
	for _, tt := range []struct {
		name  string
		mode  clocks.SleepMode
		moved time.Duration // by the sleep itself
		parks bool
	}{
		{name: "park", mode: clocks.SleepPark, parks: true},
		{name: "record", mode: clocks.SleepRecord},
		{name: "advance", mode: clocks.SleepAdvance, moved: d},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clocks.NewManual(start)
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
	c := clocks.NewManual(start)
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		require.NoError(t, c.Sleep(t.Context(), d))
	}
	assert.Len(t, c.Slept(), 3)
}

// A sleeper woken by Advance runs alone, at its own wake time, until its call has returned.
func TestAdvanceWakesInOrder(t *testing.T) {
	var clock *clocks.Manual
	var transcript []string // written without a lock: -race sees if two run at once
	chain := engine.NewChain(waiter(), &fake{name: "recorder", passed: func(inv *engine.Invocation) {
		transcript = append(transcript, fmt.Sprintf("%v %s", since(clock), inv.Args()[1]))
	}})
	e, clock := newEngine(t, engine.Config{Chain: chain})
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
			_, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Args(sleeper.wait, sleeper.name)})
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

// The order holds for random waits, even when sleepers arrive between two advances.
func TestAdvanceWakesRandomSleepersInOrder(t *testing.T) {
	rnd := random(t)
	type wake struct {
		at    time.Duration
		order int
	}
	var clock *clocks.Manual
	var woken []wake
	chain := engine.NewChain(waiter(), &fake{name: "recorder", passed: func(inv *engine.Invocation) {
		woken = append(woken, wake{since(clock), inv.Args()[1].(int)})
	}})
	e, clock := newEngine(t, engine.Config{Chain: chain})
	var want []wake
	var done sync.WaitGroup
	for i := range 200 {
		wait := time.Duration(1+rnd.IntN(20)) * time.Millisecond
		want = append(want, wake{since(clock) + wait, i})
		parked := clock.Parked()
		done.Go(func() {
			_, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Args(wait, i)})
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

// A sleep cancelled before the clock advanced never wakes up, regardless of scheduling.
func TestCancelThenAdvance(t *testing.T) {
	c := clocks.NewManual(start)
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

// A cancellation that races with the wake-up either wins or loses, and no sleeper is left behind.
// known bug 58, 59
func TestCancelRacingWithTheWakeUp(t *testing.T) {
	c := clocks.NewManual(start)
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

// An Advance that begins while another is under way adds to it.
func TestConcurrentAdvancesAddUp(t *testing.T) {
	awake, goOn := make(chan struct{}), make(chan struct{})
	chain := engine.NewChain(waiter(), &fake{name: "recorder", passed: func(*engine.Invocation) {
		close(awake)
		<-goOn
	}})
	e, clock := newEngine(t, engine.Config{Chain: chain})
	var done sync.WaitGroup
	done.Go(func() {
		_, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Args(time.Second)})
		assert.NoError(t, err)
	})
	clock.AwaitParked(1)
	done.Go(func() { clock.Advance(10 * time.Second) })
	<-awake
	done.Go(func() { clock.Advance(time.Second) })
	for range 1000 {
		runtime.Gosched() // lets it run until it blocks
	}
	close(goOn)
	done.Wait()
	assert.Equal(t, 11*time.Second, since(clock))
}
