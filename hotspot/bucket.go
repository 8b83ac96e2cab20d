package hotspot

import (
	"math"
	"math/bits"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/stat"
)

// bucket holds the units that a value has used where the rule isn't strict. The first call that
// arrives more than an interval after the last filling refills it, with the units earned since
// then. The arithmetic is alibaba/Sentinel's.
//
// It stores the units used, not the units left, so that it keeps its meaning under another
// threshold. The shard's lock guards it.
type bucket struct {
	filled int64 // time of the last filling; never if no call has taken units yet
	used   int64
}

const never = math.MinInt64

// at returns the bucket as a call at now finds it. A delayed caller may bring an older time: it
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

// room returns the time until n units fit if no other call comes first; n is at most the size.
func (b bucket) room(now, n, interval int64, q *quota) time.Duration {
	if b.at(now, interval, q).fits(n, q) {
		return 0
	}
	// The bucket is refilled once more than an interval has passed, and has enough units once the
	// missing ones are earned.
	after := max(interval+1, earning(b.used-q.size+n, interval, q.units))
	return time.Duration(max(0, b.filled+after-now))
}

// earning returns the time it takes to earn need units: need * interval / units, rounded up.
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

// earned returns the units earned in the given time: time / interval * units, rounded down.
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

// GiveBack returns the units to the filling they were taken from, and undoes the filling if no other
// call has taken any of it. A later filling was computed with them in use: there they stay used
// until earned again, because otherwise more could pass than the bucket holds.
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

// filling records the last filling of a bucket. If the call is refused elsewhere, the filling is
// undone; otherwise it would start an interval for a value that got nothing, and cut short one in
// which units were partly earned.
type filling struct{ before, after bucket }

// useLocked takes n units of b, the bucket as the call finds it.
func (x *cell) useLocked(b bucket, n int64) {
	if b.filled != x.bucket.filled {
		x.filling = filling{x.bucket, b}
	}
	b.used += n
	x.bucket = b
}

// takeFilledLocked completes takePlain after the cell is found. It releases the lock.
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

// takeFromRestLocked takes n units for a value that has no cell. The time of its first call is
// unknown, so the rest is not refilled at once: units taken there stay within the threshold in every
// real interval, so the value's own bucket would not have refused them.
func (s *shard) takeFromRestLocked(now, n int64, q *quota, rule *controller) (engine.Reservation, bool) {
	w := s.restWindow(now, rule.rule.Interval)
	receipt, ok := w.TryAdd(0, now, n, q.units)
	if !ok {
		return engine.Reservation{}, false
	}
	s.restAt = max(s.restAt, now)
	return engine.Reservation{Holder: restUnits{w}, Units: n, Token: int64(receipt)}, true
}

// restWindow returns the window of the rest, creating it on first use and when the rule's interval
// has changed.
func (s *shard) restWindow(now int64, interval time.Duration) *stat.Window {
	if s.window != nil && s.interval == interval {
		return s.window
	}
	old := s.window
	shape := stat.Shape{Interval: interval, Buckets: 10, Strict: true}
	for shape.Validate() != nil {
		shape.Buckets-- // 1 divides every interval
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

// newBucketLocked returns the bucket of a new cell: some of the units that the rest gave lately may
// have gone to its value.
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

// GiveBack returns the units to the window bucket they were counted in.
func (u restUnits) GiveBack(r *engine.Reservation, _ int64) { u.Cancel(r.Receipt(), r.Units) }
