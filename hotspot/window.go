package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/internal/engine"
)

// buckets is how many buckets the interval of a window has. One more counts.
const buckets = 10

// window is what a value has used of its limit lately: a strict window, see [stat.Shape], that the
// lock of the value's shard guards. It counts the newest bucket and the ten before it. Those cover
// every interval that ends in the newest one, so what is within the limit there is within it in
// every real interval; what the eleventh bucket holds is the part of the limit that goes unused.
//
// Invariant, under the lock: used is the sum of counts, and head never moves back. A call that
// was delayed, and brings an older time, counts in the newest bucket.
type window struct {
	cell   *cell // whose shard has the lock
	width  int64
	head   int64  // the number of the newest bucket
	until  int64  // its last instant
	newest *int64 // its count
	used   int64
	counts [buckets + 1]int64 // by number

	// heir counts what this one counted, since the rule's interval has changed at handed.
	heir   *window
	handed int64
}

// windowOf returns the window of a cell, rolled to now, and makes it if there is none. A new one
// begins no earlier than the time at which a value was last forgotten.
func (c *controller) windowOf(x *cell, now int64) *window {
	if x.strict == nil {
		x.strict = newWindow(x, max(now, x.shard.forgotten), c.rule.Interval)
	}
	x.strict.roll(now)
	return x.strict
}

// newWindow returns an empty window. Where ten buckets don't divide the interval, a bucket is longer
// than a tenth of it.
func newWindow(x *cell, now int64, interval time.Duration) *window {
	w := &window{cell: x, width: bucketWidth(interval)}
	w.begin(w.number(now))
	return w
}

// begin makes a bucket, which counts nothing yet, the newest one.
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

// roll begins the buckets that have begun by now.
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

// add counts n units in the newest bucket, less than none to take them out.
func (w *window) add(n int64) {
	*w.newest += n
	w.used += n
}

// keeps reports whether a bucket counts.
func (w *window) keeps(bucket int64) bool {
	return bucket > w.head-int64(len(w.counts)) && bucket <= w.head
}

// cancel takes back units that were counted in a bucket, if it still counts.
func (w *window) cancel(bucket, n int64) {
	for w.heir != nil {
		if !w.keeps(bucket) {
			return
		}
		bucket, w = w.heir.number(w.end(bucket)), w.heir
	}
	if w.keeps(bucket) {
		*w.count(bucket) -= n
		w.used -= n
	}
}

// end is the latest time at which something was counted in a bucket, for the heir.
func (w *window) end(bucket int64) int64 { return min((bucket+1)*w.width-1, w.handed) }

// room is how long after now n units fit if no other call comes first; n is at most the size.
func (w *window) room(now, n, size int64) time.Duration {
	free, at := size-w.used, now
	for b := w.head - buckets; b <= w.head && free < n; b++ {
		free += *w.count(b)
		at = (b + int64(len(w.counts))) * w.width
	}
	return time.Duration(max(0, at-now))
}

// copy is a window that counts the same, for a cell that is yet to be made.
func (w *window) copy() *window {
	c := *w
	c.cell, c.newest = nil, c.count(c.head)
	return &c
}

// handOver makes a window for another interval, which counts at now what w does: what a bucket
// counts at its end. Calls give back there what they took here.
func (w *window) handOver(now int64, interval time.Duration) *window {
	w.roll(now)
	w.handed = max(now, w.head*w.width)
	w.heir = newWindow(w.cell, w.handed, interval)
	for b := w.head - buckets; b <= w.head; b++ {
		if to := w.heir.number(w.end(b)); w.heir.keeps(to) {
			*w.heir.count(to) += *w.count(b)
			w.heir.used += *w.count(b)
		}
	}
	return w.heir
}

// GiveBack gives units back to the bucket that they were counted in.
func (w *window) GiveBack(r *engine.Reservation, _ int64) {
	s := w.cell.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(w.cell)
	w.cancel(r.Token, r.Units)
}

// windows reports whether a value has a window, and not a bucket that is filled up. The latest rule
// says so if it has either, even for a call that is judged by an older one: what the call takes
// counts for the calls after it.
func (c *controller) windows(x *cell) bool {
	latest := x.shard.rule
	return latest.strict || !latest.refills && (c.strict || x.strict != nil)
}

// usedLocked is how many units a value has used as a call at now finds it. The caller holds the lock of the shard,
// and has settled the cell.
func (c *controller) usedLocked(x *cell, now int64, q *quota) int64 {
	switch {
	case !c.windows(x):
		return x.bucket.at(now, int64(c.rule.Interval), q).used
	case x.strict == nil:
		return 0
	}
	x.strict.roll(now)
	return x.strict.used
}

// room is how long after now n units of a value fit if no other call comes first; n is at most
// the size. It needs what used needs.
func (c *controller) room(x *cell, now, n int64, q *quota) time.Duration {
	switch {
	case !c.windows(x):
		return x.bucket.room(now, n, int64(c.rule.Interval), q)
	case c.usedLocked(x, now, q) <= q.size-n:
		return 0
	}
	return x.strict.room(now, n, q.size)
}

// goOnLocked gives a cell what c counts with, from what the rules before counted with. What a bucket had
// used at an unknown time counts as of now. The caller holds the lock of the shard.
func (c *controller) goOnLocked(x *cell, now int64) {
	switch s := x.shard; {
	case c.strict && x.strict != nil:
		if x.strict.width != bucketWidth(c.rule.Interval) {
			x.strict = x.strict.handOver(now, c.rule.Interval)
		}
	case c.strict:
		used := int64(0)
		if x.bucket.filled != never {
			used = x.bucket.at(now, int64(c.rule.Interval), c.quotaOf(x.value)).used
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
