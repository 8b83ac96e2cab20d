package clocks_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
)

func TestManualClockStandsStill(t *testing.T) {
	c := clocks.NewManual(start)
	assert.Equal(t, start.UnixNano(), c.Now())
	assert.Equal(t, c.Now(), c.Now())
	c.Advance(time.Millisecond)
	assert.Equal(t, time.Millisecond, since(c))
}

func TestManualClockNeverGoesBack(t *testing.T) {
	c := clocks.NewManual(start)
	c.Advance(-time.Hour)
	assert.Zero(t, since(c))
	c.AdvanceTo(math.MinInt64)
	assert.Zero(t, since(c))
}

func TestManualSleepEndsWithItsContext(t *testing.T) {
	c := clocks.NewManual(start)
	ctx, cancel := context.WithCancel(t.Context())
	woke := make(chan error)
	go func() { woke <- c.Sleep(ctx, time.Hour) }()
	c.AwaitParked(1)
	cancel()
	require.ErrorIs(t, <-woke, context.Canceled)
	assert.Zero(t, c.Parked())
	assert.Zero(t, since(c))
	for _, mode := range []clocks.SleepMode{clocks.SleepPark, clocks.SleepRecord, clocks.SleepAdvance} {
		c.SetSleep(mode)
		require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.Canceled, "mode %d", mode)
	}
}

func TestAwaitParkedCountsThoseThatCameEarlier(t *testing.T) {
	c := clocks.NewManual(start)
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
