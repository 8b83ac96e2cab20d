package stat

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShapeValidate(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		err   string
	}{
		{Shape{time.Second, 2, false}, ""},
		{Shape{time.Second, 10, true}, ""},
		{Shape{10 * time.Millisecond, 1, false}, ""},
		{Shape{24 * time.Hour, 1440, false}, ""},
		{Shape{}, "an interval of 0s: use 10ms to 24h0m0s"},
		{Shape{time.Second, 0, false}, "0 buckets: use 1 to 1440"},
		{Shape{time.Second, -1, false}, "-1 buckets"},
		{Shape{time.Hour, 1441, false}, "1441 buckets"},
		{Shape{time.Hour, math.MaxInt32, false}, "2147483647 buckets"},
		{Shape{10*time.Millisecond - 1, 1, false}, "an interval of 9.999999ms"},
		{Shape{24*time.Hour + 1, 1, false}, "an interval of 24h0m0.000000001s"},
		{Shape{-time.Second, 1, false}, "an interval of -1s"},
		{Shape{time.Second, 3, false}, "3 buckets don't divide an interval of 1s"},
	} {
		err := c.shape.Validate()
		w, made := NewWindow(c.shape)
		if c.err == "" {
			require.NoError(t, err, "%+v", c.shape)
			require.NoError(t, made, "%+v", c.shape)
			require.Equal(t, c.shape.Interval, c.shape.Width()*time.Duration(c.shape.Buckets))
			continue
		}
		require.ErrorContains(t, err, c.err)
		require.Equal(t, err, made)
		require.Nil(t, w)
	}
}

// A constructor returns an error or a usable result, and never panics. The result accepts any
// bucket and any time. known bug 8, 47
func FuzzConstructors(f *testing.F) {
	f.Add(int64(time.Second), 2, 4, true, epoch)
	f.Add(int64(0), 0, 0, false, int64(0))
	f.Add(int64(time.Second), 0, 1, false, int64(0))
	f.Add(int64(time.Second), -1, 1, false, int64(0))
	f.Add(int64(24*time.Hour), 1440, math.MaxInt, false, int64(-1))
	f.Add(int64(time.Second), int(time.Second), -1, true, epoch)
	f.Add(int64(math.MinInt64), math.MinInt, math.MinInt, true, int64(1))
	f.Fuzz(func(t *testing.T, interval int64, buckets, procs int, strict bool, now int64) {
		now %= 1 << 61 // about 70 years around 1970
		shape := Shape{Interval: time.Duration(interval), Buckets: buckets, Strict: strict}
		w, err := NewWindow(shape)
		require.Equal(t, shape.Validate(), err)
		if err == nil {
			_, ok := w.TryAdd(0, now, 3, 3)
			require.True(t, ok)
			require.EqualValues(t, 3, w.Sum(now))
			require.Equal(t, number(now, w.width), w.newest.Load())
			wait, ok := w.RetryAfter(now, 1, 3)
			require.True(t, ok)
			_, ok = w.TryAdd(0, now+int64(wait)-1, 1, 3)
			require.False(t, ok)
			_, ok = w.TryAdd(0, now+int64(wait), 1, 3)
			require.True(t, ok)
			bucket, before := int64(procs), stateOf(w)
			require.True(t, w.Within(Receipt(bucket), 3))
			held := w.heldLocked(bucket)
			w.Cancel(Receipt(bucket), held)
			require.Equal(t, before.total-held, stateOf(w).total)
			w.AddAt(0, now, interval, 1)
			w.Move(Receipt(bucket), interval, 1, 3)
		}
		if a, err := NewLeapArray[int](shape.Interval, buckets); err == nil {
			a.Current(now).Value++
			b, ok := a.at(now, now)
			require.True(t, ok)
			require.Equal(t, 1, b.Value)
			require.Zero(t, b.Start%int64(a.Width()))
			_, ok = a.at(now, interval)
			require.Equal(t, ok, interval >= b.Start && interval < b.Start+int64(a.Width()), "no other is open")
		}
		if l, err := NewLayout(shape.Interval, buckets, procs); err == nil {
			require.NoError(t, shape.Validate())
			require.Equal(t, l.lanes&(l.lanes-1), 0)
			require.Contains(t, []int{2, 4, 8, 16, 32, 64}, l.lanes)
			require.Zero(t, l.coarse%l.fine)
			require.Zero(t, int64(time.Second)%l.fine)
			c := newCounters(l)
			c.AddPass(uint32(procs), now, 2)
			c.AddComplete(uint32(buckets), now, 2, interval, true)
			require.EqualValues(t, 2, c.Second(now).Pass)
			require.EqualValues(t, 2, c.Minute(now).Complete)
			require.Zero(t, c.InFlight())
		}
	})
}
