package stat

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/internal/lending"
)

// maxLaneBuckets bounds the memory of one lane: 8 KiB.
const maxLaneBuckets = 128

// Layout describes how [Counters] divide time and spread over lanes. One Layout serves all nodes of
// an engine. It is immutable.
type Layout struct {
	interval int64 // of the second window
	coarse   int64 // width of its buckets
	fine     int64 // width of a lane's buckets
	buckets  int64 // buckets of a lane
	lanes    int
}

// NewLayout describes a second window of buckets over interval. The width of a lane's buckets is
// the greatest common divisor of the window's bucket width and one second, so each belongs to
// exactly one bucket and one second; a lane may have at most 128. The number of lanes is twice
// procs, rounded up to a power of two, and at most 64.
func NewLayout(interval time.Duration, buckets, procs int) (*Layout, error) {
	shape := Shape{Interval: interval, Buckets: buckets}
	if err := shape.Validate(); err != nil {
		return nil, fmt.Errorf("stat: second window: %w", err)
	}
	if procs < 1 {
		return nil, fmt.Errorf("stat: %d processors: use 1 or more", procs)
	}
	l := &Layout{interval: int64(interval), coarse: int64(shape.Width())}
	l.fine = gcd(l.coarse, int64(time.Second))
	l.buckets = l.interval / l.fine
	if l.buckets > maxLaneBuckets {
		return nil, fmt.Errorf("stat: second window: %d buckets of %v need %d buckets of %v to divide whole seconds, but the maximum is %d: choose a width that has a larger common divisor with 1s",
			buckets, shape.Width(), l.buckets, time.Duration(l.fine), maxLaneBuckets)
	}
	l.lanes = lending.Lanes(procs)
	return l, nil
}

// Interval returns the length of the second window.
func (l *Layout) Interval() time.Duration { return time.Duration(l.interval) }

// Lanes returns the maximum number of lanes of a node, a power of two.
func (l *Layout) Lanes() int { return l.lanes }

// oldest returns the start of the oldest fine bucket that the second window counts at now.
func (l *Layout) oldest(now int64) int64 {
	return floor(now, l.coarse) + l.coarse - l.interval
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
