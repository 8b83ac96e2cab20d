package clocks_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
)

func TestSystemClockStartsAtUnixTime(t *testing.T) {
	before := time.Now().UnixNano()
	c := clocks.NewSystem()
	now := c.Now()
	assert.GreaterOrEqual(t, now, before)
	assert.LessOrEqual(t, now, before+int64(time.Minute))
}

func TestSleepThatCannotEndAllocatesNothing(t *testing.T) {
	c := clocks.NewSystem()
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = c.Sleep(context.Background(), 1) }))
}

func TestRealClocksSleep(t *testing.T) {
	for _, tt := range []struct {
		name  string
		clock func() clocks.Clock
	}{
		{"system", func() clocks.Clock { return clocks.NewSystem() }},
		{"coarse", func() clocks.Clock { return clocks.NewCoarse() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tt.clock()
				began := c.Now()
				require.NoError(t, c.Sleep(t.Context(), 3*time.Second))
				assert.Equal(t, 3*time.Second, time.Duration(c.Now()-began))

				for _, d := range []time.Duration{0, -time.Second} {
					require.NoError(t, c.Sleep(t.Context(), d))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.DeadlineExceeded)
				assert.Equal(t, 4*time.Second, time.Duration(c.Now()-began))
				require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.DeadlineExceeded, "ended before")
				require.ErrorIs(t, c.Sleep(ctx, 0), context.DeadlineExceeded, "ended before")
			})
		})
	}
}

// No reading is older than one that had finished before it began, even while a clock becomes
// coarse. known bug 30
func TestRealClocksNeverGoBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rounds int
		clock  func() clocks.Clock
	}{
		{"system", 10, func() clocks.Clock { return clocks.NewSystem() }},
		{"coarse", 300, func() clocks.Clock { return clocks.NewCoarse() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range tt.rounds {
				clock := tt.clock()
				neverGoesBack(t, clock)
				if c, ok := clock.(*clocks.Coarse); ok {
					require.NoError(t, c.Close())
				}
			}
		})
	}
}

func neverGoesBack(t *testing.T, clock clocks.Clock) {
	t.Helper()
	var latest atomic.Int64
	latest.Store(clock.Now())
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 500 {
				before := latest.Load()
				now := clock.Now()
				if now < before {
					t.Errorf("read %d after %d", now, before)
				}
				for old := before; now > old && !latest.CompareAndSwap(old, now); old = latest.Load() {
				}
			}
		})
	}
	done.Wait()
}

// dense reads the clock until it becomes coarse.
func dense(c *clocks.Coarse) {
	for range 3000 {
		c.Now()
	}
}

func TestCoarseClockReadsOnceAMillisecondWhileTrafficIsDense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocks.NewCoarse()
		defer c.Close()
		began := c.Now()
		now := func() time.Duration { return time.Duration(c.Now() - began) }

		time.Sleep(300 * time.Microsecond)
		assert.Equal(t, 300*time.Microsecond, now(), "a few readings are exact")
		dense(c)
		time.Sleep(300 * time.Microsecond)
		assert.Equal(t, 300*time.Microsecond, now(), "many are not")
		for range 100 {
			before := now()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			assert.Equal(t, before+time.Millisecond, now(), "but at most a millisecond late")
		}
	})
}

// Sparse readings need no ticker, even after dense ones.
func TestCoarseClockLooksWhetherItIsWorthIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocks.NewCoarse()
		began := c.Now()
		for range 3 {
			dense(c)
			for range 400 { // never quiet for long
				time.Sleep(time.Millisecond)
				c.Now()
			}
			time.Sleep(300 * time.Microsecond)
			began += int64(400*time.Millisecond + 300*time.Microsecond)
			assert.Equal(t, began, c.Now(), "exact again")
		}
	})
}

// The bubble could not end if the goroutine kept running without Close: it waits for every
// goroutine started in it.
func TestCoarseClockStopsWhenNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocks.NewCoarse()
		for range 5 {
			began := c.Now()
			dense(c)
			time.Sleep(time.Second)
			synctest.Wait()
			assert.Equal(t, time.Second, time.Duration(c.Now()-began), "exact again")
		}
	})
}

func TestCoarseClockClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocks.NewCoarse()
		began := c.Now()
		dense(c)
		require.NoError(t, c.Close())
		require.NoError(t, c.Close())
		time.Sleep(300 * time.Microsecond)
		dense(c)
		assert.Equal(t, 300*time.Microsecond, time.Duration(c.Now()-began), "every reading is exact")
	})
	require.NoError(t, clocks.NewCoarse().Close(), "never used")
}

func TestCoarseClockClosesWhileOthersRead(t *testing.T) {
	for range 20 {
		c := clocks.NewCoarse()
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				for range 500 {
					c.Now()
				}
			})
		}
		require.NoError(t, c.Close())
		done.Wait()
		require.NoError(t, c.Close()) // TestMain counts the goroutines
	}
}
