package hotspot

import (
	"math"
	"math/bits"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/stat"
)

// bucket is what a value has used of its units where the rule isn't strict. The first call that arrives more than an interval
// after the last filling refills it, by as much as the time since then has earned. The arithmetic
// is alibaba/Sentinel's.
//
// It keeps what is used rather than what is left, so that it means the same under another
// threshold. The shard's lock guards it.
type bucket struct {
	filled int64 // when it was last filled; never if no call has taken anything yet
	used   int64
}

const never = math.MinInt64

// at is the bucket as a call at now finds it. A caller that was delayed may have an older time: it
// finds the bucket unchanged.
func (b bucket) at(now int64, interval int64, q *quota) bucket {
	switch {
	case b.filled == never:
		return bucket{filled: now}
	case now-b.filled > interval:
		return bucket{filled: now, used: max(0, b.used-earned(now-b.filled, interval, q.units))}
	}
	return b
}

// fits reports whether n more units are within the limit.
func (b bucket) fits(n int64, q *quota) bool { return !q.none && b.used <= q.size-n }

// room is how long after now n units fit if no other call comes first; n is at most the size.
func (b bucket) room(now, n, interval int64, q *quota) time.Duration {
	if b.at(now, interval, q).fits(n, q) {
		return 0
	}
	// Units are earned once more than an interval has passed; enough are, once the time that earns
	// the missing ones has passed.
	after := max(interval+1, earning(b.used-q.size+n, interval, q.units))
	return time.Duration(max(0, b.filled+after-now))
}

// earning is the time in which need units come back: need * interval / units, rounded up.
func earning(need, interval, units int64) int64 {
	high, low := bits.Mul64(uint64(need), uint64(interval))
	if high >= uint64(units) {
		return math.MaxInt64 / 4
	}
	n, rest := bits.Div64(high, low, uint64(units))
	if rest > 0 {
		n++
	}
	return int64(min(n, math.MaxInt64/4))
}

// earned is how many units come back in a time: time / interval * units, rounded down.
func earned(time, interval, units int64) int64 {
	high, low := bits.Mul64(uint64(time), uint64(units))
	if high >= uint64(interval) {
		return math.MaxInt64
	}
	n, _ := bits.Div64(high, low, uint64(interval))
	return int64(min(n, math.MaxInt64))
}

// bucketUnits are units that a call took from a cell's bucket.
type bucketUnits cell

// GiveBack gives them back to the filling that they were taken from, and undoes the filling if no
// other call has any of it. A later filling was computed with them in use: there they stay used,
// and have to be earned again, or more could pass than the bucket holds.
func (u *bucketUnits) GiveBack(r *engine.Reservation, _ int64) {
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	u.shard.settle((*cell)(u))
	latest := &u.filling
	switch r.Token {
	case u.bucket.filled:
		u.bucket.used = max(0, u.bucket.used-r.Units)
		if u.bucket == latest.after {
			u.bucket, *latest = latest.before, filling{}
		}
	case latest.before.filled:
		latest.before.used = max(0, latest.before.used-r.Units)
	}
}

// filling is how a bucket was last filled. A call that is refused elsewhere undoes it; otherwise it
// would begin an interval for a value that got nothing, and cut short one in which units were
// partly earned.
type filling struct{ before, after bucket }

// useLocked takes n units of b, the bucket as the call finds it. The caller holds the lock.
func (x *cell) useLocked(b bucket, n int64) {
	if b.filled != x.bucket.filled {
		x.filling = filling{x.bucket, b}
	}
	b.used += n
	x.bucket = b
}

// takeFilledLocked is takePlain once the cell is found. The caller holds the lock, which takeFilledLocked
// releases.
func (c *controller) takeFilledLocked(inv *engine.Invocation, x *cell, now, n int64, q *quota) (block *core.BlockError) {
	s := x.shard
	if b := x.bucket.at(now, int64(c.rule.Interval), q); b.fits(n, q) {
		x.useLocked(b, n)
		x.passed++
		s.mu.Unlock()
		inv.ReserveUnits((*bucketUnits)(x), n, b.filled)
		return nil
	}
	x.refused++
	block = c.refuseLocked(x, n, q)
	s.mu.Unlock()
	return block
}

// takeFromRestLocked takes n units for a value that has no cell. The time of its first take is not known,
// so the rest is not refilled all in one go: what is taken there is within the threshold in every
// real interval, so that a bucket of the value's own would not have refused it. The caller holds
// the lock.
func (s *shard) takeFromRestLocked(now, n int64, rule *controller) (engine.Reservation, bool) {
	w := s.restWindow(now, rule.rule.Interval)
	receipt, ok := w.TryAdd(0, now, n, rule.quota.units)
	if !ok {
		return engine.Reservation{}, false
	}
	s.restAt = max(s.restAt, now)
	return engine.Reservation{Holder: restUnits{w}, Units: n, Token: int64(receipt)}, true
}

// restWindow is the window of the rest, made when it is first needed, or when the rule's interval
// has changed.
func (s *shard) restWindow(now int64, interval time.Duration) *stat.Window {
	if s.window != nil && s.interval == interval {
		return s.window
	}
	old := s.window
	shape := stat.Shape{Interval: interval, Buckets: 10, Strict: true}
	for shape.Validate() != nil {
		shape.Buckets-- // 1 divides everything
	}
	s.window, _ = stat.NewWindow(shape)
	s.interval = interval
	if old != nil {
		s.window.SeedFrom(old, now)
	} else {
		s.restAt = now
	}
	return s.window
}

// newBucketLocked is the bucket of a new cell: some of what the rest gave lately may have gone to its
// value. The caller holds the lock.
func (s *shard) newBucketLocked(now int64) bucket {
	if s.window != nil {
		if used := s.window.Sum(now); used > 0 {
			return bucket{filled: s.restAt, used: used}
		}
	}
	return bucket{filled: never}
}

// restUnits are units that a call took from the rest.
type restUnits struct{ *stat.Window }

// GiveBack gives them back to the bucket of the window that they were counted in.
func (u restUnits) GiveBack(r *engine.Reservation, _ int64) { u.Cancel(r.Receipt(), r.Units) }
