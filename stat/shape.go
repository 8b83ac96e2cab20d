package stat

import (
	"fmt"
	"time"
)

// The bounds of a [Shape].
const (
	MinInterval = 10 * time.Millisecond
	MaxInterval = 24 * time.Hour
	MaxBuckets  = 1440 // one per minute of a day
)

// Shape is the form of a window: an interval divided into buckets. When a bucket ends, the oldest
// one expires as a whole.
//
// A plain window of n buckets of width L admits at most its limit in any real interval of length
// (n-1)·L, and up to twice the limit in an interval of length n·L. A strict window keeps one more
// bucket: it admits at most the limit in every real interval of length n·L, and therefore only
// n/(n+1) of the limit under steady saturation.
type Shape struct {
	Interval time.Duration // 10 ms to 24 h
	Buckets  int           // divides Interval into whole nanoseconds
	Strict   bool
}

// Width returns the length of one bucket.
func (s Shape) Width() time.Duration { return s.Interval / time.Duration(s.Buckets) }

// Validate returns an error if a window can't have this shape.
func (s Shape) Validate() error {
	switch {
	case s.Interval < MinInterval || s.Interval > MaxInterval:
		return fmt.Errorf("an interval of %v: use %v to %v", s.Interval, MinInterval, MaxInterval)
	case s.Buckets < 1 || s.Buckets > MaxBuckets:
		return fmt.Errorf("%d buckets: use 1 to %d", s.Buckets, MaxBuckets)
	case s.Interval%time.Duration(s.Buckets) != 0:
		return fmt.Errorf("%d buckets don't divide an interval of %v: each would last %v and a fraction of a nanosecond",
			s.Buckets, s.Interval, s.Width())
	}
	return nil
}
