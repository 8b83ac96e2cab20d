package stat

import (
	"iter"
	"math"
	"time"
)

// lock stops counts from being moved, both here and in the included Counters.
func (c *Counters) lock() {
	c.mu.Lock()
	if c.part != nil {
		c.part.mu.Lock()
	}
}

func (c *Counters) unlock() {
	if c.part != nil {
		c.part.mu.Unlock()
	}
	c.mu.Unlock()
}

// allLocked yields c and the Counters that it includes. The caller holds the lock.
func (c *Counters) allLocked() iter.Seq[*Counters] {
	return func(yield func(*Counters) bool) {
		if yield(c) && c.part != nil {
			yield(c.part)
		}
	}
}

// Second returns the counts of the second window at now.
func (c *Counters) Second(now int64) Counts {
	c.lock()
	defer c.unlock()
	c.settleAllLocked(now)
	return c.betweenLocked(now, c.layout.oldest(now), math.MaxInt64)
}

// SecondBuckets returns the buckets of the second window, oldest first, including empty ones.
func (c *Counters) SecondBuckets(now int64) []Bucket[Counts] {
	return c.AppendSecondBuckets(nil, now)
}

// AppendSecondBuckets appends the result of [Counters.SecondBuckets].
func (c *Counters) AppendSecondBuckets(buckets []Bucket[Counts], now int64) []Bucket[Counts] {
	c.lock()
	defer c.unlock()
	c.settleAllLocked(now)
	for start := c.layout.oldest(now); start <= now; start += c.layout.coarse {
		end := start + c.layout.coarse
		if end > now {
			end = math.MaxInt64 // the newest bucket includes everything newer than this reader's time
		}
		buckets = append(buckets, Bucket[Counts]{Start: start, Value: c.betweenLocked(now, start, end)})
	}
	return buckets
}

// Totals returns the counts since the start.
func (c *Counters) Totals() Counts {
	c.lock()
	defer c.unlock()
	var sum Counts
	for p := range c.allLocked() {
		p.gatherAll()
		sum.Add(&p.totals)
		for b := range p.liveLocked() {
			counts := b.counts()
			sum.Add(&counts)
		}
	}
	return sum
}

// InFlight returns the number of calls that have entered and not yet exited. It is never
// negative.
func (c *Counters) InFlight() int64 {
	calls, _ := c.inFlight(func() int64 { return 0 })
	return calls
}

// UnitsInFlight returns the units of the calls in flight. It may be too high while calls start and
// end.
func (c *Counters) UnitsInFlight() int64 {
	_, units := c.inFlight(func() int64 { return 0 })
	return units
}

// UnitsBeside returns the units in flight minus known(). While calls start and end it may be too
// high, never too low: it reads exits first, then calls known, then reads entries, so the result
// includes units that exited in between or that known had not counted yet. known must count units
// after they are counted here, and stop counting them before their exit is counted here.
func (c *Counters) UnitsBeside(known func() int64) int64 {
	_, units := c.inFlight(known)
	return units
}

func (c *Counters) inFlight(known func() int64) (calls, units int64) {
	c.lock()
	defer c.unlock()
	return c.flyingLocked(known)
}

// flyingLocked reads all exits before any entry, so a call that is seen to have exited is also seen
// to have entered. The caller holds the lock.
func (c *Counters) flyingLocked(known func() int64) (calls, units int64) {
	for p := range c.allLocked() {
		p.gatherAll()
		calls, units = calls-p.totals.Exited, units-p.totals.Complete
		for b := range p.liveLocked() {
			n, u := b.completed()
			calls, units = calls-n, units-u
		}
	}
	units -= known()
	for p := range c.allLocked() {
		calls, units = calls+p.totals.Entered, units+p.totals.Pass
		for b := range p.liveLocked() {
			n, u := unpack(b.pass.Load())
			calls, units = calls+n, units+u
		}
	}
	return calls, units
}

// History returns the last 60 seconds, including the current one, oldest first, without empty
// seconds.
func (c *Counters) History(now int64) []Bucket[Counts] {
	return c.AppendHistory(nil, now)
}

// AppendHistory appends the result of [Counters.History].
func (c *Counters) AppendHistory(history []Bucket[Counts], now int64) []Bucket[Counts] {
	c.lock()
	defer c.unlock()
	c.settleAllLocked(now)
	var seconds [minuteBuckets]Counts
	oldest := startOfMinute(now)
	c.eachOfMinute(now, func(start int64, counts Counts) {
		if i := (min(start, now) - oldest) / int64(time.Second); start >= oldest {
			seconds[i].Add(&counts)
		}
	})
	for i := range seconds {
		if !seconds[i].empty() {
			history = append(history, Bucket[Counts]{Start: oldest + int64(i)*int64(time.Second), Value: seconds[i]})
		}
	}
	return history
}

// LastSecond returns the counts of the last whole second before now.
func (c *Counters) LastSecond(now int64) Counts {
	c.lock()
	defer c.unlock()
	c.settleAllLocked(now)
	end := floor(now, int64(time.Second))
	start := end - int64(time.Second)
	var sum Counts
	for p := range c.allLocked() {
		counts := p.minute.at(now, start)
		sum.Add(&counts)
		for b := range p.liveLocked() {
			if s := b.start.Load(); s >= start && s < end {
				counts := b.counts()
				sum.Add(&counts)
			}
		}
	}
	return sum
}

// Idle reports whether nothing is in flight and nothing was counted within the second window and
// the last minute. It moves no counts, so checking a node doesn't make it larger, and it shrinks an
// idle one.
func (c *Counters) Idle(now int64) bool {
	c.lock()
	defer c.unlock()
	for p := range c.allLocked() {
		if !p.restsLocked(now) {
			return false
		}
	}
	calls, _ := c.flyingLocked(func() int64 { return 0 })
	return calls == 0
}

// restsLocked reports whether nothing was counted recently (see Idle). The caller holds mu.
func (c *Counters) restsLocked(now int64) bool {
	since := c.since(now)
	if !c.minute.empty() && c.moved > since {
		return false
	}
	c.shrinkLocked(now)
	if c.gatherAll() {
		return false
	}
	for b := range c.liveLocked() {
		if counts := b.counts(); b.start.Load() >= since && !counts.empty() {
			return false
		}
	}
	return true
}

// settleAllLocked moves every expired bucket, including the included Counters' buckets. The caller
// holds the lock.
func (c *Counters) settleAllLocked(now int64) {
	for p := range c.allLocked() {
		p.settleLocked(now)
	}
}

// Lanes returns the current number of lanes.
func (c *Counters) Lanes() int {
	n := 0
	for i := range c.lanes {
		if c.lanes[i].Load() != nil {
			n++
		}
	}
	return n
}

// betweenLocked sums the second window's buckets that start in [from, to). The caller holds the
// lock.
func (c *Counters) betweenLocked(now, from, to int64) Counts {
	var sum Counts
	within := func(start int64) bool { return start >= from && start < to }
	for p := range c.allLocked() {
		for b := range p.liveLocked() {
			if within(b.start.Load()) {
				counts := b.counts()
				sum.Add(&counts)
			}
		}
		if p.relieved == nil {
			continue
		}
		for b := range p.relieved.where(now, within) {
			sum.Add(&b.Value)
		}
	}
	return sum
}
