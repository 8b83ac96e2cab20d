package stat

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newArray(t testing.TB, interval time.Duration, buckets int) *LeapArray[int] {
	t.Helper()
	a, err := NewLeapArray[int](interval, buckets)
	require.NoError(t, err)
	return a
}

func TestNewLeapArray(t *testing.T) {
	for _, c := range []struct {
		interval time.Duration
		buckets  int
		ok       bool
	}{
		{time.Second, 2, true},
		{time.Second, 1, true},
		{1, 1, true},
		{24 * time.Hour, MaxBuckets, true},
		{time.Second, 3, false},
		{time.Second, 0, false}, // known bug 47
		{time.Second, -1, false},
		{0, 1, false},
		{-time.Second, 1, false},
		{1, 2, false},
		{time.Duration(math.MinInt64), -1, false},
		{time.Hour, math.MaxInt32, false},
		{24 * time.Hour, MaxBuckets * 2, false},
		{time.Second, int(time.Second), false}, // found by review: as many buckets as nanoseconds
	} {
		a, err := NewLeapArray[int](c.interval, c.buckets)
		require.Equal(t, c.ok, err == nil, "%+v: %v", c, err)
		if c.ok {
			require.Equal(t, c.interval/time.Duration(c.buckets), a.Width())
		}
	}
}

func TestLeapArrayScripts(t *testing.T) {
	current := func(a *LeapArray[int], at int64) any { b := a.Current(at); b.Value++; return *b }
	open := func(a *LeapArray[int], at int64) any {
		b, ok := a.Open(at)
		if !ok {
			return "refused"
		}
		b.Value++
		return *b
	}
	previous := func(a *LeapArray[int], at int64) any {
		b, ok := a.at(at, max(floor(at, a.width), a.newest)-a.width)
		if !ok {
			return "none"
		}
		return *b
	}
	lookup := func(now int64) func(*LeapArray[int], int64) any {
		return func(a *LeapArray[int], at int64) any {
			b, ok := a.at(now, at)
			if !ok {
				return "none"
			}
			return *b
		}
	}
	all := func(a *LeapArray[int], at int64) any {
		var starts []int64
		for b := range a.All(at) {
			starts = append(starts, b.Start)
		}
		return fmt.Sprint(starts)
	}
	since := func(start int64) func(*LeapArray[int], int64) any {
		return func(a *LeapArray[int], at int64) any {
			var starts []int64
			for b := range a.where(at, func(s int64) bool { return s >= start }) {
				starts = append(starts, b.Start)
			}
			return fmt.Sprint(starts)
		}
	}
	valid := func(start int64) func(*LeapArray[int], int64) any {
		return func(a *LeapArray[int], at int64) any { return a.valid(at, start) }
	}
	type bucket = Bucket[int]
	for name, steps := range map[string][]struct {
		at   int64
		do   func(*LeapArray[int], int64) any
		want any
	}{
		"a ring of 4 x 10": {
			{5, all, "[]"},
			{5, previous, "none"},
			{5, current, bucket{0, 1}},
			{9, current, bucket{0, 2}},
			{10, current, bucket{10, 1}},
			{10, previous, bucket{0, 2}},
			{35, current, bucket{30, 1}},
			{35, all, "[0 10 30]"},
			{35, since(10), "[10 30]"},
			{35, previous, "none"}, // 20 was never opened
			{39, valid(0), true},
			{40, valid(0), false},
			{40, all, "[10 30]"}, // though the bucket of 40 was not opened
			{40, previous, bucket{30, 1}},
			{40, current, bucket{40, 1}}, // recycled, and empty
			{79, all, "[40]"},
			{80, all, "[]"},
			{80, lookup(80), "none"},
		},
		// known bug 6, 7
		"a late caller joins the newest bucket": {
			{25, current, bucket{20, 1}},
			{15, current, bucket{20, 2}},
			{-1000, current, bucket{20, 3}},
			{0, all, "[20]"},
			{0, previous, "none"},
			{0, valid(20), true},
			{0, valid(-20), false},
			{0, valid(30), false},
		},
		"times older than the ring are rejected": {
			{45, current, bucket{40, 1}},
			{15, open, bucket{10, 1}},
			{5, open, "refused"},
			{-35, open, "refused"},
			{19, open, bucket{10, 2}},
			{45, all, "[10 40]"},
			{15, lookup(45), bucket{10, 2}},
			{15, lookup(50), "none"},
			{5, lookup(45), "none"},
			{45, current, bucket{40, 2}},
		},
		"an old bucket in a slot that is free counts no more": {
			{100, current, bucket{100, 1}},
			{50, open, bucket{50, 1}},
			{100, all, "[100]"},
			{50, lookup(100), "none"},
			{90, open, bucket{90, 1}}, // the same slot
			{50, open, "refused"},
			{100, all, "[90 100]"},
		},
		"before 1970": { // known bug 46: no negative index
			{-45, current, bucket{-50, 1}},
			{-41, current, bucket{-50, 2}},
			{-40, current, bucket{-40, 1}},
			{-40, previous, bucket{-50, 2}},
			{-1, current, bucket{-10, 1}},
			{-1, all, "[-40 -10]"},
			{0, current, bucket{0, 1}},
			{0, previous, bucket{-10, 1}},
			{9, all, "[-10 0]"},
			{-31, open, "refused"},
			{-41, open, "refused"},
			{-21, open, bucket{-30, 1}},
		},
		"a leap of a hundred years": {
			{5, current, bucket{0, 1}},
			{3e18 + 5, current, bucket{3e18, 1}},
			{3e18 + 5, all, "[3000000000000000000]"},
			{5, current, bucket{3e18, 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArray(t, 40, 4)
			for i, s := range steps {
				require.Equal(t, s.want, s.do(a, s.at), "step %d, at %d", i, s.at)
			}
			a.Reset()
			require.Equal(t, "[]", all(a, 5))
			require.Equal(t, bucket{0, 1}, current(a, 5), "a reset forgets the newest time too")
		})
	}
}

func TestLeapArrayStopsWhenToldTo(t *testing.T) {
	a := newArray(t, 40, 4)
	for at := range int64(4) {
		a.Current(at * 10)
	}
	n := 0
	for range a.All(35) {
		if n++; n == 2 {
			break
		}
	}
	require.Equal(t, 2, n)
}

func TestLeapArrayIsItsTwin(t *testing.T) {
	r := random(t)
	for range rounds(80) {
		buckets, width := 1+r.IntN(6), 1+r.Int64N(20)
		a := newArray(t, time.Duration(int64(buckets)*width), buckets)
		interval := int64(buckets) * width
		opened := map[int64]int{} // all values in the ring, by start
		newest := int64(math.MinInt64)
		now := r.Int64N(1000) - 500
		for range 300 {
			now += r.Int64N(width+1) - width/4
			if r.IntN(20) == 0 {
				now += r.Int64N(3 * interval)
			}
			at := now - r.Int64N(2*interval)*r.Int64N(2)
			start := at - ((at%width)+width)%width
			isCurrent := r.IntN(2) == 0
			var b *Bucket[int]
			ok := true
			if isCurrent {
				start = max(start, newest)
				b = a.Current(at)
			} else {
				b, ok = a.Open(at)
			}
			later := false
			for s := range opened {
				if (s-start)%interval == 0 && s != start {
					later = later || s > start
					if s < start {
						delete(opened, s)
					}
				}
			}
			require.Equal(t, !later, ok)
			if ok {
				require.Equal(t, Bucket[int]{start, opened[start]}, *b)
				b.Value++
				opened[start]++
				newest = max(newest, start)
			}
			current := max(at-((at%width)+width)%width, newest)
			var want, got []Bucket[int]
			for s, v := range opened {
				if s > current-interval {
					want = append(want, Bucket[int]{s, v})
				}
				require.Equal(t, s > current-interval, a.valid(at, s))
				_, ok := a.at(at, s+r.Int64N(width))
				require.Equal(t, s > current-interval, ok)
			}
			slices.SortFunc(want, func(a, b Bucket[int]) int { return int(a.Start - b.Start) })
			for b := range a.All(at) {
				got = append(got, *b)
			}
			require.Equal(t, want, got)
			previous, ok := a.at(at, max(floor(at, a.width), a.newest)-a.width)
			value, there := opened[current-width]
			require.Equal(t, there && buckets > 1, ok)
			if ok {
				require.Equal(t, Bucket[int]{current - width, value}, *previous)
			}
		}
	}
}
