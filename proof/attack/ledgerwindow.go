package main

import (
	"slices"
	"time"
)

// shape is that of a window, as docs/rules/flow.md describes it.
type shape struct {
	interval time.Duration
	buckets  int
	strict   bool
}

func (s shape) width() int64 { return int64(s.interval) / int64(s.buckets) }

// span is how many buckets count at a time.
func (s shape) span() int64 {
	if s.strict {
		return int64(s.buckets) + 1
	}
	return int64(s.buckets)
}

// number is that of the bucket in which a time lies.
func (s shape) number(t int64) int64 {
	n := t / s.width()
	if t%s.width() < 0 {
		n--
	}
	return n
}

// charge is units that count in one bucket, of which is known that it is one from first
// to last. If it isn't sure, they may not count at all.
type charge struct {
	call        *call
	units       int64
	first, last int64
	sure        bool
	waited      bool // the call waited when the window was seeded, and had perhaps taken
}

// windowLog is what a window must have counted.
type windowLog struct {
	shape
	charges []charge
	had     map[*call]bool // was charged here, perhaps long ago
}

func newWindowLog(s shape) *windowLog { return &windowLog{shape: s, had: make(map[*call]bool)} }

func (w *windowLog) add(c charge) {
	w.charges = append(w.charges, c)
	w.had[c.call] = true
}

// ran is told of a call that runs and was charged. Where it waited when the window was seeded, it
// counts from now on at the latest.
func (w *windowLog) ran(c *call, now int64, sure bool) {
	for i := range w.charges {
		if ch := &w.charges[i]; ch.call == c && ch.waited {
			ch.first, ch.last, ch.sure, ch.waited = min(ch.first, now), max(ch.last, now), sure, false
		}
	}
}

// sums are the least and the most units that may count when a bucket is the newest.
func (w *windowLog) sums(newest int64) (least, most int64) {
	for _, c := range w.charges {
		if c.first <= newest && newest < c.last+w.span() {
			most += c.units
		}
		if c.sure && c.last <= newest && newest < c.first+w.span() {
			least += c.units
		}
	}
	return least, most
}

// fits reports whether so many units more in a bucket surely, or perhaps, stay within
// the limits for as long as that bucket counts: also with what is borrowed from coming
// ones.
func (w *windowLog) fits(bucket, units, low, high int64) (surely, perhaps bool) {
	surely, perhaps = true, true
	for _, at := range append(w.begins(bucket), bucket) {
		least, most := w.sums(at)
		surely = surely && most <= low-units
		perhaps = perhaps && least <= high-units
	}
	return surely, perhaps
}

// begins are the buckets after the given one in which something may begin to count.
func (w *windowLog) begins(bucket int64) (at []int64) {
	for _, c := range w.charges {
		for b := max(c.first, bucket+1); b <= min(c.last, bucket+w.span()-1); b++ {
			at = append(at, b)
		}
	}
	return at
}

// borrow is alibaba/Sentinel's arithmetic: the first coming bucket at whose begin what
// counts now and is left, all that is borrowed, and the units are within the limit. It is
// not known where a charge isn't.
func (w *windowLog) borrow(now, units, limit int64, timeout time.Duration) (wait time.Duration, ok, known bool) {
	head := w.number(now)
	var borrowed int64
	for _, c := range w.charges {
		if c.first != c.last || !c.sure {
			return 0, false, false
		}
		if c.last > head {
			borrowed += c.units
		}
	}
	if borrowed >= limit {
		return 0, false, true
	}
	for b := head + 1; b <= head+int64(w.buckets); b++ {
		wait = time.Duration(b*w.width() - now)
		if wait >= timeout {
			break
		}
		left := borrowed
		for _, c := range w.charges {
			if c.last <= head && c.last > b-w.span() {
				left += c.units
			}
		}
		if left <= limit-units {
			return wait, true, true
		}
	}
	return 0, false, true
}

// forget drops what counts no more.
func (w *windowLog) forget(now int64) {
	head := w.number(now)
	w.charges = slices.DeleteFunc(w.charges, func(c charge) bool { return !c.waited && c.last+w.span() <= head })
}

// reshaped is a window of another shape that begins with what this one holds. Where in
// its bucket something happened isn't known, so it may count up to the end of that.
func (w *windowLog) reshaped(to shape, now int64) *windowLog {
	next := newWindowLog(to)
	next.had = w.had
	head := w.number(now)
	for _, c := range w.charges {
		if c.last+w.span() <= head && !c.waited {
			continue
		}
		kept := c.first+w.span() > head
		end := (c.last+1)*w.width() - 1
		if c.last <= head {
			end = min(end, now)
		}
		c.first, c.last, c.sure = to.number(c.first*w.width()), to.number(end), c.sure && kept
		c.first = min(c.first, to.number(now)+int64(to.buckets)) // it looks no further ahead
		next.charges = append(next.charges, c)
	}
	return next
}

// coarse is a bound for how finely the counters of a node know when something passed.
const coarse = int64(time.Second)

// seeded is a window that begins with what a node has counted: to the second, and for a
// minute. Where another rule has such a window already, it may know more: calls that waited are
// counted there from when they came, and those that wait, in a bucket that may be to come.
// What passed before a time may be forgotten.
func (l *ledger) seeded(p place, s shape, since int64) *windowLog {
	w := newWindowLog(s)
	for _, c := range l.passed {
		if !p.counts(c) {
			continue
		}
		from := min(c.came, c.passedAt-c.passedAt%coarse)
		w.add(charge{
			call: c, units: c.units, first: s.number(from), last: s.number(l.now),
			sure: c.passedAt >= since && l.since(c.passedAt) < time.Minute-2*time.Duration(coarse),
		})
	}
	for _, c := range l.waiting {
		if p.counts(c) {
			w.add(charge{call: c, units: c.units, first: s.number(c.came), last: s.number(l.now) + int64(s.buckets), waited: true})
		}
	}
	w.forget(l.now)
	return w
}
