package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/internal/engine"
)

// buckets is the number of buckets in the interval of a window. One more counts.
const buckets = 10

// window holds the units that a value has used lately. It is a strict window (see [stat.Shape]),
// guarded by the lock of the value's shard. It counts the newest bucket and the ten before it. They
// cover every interval that ends in the newest bucket, so units within the limit there are within it
// in every real interval; the price is that the eleventh bucket's share of the limit is unused.
//
// Invariant, under the lock: used is the sum of counts, and head never goes back. A delayed call
// with an older time counts in the newest bucket.
type window struct {
	cell   *cell // its shard holds the lock
	width  int64
	head   int64  // number of the newest bucket
	until  int64  // its last instant
	newest *int64 // its count
	used   int64
	counts [buckets + 1]int64 // by bucket number

	// successor continues to count this window's units, since the rule's interval changed at handed.
	successor *window
	handed    int64
}

// windowOf returns the window of a cell, rolled to now, creating it if there is none. A new one
// begins no earlier than the latest eviction, and has the interval of the latest rule that has
// windows: a call that an older rule decides may be the first after the change.
func (c *controller) windowOf(x *cell, now int64) *window {
	if x.strict == nil {
		if latest := x.shard.rule; latest.strict {
			c = latest
		}
		x.strict = newWindow(x, max(now, x.shard.forgotten), c.rule.Interval)
	}
	x.strict.roll(now)
	return x.strict
}

// newWindow returns an empty window. If ten buckets don't divide the interval, a bucket is longer
// than a tenth of it.
func newWindow(x *cell, now int64, interval time.Duration) *window {
	w := &window{cell: x, width: bucketWidth(interval)}
	w.begin(w.number(now))
	return w
}

// begin makes an empty bucket the newest one.
func (w *window) begin(bucket int64) {
	w.head, w.until, w.newest = bucket, (bucket+1)*w.width-1, w.count(bucket)
}

func bucketWidth(interval time.Duration) int64 { return (int64(interval) + buckets - 1) / buckets }

func (w *window) number(t int64) int64 {
	n := t / w.width
	if t%w.width < 0 {
		n--
	}
	return n
}

func (w *window) count(bucket int64) *int64 {
	i := bucket % int64(len(w.counts))
	if i < 0 {
		i += int64(len(w.counts))
	}
	return &w.counts[i]
}

// roll begins the buckets that are due by now.
func (w *window) roll(now int64) {
	if now <= w.until {
		return
	}
	n := w.number(now)
	if n-w.head >= int64(len(w.counts)) {
		w.counts, w.used = [buckets + 1]int64{}, 0
	}
	for b := w.head + 1; b <= n && w.used != 0; b++ {
		left := w.count(b)
		w.used -= *left
		*left = 0
	}
	w.begin(n)
}

// add counts n units in the newest bucket; a negative n takes them out.
func (w *window) add(n int64) {
	*w.newest += n
	w.used += n
}

// keeps reports whether a bucket counts.
func (w *window) keeps(bucket int64) bool {
	return bucket > w.head-int64(len(w.counts)) && bucket <= w.head
}

// cancel removes units that were counted in a bucket, if it still counts.
func (w *window) cancel(bucket, n int64) {
	for w.successor != nil {
		if !w.keeps(bucket) {
			return
		}
		bucket, w = w.successor.number(w.end(bucket)), w.successor
	}
	if w.keeps(bucket) {
		*w.count(bucket) -= n
		w.used -= n
	}
}

// end returns the latest time at which a unit was counted in a bucket, for the successor.
func (w *window) end(bucket int64) int64 { return min((bucket+1)*w.width-1, w.handed) }

// room returns the time until n units fit if no other call comes first; n is at most the size.
func (w *window) room(now, n, size int64) time.Duration {
	free, at := size-w.used, now
	for b := w.head - buckets; b <= w.head && free < n; b++ {
		free += *w.count(b)
		at = (b + int64(len(w.counts))) * w.width
	}
	return time.Duration(max(0, at-now))
}

// copy returns a window with the same counts, for a cell that is yet to be created.
func (w *window) copy() *window {
	c := *w
	c.cell, c.newest = nil, c.count(c.head)
	return &c
}

// handOver creates a window for another interval. At now it counts the same units as w, each at the
// end of its old bucket. Calls then return the units they took here to that window.
func (w *window) handOver(now int64, interval time.Duration) *window {
	w.roll(now)
	w.handed = max(now, w.head*w.width)
	w.successor = newWindow(w.cell, w.handed, interval)
	for b := w.head - buckets; b <= w.head; b++ {
		if to := w.successor.number(w.end(b)); w.successor.keeps(to) {
			*w.successor.count(to) += *w.count(b)
			w.successor.used += *w.count(b)
		}
	}
	return w.successor
}

// GiveBack returns units to the bucket they were counted in.
func (w *window) GiveBack(r *engine.Reservation, _ int64) {
	s := w.cell.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(w.cell)
	w.cancel(r.Token, r.Units)
}

// windows reports whether a value has a window, not a bucket that is refilled. The latest rule
// decides if it has either, even for a call decided by an older one: the call's units count for the
// calls after it.
func (c *controller) windows(x *cell) bool {
	latest := x.shard.rule
	return latest.strict || !latest.refills && (c.strict || x.strict != nil)
}

// usedLocked returns the units that a value has used as a call at now finds it. The caller has
// settled the cell.
func (c *controller) usedLocked(x *cell, now int64, q *quota) int64 {
	switch {
	case c.calendar != nil:
		return c.usedInPeriodLocked(x, now)
	case !c.windows(x):
		return x.bucket.at(now, int64(c.rule.Interval), q).used
	case x.strict == nil:
		return 0
	}
	x.strict.roll(now)
	return x.strict.used
}

// room returns the time until n units of a value fit if no other call comes first; n is at most the
// size. It has the preconditions of usedLocked.
func (c *controller) room(x *cell, now, n int64, q *quota) time.Duration {
	switch {
	case c.calendar != nil:
		wait, _ := c.meterLocked(x).RetryAfter(c.calendarOf(x.shard), x.shard.notBefore(now), n, q.size)
		return wait
	case !c.windows(x):
		return x.bucket.room(now, n, int64(c.rule.Interval), q)
	case c.usedLocked(x, now, q) <= q.size-n:
		return 0
	}
	return x.strict.room(now, n, q.size)
}

// goOnLocked gives a cell the state that c counts with, from the state of the previous rules. Units
// used in a bucket at an unknown time count as used now.
func (c *controller) goOnLocked(x *cell, now int64) {
	if c.calendar != nil && x.period != nil {
		x.period.Follow(c.calendar, now)
		if c.book != nil && !x.period.Entry().In(c.book) {
			x.period.Leave(now)
			c.keepPeriodLocked(x, now)
		}
	}
	switch s := x.shard; {
	case c.strict && x.strict != nil:
		if x.strict.width != bucketWidth(c.rule.Interval) {
			x.strict = x.strict.handOver(now, c.rule.Interval)
		}
	case c.strict:
		used := int64(0)
		if x.bucket.filled != never {
			used = x.bucket.at(now, int64(c.rule.Interval), c.quotaOf(x.value, x.plan)).used
			x.bucket, x.filling = bucket{filled: never}, filling{}
		}
		if x.isRest() && s.window != nil {
			used = s.window.Sum(now)
			s.window = nil
		}
		if used > 0 {
			c.windowOf(x, now).add(used)
		}
	case c.refills && x.strict != nil:
		x.strict.roll(now)
		used := x.strict.used
		x.strict = nil
		switch {
		case used == 0:
		case x.isRest():
			s.restWindow(now, c.rule.Interval).AddAt(0, now, now, used)
			s.restAt = max(s.restAt, now)
		default:
			x.bucket = bucket{filled: now, used: used}
		}
	}
}
