package stat

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An heir counts what the window counted, what was borrowed included, and nothing that
// it had counted itself; the window admits nobody any more, and still takes back.
func TestWindowHandOver(t *testing.T) {
	const second = int64(time.Second)
	now := 1000 * second
	old, err := NewWindow(Shape{Interval: time.Second, Buckets: 2})
	require.NoError(t, err)
	heir, err := NewWindow(Shape{Interval: 2 * time.Second, Buckets: 10, Strict: true})
	require.NoError(t, err)
	old.Add(now, 3)
	now += second / 2
	_, _, ok := old.TryBorrow(now, 2, 3, time.Second)
	require.True(t, ok)
	bucket, ok := old.TryAdd(now, 1, 10)
	require.True(t, ok)
	heir.SeedFrom(old, now)
	heir.Add(now, 1)
	old.HandOver(heir, now)

	assert.Same(t, heir, old.Heir())
	assert.Nil(t, heir.Heir())
	assert.Equal(t, int64(4), heir.Sum(now))
	assert.Equal(t, int64(2), heir.Waiting(now))
	_, ok = old.TryAdd(now, 1, 100)
	assert.False(t, ok)
	_, ok = old.CanBorrow(now, 1, 100, time.Second)
	assert.False(t, ok)
	old.Cancel(bucket, 1)
	assert.Equal(t, int64(3), old.Sum(now))
	assert.Equal(t, int64(6), heir.Sum(now+second/2), "what was borrowed has become due")
	assert.Zero(t, heir.Sum(now+10*second))
}

// While callers take from whichever window is the latest, windows are handed over
// again and again: never over the limit, and all of it.
// museum 72
func TestWindowHandOverUnderCallers(t *testing.T) {
	const limit, now = 100, 1000 * int64(time.Second)
	shapes := []Shape{{Interval: time.Second, Buckets: 2}, {Interval: time.Minute, Buckets: 10}, {Interval: time.Second, Buckets: 10, Strict: true}}
	for range 50 {
		first, err := NewWindow(shapes[0])
		require.NoError(t, err)
		var latest atomic.Pointer[Window]
		latest.Store(first)
		var passed atomic.Int64
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				w := first // they have not heard of a later one
				for range limit {
					if _, ok := w.TryAdd(now, 1, limit); ok {
						passed.Add(1)
					} else if heir := w.Heir(); heir != nil {
						w = heir
					}
				}
			})
		}
		for i := range 20 {
			heir, err := NewWindow(shapes[(i+1)%len(shapes)])
			require.NoError(t, err)
			heir.SeedFrom(latest.Load(), now)
			latest.Load().HandOver(heir, now)
			latest.Store(heir)
		}
		callers.Wait()
		require.LessOrEqual(t, passed.Load(), int64(limit))
		require.Equal(t, passed.Load(), latest.Load().Sum(now))
	}
}
