package stat

import "time"

// Past is what counters knew at some time of what had passed lately, for windows that are made
// later but begin at that time. It doesn't change.
type Past struct {
	passed []passed
	total  int64 // units since the start
}

// passed is units that passed at a time, or before it.
type passed struct{ at, units int64 }

// Past returns nil if nothing has passed lately.
func (c *Counters) Past(now int64) *Past {
	c.lock()
	defer c.unlock()
	p := &Past{total: c.admittedLocked()} // read before the rest: what passes meanwhile is in both
	c.latelyLocked(now, func(now, at, units int64) { p.passed = append(p.passed, passed{min(at, now), units}) })
	if p.passed == nil {
		return nil
	}
	return p
}

// SeedWindow counts in w what passed here lately: from the lanes and, for what lies further back,
// from whole seconds. A window with finer buckets or a longer interval than these can't be seeded
// fully.
//
// If past isn't nil, SeedWindow counts what is in past instead. What has passed since then counts
// as of now, because nothing else is known about when it passed.
func (c *Counters) SeedWindow(w *Window, now int64, past *Past) {
	c.lock()
	defer c.unlock()
	if past == nil {
		c.latelyLocked(now, w.seed)
		return
	}
	for _, p := range past.passed {
		w.seed(now, p.at, p.units)
	}
	if since := c.admittedLocked() - past.total; since > 0 {
		w.seed(now, now, since)
	}
}

// latelyLocked calls f with the units that passed lately, in whole seconds and in the lanes'
// buckets, and with the latest time at which they may have passed; and with now, or a later
// time that was seen. The caller holds the lock.
func (c *Counters) latelyLocked(now int64, f func(now, at, units int64)) {
	c.settleAllLocked(now)
	tell := func(end, units int64) { // of units that were counted before end, perhaps just before
		if end-c.layout.fine > now {
			now = end - 1 // the caller is late
		}
		if units > 0 {
			f(now, end-1, units)
		}
	}
	for p := range c.allLocked() {
		for start, counts := range p.minute.all(now) {
			tell(min(start+int64(time.Second), p.passed), counts.Pass)
		}
		for b := range p.liveLocked() {
			if _, units := unpack(b.pass.Load()); units > 0 {
				tell(b.start.Load()+c.layout.fine, units)
			}
		}
	}
}

// admittedLocked is the units that have passed since the start. The caller holds the lock.
func (c *Counters) admittedLocked() (units int64) {
	for p := range c.allLocked() {
		units += p.totals.Pass
		for b := range p.liveLocked() {
			_, n := unpack(b.pass.Load())
			units += n
		}
	}
	return units
}
