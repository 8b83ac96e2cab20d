package stat

import (
	"fmt"
	"iter"
	"math"
	"time"
)

// Bucket is one slice of time in a [LeapArray]. Start is a multiple of the
// array's bucket width.
type Bucket[T any] struct {
	Start int64 // nanoseconds
	Value T
}

// LeapArray is a ring of buckets over the last interval. The bucket of a time is in slot (time /
// width) mod buckets, and is recycled with a zero Value when the ring wraps around to it.
//
// Time only moves forward: once a bucket was opened, callers with an older time join the newest
// bucket. A LeapArray is not safe for concurrent use; its owner holds a lock.
type LeapArray[T any] struct {
	width    int64
	interval int64
	buckets  []Bucket[T]
	newest   int64 // start of the newest bucket
}

// never is the Start of an unused bucket: in 1896, before any time of a clock (see clocks.Clock),
// and far enough from the end of the range that subtracting from it doesn't overflow.
const never = math.MinInt64 / 4

// NewLeapArray returns an empty ring of buckets over interval. buckets must divide interval into
// whole nanoseconds, and be at most MaxBuckets.
func NewLeapArray[T any](interval time.Duration, buckets int) (*LeapArray[T], error) {
	if buckets < 1 || buckets > MaxBuckets {
		return nil, fmt.Errorf("stat: %d buckets: use 1 to %d", buckets, MaxBuckets)
	}
	if interval < 1 || interval%time.Duration(buckets) != 0 {
		return nil, fmt.Errorf("stat: %d buckets don't divide an interval of %v", buckets, interval)
	}
	a := &LeapArray[T]{
		width:    int64(interval) / int64(buckets),
		interval: int64(interval),
		buckets:  make([]Bucket[T], buckets),
	}
	a.Reset()
	return a, nil
}

// Width returns the length of a bucket.
func (a *LeapArray[T]) Width() time.Duration { return time.Duration(a.width) }

// Reset forgets everything, including the newest time.
func (a *LeapArray[T]) Reset() {
	for i := range a.buckets {
		a.buckets[i] = Bucket[T]{Start: never}
	}
	a.newest = never
}

// Current returns the current bucket, and opens it if it is new. If now is older than the newest
// bucket, it returns the newest bucket. The pointer is valid until the ring wraps around.
func (a *LeapArray[T]) Current(now int64) *Bucket[T] {
	start := max(floor(now, a.width), a.newest)
	b, _ := a.Open(start)
	return b
}

// Open returns the bucket of t, even if it isn't the newest, and opens it if its slot holds an
// older bucket. It returns false if the slot already holds a later bucket, because t is too old.
func (a *LeapArray[T]) Open(t int64) (*Bucket[T], bool) {
	start := floor(t, a.width)
	b := a.slot(start)
	if b.Start > start {
		return nil, false
	}
	if b.Start < start {
		*b = Bucket[T]{Start: start}
		a.newest = max(a.newest, start)
	}
	return b, true
}

// valid reports whether a bucket that begins at start counts at now: it has begun, and less than
// the interval before the current bucket.
func (a *LeapArray[T]) valid(now, start int64) bool {
	current := max(floor(now, a.width), a.newest)
	return start <= current && start > current-a.interval
}

// at returns the bucket of t if it was opened and still counts at now. It changes nothing.
func (a *LeapArray[T]) at(now, t int64) (*Bucket[T], bool) {
	start := floor(t, a.width)
	b := a.slot(start)
	if b.Start != start || !a.valid(now, start) {
		return nil, false
	}
	return b, true
}

// All yields the opened buckets that count at now, oldest first. It changes nothing.
func (a *LeapArray[T]) All(now int64) iter.Seq[*Bucket[T]] {
	return a.where(now, func(int64) bool { return true })
}

// where yields the buckets of [LeapArray.All] whose start satisfies keep.
func (a *LeapArray[T]) where(now int64, keep func(start int64) bool) iter.Seq[*Bucket[T]] {
	return func(yield func(*Bucket[T]) bool) {
		current := max(floor(now, a.width), a.newest)
		for start := current - a.interval + a.width; start <= current; start += a.width {
			if b := a.slot(start); b.Start == start && keep(start) && !yield(b) {
				return
			}
		}
	}
}

func (a *LeapArray[T]) slot(start int64) *Bucket[T] {
	n := int64(len(a.buckets))
	return &a.buckets[((start/a.width)%n+n)%n]
}

// floor returns the largest multiple of width that is not above t.
func floor(t, width int64) int64 {
	if r := t % width; r >= 0 {
		return t - r
	} else {
		return t - r - width
	}
}
