package stat

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// View reads counters through an interval and buckets of its own, which divide those of the
// counters; Sentinel calls it SlidingWindowMetric. One View works for all counters of a [Layout].
// It is a value, holds no counts and copies no ring: each read sums the needed buckets under one
// lock.
//
// The buckets of a View begin at multiples of their width. The newest is the one that now falls in,
// so it is still filling; to read complete buckets only, skip it:
//
//	_, running := v.Range(now)
//	v.Buckets(c, now, func(start int64) bool { return start < running })
//
// The zero View has no buckets and reads nothing. It is safe for concurrent use.
type View struct {
	interval int64
	width    int64
	minute   bool // reads the last 60 seconds, not the second window
}

// NewView returns a view of the counters of a layout, with samples buckets over an interval. Either
// the layout's second window or the last 60 seconds must be a multiple of the interval, and the
// view's bucket width a multiple of the corresponding bucket width; if both fit, the second window
// is read. The error names the mismatch.
func NewView(l *Layout, interval time.Duration, samples int) (View, error) {
	if samples < 1 || samples > MaxBuckets {
		return View{}, fmt.Errorf("stat: a view of %d samples: use 1 to %d", samples, MaxBuckets)
	}
	if interval < 1 || interval%time.Duration(samples) != 0 {
		return View{}, fmt.Errorf("stat: %d samples don't divide a view of %v", samples, interval)
	}
	v := View{interval: int64(interval), width: int64(interval) / int64(samples)}
	switch {
	case v.divides(l.interval, l.coarse):
	case v.divides(minuteBuckets*int64(time.Second), int64(time.Second)):
		v.minute = true
	default:
		return View{}, fmt.Errorf("stat: a view of %v in %d samples: the interval must divide %v, and its samples of %v be a multiple of %v; or %v, and a multiple of %v",
			interval, samples, time.Duration(l.interval), time.Duration(v.width), time.Duration(l.coarse), time.Minute, time.Second)
	}
	return v, nil
}

// divides reports whether the view can be read from a ring of that interval and bucket width.
func (v View) divides(interval, width int64) bool {
	return interval%v.interval == 0 && v.width%width == 0
}

// Interval returns the length of time that the view covers.
func (v View) Interval() time.Duration { return time.Duration(v.interval) }

// Width returns the length of a bucket.
func (v View) Width() time.Duration { return time.Duration(v.width) }

// Samples returns the number of buckets.
func (v View) Samples() int {
	if v.width == 0 {
		return 0
	}
	return int(v.interval / v.width)
}

// Range returns the starts of the oldest and the newest bucket that count at now.
func (v View) Range(now int64) (oldest, newest int64) {
	if v.width == 0 {
		return 0, 0
	}
	newest = floor(now, v.width)
	return newest + v.width - v.interval, newest
}

// Sum returns the sum of all buckets. Its [Counts.AvgRT] and [Counts.MinRT] are the mean and
// minimum response times.
func (v View) Sum(c *Counters, now int64) Counts {
	var sum Counts
	v.each(c, now, func(_ int64, counts Counts) { sum.Add(&counts) })
	return sum
}

// Rates returns the averages over the interval, per second.
func (v View) Rates(c *Counters, now int64) Rates {
	if v.interval == 0 {
		return Rates{}
	}
	sum := v.Sum(c, now)
	return sum.Per(v.Interval())
}

// Max returns the maximum of the function of over the buckets, as in
//
//	v.Max(c, now, func(c stat.Counts) int64 { return c.Complete })
func (v View) Max(c *Counters, now int64, of func(Counts) int64) int64 {
	if v.width == 0 {
		return 0
	}
	most := int64(math.MinInt64)
	var few [minuteBuckets]Bucket[Counts] // enough for most views
	buckets := v.AppendBuckets(few[:0], c, now, nil)
	for i := range buckets {
		most = max(most, of(buckets[i].Value))
	}
	return most
}

// Buckets returns the buckets that count at now and whose start keep accepts, oldest first,
// including empty ones. A nil keep accepts all.
func (v View) Buckets(c *Counters, now int64, keep func(start int64) bool) []Bucket[Counts] {
	return v.AppendBuckets(nil, c, now, keep)
}

// AppendBuckets appends the result of [View.Buckets].
func (v View) AppendBuckets(to []Bucket[Counts], c *Counters, now int64, keep func(start int64) bool) []Bucket[Counts] {
	if v.width == 0 {
		return to
	}
	first := len(to)
	for start, newest := v.Range(now); start <= newest; start += v.width {
		if keep == nil || keep(start) { // before locking: keep may do anything
			to = append(to, Bucket[Counts]{Start: start})
		}
	}
	kept := to[first:]
	v.each(c, now, func(start int64, counts Counts) {
		i, found := slices.BinarySearchFunc(kept, start, func(b Bucket[Counts], start int64) int { return int(min(max(b.Start-start, -1), 1)) })
		if found {
			kept[i].Value.Add(&counts)
		}
	})
	return to
}

// each calls f with the counts and the start of each bucket of the view, several times per bucket
// if the counters hold it in pieces. Counts newer than now go to the newest bucket.
func (v View) each(c *Counters, now int64, f func(start int64, counts Counts)) {
	if v.width == 0 {
		return
	}
	c.lock()
	defer c.unlock()
	c.settleAllLocked(now)
	oldest, newest := v.Range(now)
	fit := func(start int64, counts Counts) {
		if start >= oldest {
			f(min(floor(start, v.width), newest), counts)
		}
	}
	if v.minute {
		c.eachOfMinute(now, fit)
	} else {
		c.eachOfSecondLocked(now, fit)
	}
}

// eachOfSecondLocked calls f with each part of the counts in the second window at now and the start
// of that part, in no particular order. The caller holds the lock.
func (c *Counters) eachOfSecondLocked(now int64, f func(start int64, counts Counts)) {
	c.eachLive(f)
	for p := range c.allLocked() {
		if p.relieved == nil {
			continue
		}
		for b := range p.relieved.All(now) {
			f(b.Start, b.Value)
		}
	}
}

// eachOfMinute is like eachOfSecondLocked, but for the last 60 seconds.
func (c *Counters) eachOfMinute(now int64, f func(start int64, counts Counts)) {
	c.eachLive(f)
	for p := range c.allLocked() {
		for start, counts := range p.minute.all(now) {
			f(start, counts)
		}
	}
}

// eachLive is like eachOfSecondLocked, but for the counts in the lanes.
func (c *Counters) eachLive(f func(start int64, counts Counts)) {
	for p := range c.allLocked() {
		for b := range p.liveLocked() {
			f(b.start.Load(), b.counts())
		}
	}
}
