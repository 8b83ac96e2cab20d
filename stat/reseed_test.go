package stat

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A window that is reseeded counts the units of the other window, including borrowed ones, and none
// of its own earlier units.
func TestWindowReseed(t *testing.T) {
	const second = int64(time.Second)
	now := 1000 * second
	old, err := NewWindow(Shape{Interval: time.Second, Buckets: 2})
	require.NoError(t, err)
	next, err := NewWindow(Shape{Interval: 2 * time.Second, Buckets: 10, Strict: true})
	require.NoError(t, err)
	old.AddAt(0, now, now, 3)
	now += second / 2
	_, _, ok := old.TryBorrow(now, 2, 3, time.Second)
	require.True(t, ok)
	next.SeedFrom(old, now)
	next.AddAt(0, now, now, 1)
	old.AddAt(0, now, now, 1)
	next.Reseed(old, now, func() {})
	assert.Equal(t, int64(4), next.Sum(now))
	assert.Equal(t, int64(2), next.Waiting(now))
	assert.Equal(t, int64(4), old.Sum(now))
	assert.False(t, next.Fits(now, 1, 4))
	assert.Equal(t, int64(6), next.Sum(now+second/2), "borrowed units have become due")
	assert.Zero(t, next.Sum(now+10*second))
}

// Callers take from one window and, once they see a next window, from that too; it is seeded and
// published in one step. The next window never exceeds its limit, regardless of how callers arrive.
// known bug 72
func TestWindowReseedUnderCallers(t *testing.T) {
	const limit, now = 100, 1000 * int64(time.Second)
	for range 100 {
		old, err := NewWindow(Shape{Interval: time.Second, Buckets: 2})
		require.NoError(t, err)
		next, err := NewWindow(Shape{Interval: time.Minute, Buckets: 10})
		require.NoError(t, err)
		var announced atomic.Bool
		var passed atomic.Int64
		published := make(chan struct{})
		take := func(w *Window) bool { _, ok := w.TryAdd(0, now, 1, limit); return ok }
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				for range limit {
					if take(old) && (!announced.Load() || take(next)) {
						passed.Add(1)
					}
				}
			})
		}
		callers.Go(func() {
			<-published
			for range limit {
				if take(next) {
					passed.Add(1)
				}
			}
		})
		next.Reseed(old, now, func() { announced.Store(true) })
		close(published)
		callers.Wait()
		require.LessOrEqual(t, passed.Load(), int64(limit))
	}
}
