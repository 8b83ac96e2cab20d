package stat

import "time"

// Past is a snapshot of recent admissions, for windows that are made later but begin at the time of
// the snapshot. It is immutable.
type Past struct {
	passed []passed
	total  int64 // units since the start
}

// passed is a number of units admitted at or before a time.
type passed struct{ at, units int64 }

// Past returns nil if nothing was admitted recently.
func (c *Counters) Past(now int64) *Past {
	c.lock()
	defer c.unlock()
	p := &Past{total: c.admittedLocked()} // read first: units admitted in between are in both
	c.latelyLocked(now, func(now, at, units int64) { p.passed = append(p.passed, passed{min(at, now), units}) })
	if p.passed == nil {
		return nil
	}
	return p
}

// SeedWindow counts recent admissions in w: from the lanes and, further back, from whole seconds. A
// window with finer buckets or a longer interval can't be seeded fully.
//
// If past isn't nil, SeedWindow uses past instead. Units admitted after the snapshot count as of
// now, because their time is not known.
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

// latelyLocked calls f with the units admitted recently, in whole seconds and in the lanes'
// buckets. Its argument at is the latest time at which they may have been admitted; its now is the
// given one, or a later time that was seen. The caller holds the lock.
func (c *Counters) latelyLocked(now int64, f func(now, at, units int64)) {
	c.settleAllLocked(now)
	emit := func(end, units int64) { // units counted before end, perhaps just before
		if end-c.layout.fine > now {
			now = end - 1 // the caller is late
		}
		if units > 0 {
			f(now, end-1, units)
		}
	}
	for p := range c.allLocked() {
		for start, counts := range p.minute.all(now) {
			emit(min(start+int64(time.Second), p.passed), counts.Pass)
		}
		for b := range p.liveLocked() {
			if _, units := unpack(b.pass.Load()); units > 0 {
				emit(b.start.Load()+c.layout.fine, units)
			}
		}
	}
}

// admittedLocked returns the units admitted since the start. The caller holds the lock.
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
