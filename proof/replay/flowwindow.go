package replay

import (
	"slices"
	"time"
)

// windowTwin is a window of a node, which is to say the book seen through the shape of
// a rule. Every rule of a trace that has a window has the shape of the second window.
type windowTwin struct {
	book            *book
	node            NodeRef
	now             int64
	start           int64 // of the bucket of now
	width, interval int64
}

func (b *book) window(x applied, now int64) windowTwin {
	return windowTwin{b, x.node, now, floor(now, x.width()), x.width(), int64(x.Interval)}
}

// used is what the window counts while the bucket that starts at a time is its newest.
func (w windowTwin) used(start int64) int64 {
	return w.book.charged(w.node, start+w.width-w.interval, start+w.width, w.now)
}

// fits reports whether n more units in a bucket are within the limit for as long as
// that counts, together with what is borrowed from the buckets that begin meanwhile.
func (w windowTwin) fits(bucket, n, limit int64) bool {
	for start := bucket; start < bucket+w.interval; start += w.width {
		if w.used(start)+n > limit {
			return false
		}
	}
	return true
}

// borrow finds the first coming bucket, less than a timeout away, in which there is room
// for n units: what counts now but for what will have expired, and everything that is
// borrowed, must leave it.
func (w windowTwin) borrow(n, limit, timeout int64) (bucket int64, ok bool) {
	end := w.start + w.width
	borrowed := w.book.charged(w.node, end, end+int64(time.Minute), w.now)
	if borrowed >= limit {
		return 0, false
	}
	for bucket = end; bucket-w.now < timeout && bucket < end+w.interval; bucket += w.width {
		if left := w.book.charged(w.node, bucket+w.width-w.interval, end, w.now); left+borrowed+n <= limit {
			return bucket, true
		}
	}
	return 0, false
}

// charged is the units that the windows of a node count in the buckets from one time to
// another.
func (b *book) charged(ref NodeRef, from, to, now int64) (units int64) {
	const longest = int64(time.Minute) // that anybody waits in a trace
	for _, c := range slices.Backward(b.calls) {
		if c.asked < from-longest {
			break
		}
		if at, counts := c.chargedAt(ref, now); counts && b.on(ref, c) && at >= from && at < to {
			units += c.units
		}
	}
	return units
}

// chargedAt is the time in whose bucket the windows of a node of the call count it by
// now: where a rule reserved it there, or else that in which it runs, from its release
// on.
func (c *call) chargedAt(ref NodeRef, now int64) (at int64, counts bool) {
	if c.blocked {
		return 0, false
	}
	if i := slices.IndexFunc(c.charges, func(g grant) bool { return g.node == ref }); i >= 0 {
		return c.charges[i].bucket, true
	}
	if c.borrowed {
		return c.runs(), c.released <= now
	}
	return c.released, c.released <= now
}

// held are the units that the semaphore of a node counts: of calls that run, and of those
// that wait and were granted theirs.
func (b *book) held(ref NodeRef, now int64) (units int64) {
	for _, c := range b.calls {
		if !c.blocked && !c.exited && (c.released <= now || slices.Contains(c.holds, ref)) && b.on(ref, c) {
			units += c.units
		}
	}
	return units
}

// passed is the units that a node counts as passed in [from, to).
func (b *book) passed(ref NodeRef, from, to, now int64) (units int64) {
	for _, c := range slices.Backward(b.calls) {
		if !c.blocked && c.released >= from && c.released < to && c.released <= now && b.on(ref, c) {
			units += c.units
		}
	}
	return units
}
