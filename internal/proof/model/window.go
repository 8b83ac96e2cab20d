package model

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// window holds the charges that a rule looks at, each in a bucket.
type window struct {
	on      place
	owner   owner
	shape   stat.Shape
	era     meter.Era
	newest  int64 // the latest time it has seen
	charges []*charge
}

// charge is a number of units counted in a bucket. Charges from another window still belong to the
// call.
type charge struct {
	call   *Call
	bucket int64
	units  int64
	limit  int64 // the smallest of all rules on the window
}

func floorDiv(t, width int64) int64 {
	q := t / width
	if t%width < 0 {
		q--
	}
	return q
}

func (w *window) width() int64         { return int64(w.shape.Interval) / int64(w.shape.Buckets) }
func (w *window) ahead() int64         { return int64(w.shape.Buckets) }
func (w *window) number(t int64) int64 { return floorDiv(t, w.width()) }
func (w *window) head() int64          { return w.number(w.newest) }
func (w *window) see(now int64)        { w.newest = max(w.newest, now) }

// add charges units. It drops expired charges, unless their call waits and so won't be charged
// again.
func (w *window) add(c *charge) {
	if len(w.charges) >= 256 {
		w.charges = slices.DeleteFunc(w.charges, func(old *charge) bool {
			return old.bucket <= w.head()-w.span() && (old.call == nil || old.call.passed())
		})
	}
	w.charges = append(w.charges, c)
}

// span returns how many buckets count.
func (w *window) span() int64 {
	if w.shape.Strict {
		return int64(w.shape.Buckets) + 1
	}
	return int64(w.shape.Buckets)
}

// between returns the units in the buckets from..to.
func (w *window) between(from, to int64) (units int64) {
	for _, c := range w.charges {
		if c.bucket >= from && c.bucket <= to {
			units += c.units
		}
	}
	return units
}

// sum returns the units that count when b is the newest bucket.
func (w *window) sum(b int64) int64 { return w.between(b-w.span()+1, b) }

// waiting returns the units charged to buckets that have not begun.
func (w *window) waiting() int64 { return w.between(w.head()+1, w.head()+w.ahead()) }

func (w *window) keeps(bucket int64) bool {
	return bucket > w.head()-w.span() && bucket <= w.head()+w.ahead()
}

// fits reports whether n more units in a bucket would stay within the limit as long as that bucket
// counts.
func (w *window) fits(bucket, n, limit int64) bool {
	for b := max(bucket, w.head()); b < bucket+w.span(); b++ {
		if w.sum(b)+n > limit {
			return false
		}
	}
	return true
}

// borrow finds an upcoming bucket for n units: the first at whose begin the remaining units, the
// borrowed ones and n are within the limit.
func (w *window) borrow(now, n, limit int64, timeout time.Duration) (bucket int64, wait time.Duration, ok bool) {
	borrowed := w.waiting()
	if borrowed >= limit {
		return 0, 0, false
	}
	for b := w.head() + 1; b <= w.head()+w.ahead(); b++ {
		wait = time.Duration(b*w.width() - now)
		if wait >= timeout {
			return 0, 0, false
		}
		if left := w.between(b-w.span()+1, w.head()); left+borrowed+n <= limit {
			return b, wait, true
		}
	}
	return 0, 0, false
}

func (w *window) of(c *Call) *charge {
	for _, held := range w.charges {
		if held.call == c {
			return held
		}
	}
	return nil
}

func (w *window) remove(c *Call) {
	w.charges = slices.DeleteFunc(w.charges, func(held *charge) bool { return held.call == c })
}

// move moves a call's charge to the bucket in which it will run, if it fits there.
func (w *window) move(c *Call, to int64) {
	held := w.of(c)
	if held == nil {
		return
	}
	bucket := min(max(w.number(to), w.head()), w.head()+w.ahead())
	if !w.keeps(held.bucket) || bucket <= held.bucket {
		return
	}
	w.remove(c)
	if w.fits(bucket, held.units, held.limit) {
		held.bucket = bucket
	}
	w.add(held)
}

// windowOn returns the window of a rule on a node. A new one starts with the units of old or, if
// that is nil, with the units that the node counted.
func (m *Model) windowOn(p place, l *limiter, old *window) *window {
	if w := m.findWindow(p, l.shape(), l.own, l.era); w != nil {
		w.see(m.now)
		return w
	}
	w := &window{on: p, shape: l.shape(), owner: l.own, era: l.era, newest: m.now}
	if old != nil {
		w.seedFrom(old, m.now)
	} else {
		m.seed(w)
	}
	m.windows = append(m.windows, w)
	return w
}

func (m *Model) findWindow(p place, shape stat.Shape, own owner, era meter.Era) *window {
	for _, w := range m.windows {
		if w.on == p && w.shape == shape && w.owner == own && w.era == era {
			return w
		}
	}
	return nil
}

// seedFrom copies the counts of another window. The time within a bucket is unknown: it is taken as
// the bucket's end, or now.
func (w *window) seedFrom(old *window, now int64) {
	old.see(now)
	for _, c := range old.charges {
		bucket := int64(allTime) // expired units count nowhere, and the call is not counted again
		if old.keeps(c.bucket) {
			at := c.bucket * old.width()
			if c.bucket <= old.head() {
				at = min(at+old.width()-1, old.newest)
			}
			bucket = min(w.number(at), w.head()+w.ahead())
		}
		w.add(&charge{c.call, bucket, c.units, c.limit})
	}
}

// seed copies the counts of a window's node: the last second by half seconds, the last minute by
// seconds. Calls known only to lie in a span count at its end.
func (m *Model) seed(w *window) {
	calls := slices.DeleteFunc(slices.Clone(m.calls), func(c *Call) bool { return !c.on(w.on) })
	if w.on.kind != "cluster" {
		m.seedWith(w, calls)
		return
	}
	// A resource includes its first context, and counts the others separately.
	var included, others []*Call
	for _, c := range calls {
		if c.Context == calls[0].Context {
			included = append(included, c)
		} else {
			others = append(others, c)
		}
	}
	m.seedWith(w, included)
	m.seedWith(w, others)
}

// seedWith is like seed, for calls that were counted in one place.
func (m *Model) seedWith(w *window, calls []*Call) {
	known := m.remembers(w.on)
	fine := int64(m.config.Interval) / int64(m.config.Buckets)    // the node's bucket width
	live := floorDiv(known, fine)*fine - int64(m.config.Interval) // after that, the half seconds are known
	moved := int64(allTime)                                       // the end of the last half second that is not
	each := func(f func(at, units int64)) {
		for _, c := range calls {
			if c.passed() && c.at <= known {
				f(c.at, c.Units)
			}
			if c.State == Blocked && c.at <= known {
				f(c.at, 0)
			}
			if c.State == Done && c.ended <= known {
				f(c.ended, 0)
			}
		}
	}
	each(func(at, _ int64) {
		if start := floorDiv(at, fine) * fine; start <= live {
			moved = max(moved, start+fine)
		}
	})
	each(func(at, units int64) {
		end := floorDiv(at, fine)*fine + fine
		if end-fine <= live {
			second := floorDiv(at, int64(time.Second))
			if second <= floorDiv(known, int64(time.Second))-60 {
				return
			}
			end = min((second+1)*int64(time.Second), moved)
		}
		if b := min(w.number(min(end-1, known)), w.head()); units > 0 && w.keeps(b) {
			w.add(&charge{bucket: b, units: units})
		}
	})
}
