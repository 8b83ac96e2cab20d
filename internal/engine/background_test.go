package engine_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/engine"
)

// At most MaxBackground functions run, whether they return, panic or end their goroutine.
func TestBackgroundIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, engine.Config{})
		end := make(chan func())
		ran := 0
		for range 3 {
			for range engine.MaxBackground {
				require.True(t, e.Background(func(context.Context) { (<-end)() }))
				ran++
			}
			require.False(t, e.Background(func(context.Context) {}))
			for i := range engine.MaxBackground {
				end <- []func(){func() {}, func() { panic("x") }, runtime.Goexit}[i%3]
			}
			synctest.Wait()
		}
		assert.Equal(t, int64(3*5), e.Failures())
		require.NoError(t, e.Close())
	})
}

// The context of a background function ends after a while, and with Close, which waits for the
// function, though not long for one that ignores its context. Afterwards none starts.
func TestBackgroundEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, engine.Config{})
		began := time.Now()
		var ended atomic.Int64
		require.True(t, e.Background(func(ctx context.Context) { <-ctx.Done(); ended.Add(1) }))
		synctest.Wait()
		time.Sleep(time.Minute)
		require.Equal(t, int64(1), ended.Load(), "after ten seconds")
		require.Equal(t, time.Minute, time.Since(began))

		require.True(t, e.Background(func(ctx context.Context) { <-ctx.Done(); ended.Add(1) }))
		require.NoError(t, e.Close())
		require.Equal(t, int64(2), ended.Load())
		require.Equal(t, time.Minute, time.Since(began), "Close cancels it")
		require.False(t, e.Background(func(context.Context) { t.Error("runs after Close") }))
		require.NoError(t, e.Close())
		synctest.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, engine.Config{})
		release := make(chan struct{})
		require.True(t, e.Background(func(context.Context) { <-release }))
		began := time.Now()
		require.NoError(t, e.Close())
		require.Equal(t, time.Second, time.Since(began))
		close(release)
	})
}
