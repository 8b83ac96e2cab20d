package stat

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// View reads counters through an interval and buckets of its own, which divide those that the
// counters have anyway: Sentinel calls it SlidingWindowMetric. One View works for all counters of a
// [Layout]. It is a value, holds no counts, and copies no ring: each reading adds up what it asks
// for, under one lock.
//
// The buckets of a View begin at multiples of their width. The newest is the one that now
// falls in, so it is still running; for whole seconds only, leave it out, as with
//
//	_, running := v.Range(now)
//	v.Buckets(c, now, func(start int64) bool { return start < running })
//
// The zero View has no buckets and reads nothing. It is safe for concurrent use.
type View struct {
	interval int64
	width    int64
	minute   bool // it reads the last 60 seconds, not the second window
}

// NewView returns a view of the counters of a layout, with samples buckets over an interval. Either
// the second window of the layout or the last 60 seconds must be a multiple of the interval, and
// the width of a bucket one of theirs; where both would do, it is the second window that is read.
// The error says what doesn't fit.
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

// divides reports whether the view can be read off a ring with that interval and that width of
// buckets.
func (v View) divides(interval, width int64) bool {
	return interval%v.interval == 0 && v.width%width == 0
}

// Interval is the length of what the view reads.
func (v View) Interval() time.Duration { return time.Duration(v.interval) }

// Width is the length of a bucket.
func (v View) Width() time.Duration { return time.Duration(v.width) }

// Samples is the number of buckets.
func (v View) Samples() int {
	if v.width == 0 {
		return 0
	}
	return int(v.interval / v.width)
}

// Range returns when the oldest and the newest of the buckets that count at now begin.
func (v View) Range(now int64) (oldest, newest int64) {
	if v.width == 0 {
		return 0, 0
	}
	newest = floor(now, v.width)
	return newest + v.width - v.interval, newest
}

// Sum is what all buckets count together. The mean and the least response time are its
// [Counts.AvgRT] and [Counts.MinRT].
func (v View) Sum(c *Counters, now int64) Counts {
	var sum Counts
	v.each(c, now, func(_ int64, counts Counts) { sum.Add(&counts) })
	return sum
}

// Rates are the averages over the interval, per second.
func (v View) Rates(c *Counters, now int64) Rates {
	if v.interval == 0 {
		return Rates{}
	}
	sum := v.Sum(c, now)
	return sum.Per(v.Interval())
}

// Max is the highest value that of returns for a bucket, as with
//
//	v.Max(c, now, func(c stat.Counts) int64 { return c.Complete })
func (v View) Max(c *Counters, now int64, of func(Counts) int64) int64 {
	if v.width == 0 {
		return 0
	}
	most := int64(math.MinInt64)
	var few [minuteBuckets]Bucket[Counts] // room for what most views have
	buckets := v.AppendBuckets(few[:0], c, now, nil)
	for i := range buckets {
		most = max(most, of(buckets[i].Value))
	}
	return most
}

// Buckets are the buckets that count at now and whose start keep accepts, oldest first, even those
// without counts; if keep is nil, all.
func (v View) Buckets(c *Counters, now int64, keep func(start int64) bool) []Bucket[Counts] {
	return v.AppendBuckets(nil, c, now, keep)
}

// AppendBuckets appends what [View.Buckets] returns.
func (v View) AppendBuckets(to []Bucket[Counts], c *Counters, now int64, keep func(start int64) bool) []Bucket[Counts] {
	if v.width == 0 {
		return to
	}
	first := len(to)
	for start, newest := v.Range(now); start <= newest; start += v.width {
		if keep == nil || keep(start) { // before the lock is taken: keep may do anything
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

// each calls f with what the counters have for a bucket of the view, which begins at start,
// several times if they have it in pieces. What is newer than now is in the newest.
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

// eachOfSecondLocked calls f with what the second window has at now, and when that began, in no
// particular order. The caller holds the lock.
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

// eachOfMinute does so with the last 60 seconds.
func (c *Counters) eachOfMinute(now int64, f func(start int64, counts Counts)) {
	c.eachLive(f)
	for p := range c.allLocked() {
		for start, counts := range p.minute.all(now) {
			f(start, counts)
		}
	}
}

// eachLive does so with what is in the lanes.
func (c *Counters) eachLive(f func(start int64, counts Counts)) {
	for p := range c.allLocked() {
		for b := range p.liveLocked() {
			f(b.start.Load(), b.counts())
		}
	}
}
