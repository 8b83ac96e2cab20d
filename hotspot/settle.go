package hotspot

import (
	"math"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
)

// Units that a call has reserved go back to the place from which they came, under the lock of its shard:
// a refund to the cell of a value that was evicted since changes nothing, as all of the cell's units
// had left it. But the value is charged where it is then. It may have another cell, or none; see charge.
// Only units in flight are charged in place: while a call holds any, their cell stays.
//
// In a cell, the holders are:
//
//	window       of a window
//	tokenCosts   of a token bucket
//	turnCosts    of a throttle
//	permitUnits  of units in flight
//	quotaUnits   of a quota
//
// Values without a cell share those of the rest, and costOfRest tells them apart.

// charge counts n units that a call used beyond its reservation against the value's limit, as it
// is now. The value is found like that of a new call, and the units count in the rest if there is
// no room for a cell. They are forgiven if the rule has come to limit units in flight, or to share
// its limits in a cluster.
//
// perUnit is the time of a unit where the call took a turn, in ns, or 0. It counts if the limit is
// now 0: nothing passes, but the units are owed once something does.
func (s *shard) charge(v argument.Value, hash uint64, n, now int64, perUnit float64) (forgiven int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.rule
	if c.rule.Metric == Concurrency || c.member != nil {
		return n
	}
	p := (*plan)(nil)
	if x := s.cells.find(&v, hash); x != nil {
		p = x.plan
	}
	q, cost := c.quotaOf(v, p), c.rule.cost()
	x := s.obtainLocked(v, hash, now, q, c)
	switch c.rule.Behavior {
	case TokenBucket:
		b := x.tokenBucketLocked(now, q)
		return n - b.Charge(x.refunds, now, n, cost.Overdrawn(q.size))
	case Throttle:
		if !q.none {
			perUnit = q.perUnit
		}
		if perUnit == 0 {
			return n
		}
		x.turnsLocked(now, q).Charge(now, meter.Cost(n, perUnit))
		return 0
	}
	if c.calendar != nil { // and the call took from a window, in no period
		return n
	}
	w := c.windowOf(x, now)
	counted := max(0, min(n, cost.Overdrawn(q.size)-w.used))
	w.add(counted)
	return n - counted
}

// Refund returns the units that a call didn't use.
func (w *window) Refund(r *engine.Reservation, n, _ int64) {
	s := w.cell.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(w.cell)
	w.cancel(r.Token, n)
}

// Charge charges the value.
func (w *window) Charge(_ *engine.Reservation, n, now int64) (forgiven int64) {
	return w.cell.charge(n, now)
}

// CountsOf returns what the reservations of one value have in common.
func (w *window) CountsOf() (by any, value argument.Value) { return w.cell.counts() }

func (x *cell) charge(n, now int64) (forgiven int64) {
	return x.shard.charge(x.value, x.hash, n, now, 0)
}

func (x *cell) counts() (by any, value argument.Value) { return x.shard, x.value }

// tokenCosts are units of a cell's token bucket that a rule with a unit took. The reservation has the
// number of the take; see [meter.Refunds].
type tokenCosts cell

// GiveBack returns all of the units.
func (u *tokenCosts) GiveBack(r *engine.Reservation, now int64) { u.Refund(r, r.Units, now) }

// Refund returns the units that a call didn't use.
func (u *tokenCosts) Refund(r *engine.Reservation, n, _ int64) {
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	u.tokens.Refund(u.refunds, r.Token, n)
}

// Charge charges the value.
func (u *tokenCosts) Charge(_ *engine.Reservation, n, now int64) (forgiven int64) {
	return (*cell)(u).charge(n, now)
}

// CountsOf is like [window.CountsOf].
func (u *tokenCosts) CountsOf() (by any, value argument.Value) { return (*cell)(u).counts() }

// turnCosts are units that a call took a turn for in a cell's queue. The turn is a reservation of its
// own. This one's Undo has the time that each unit takes.
type turnCosts cell

// GiveBack does nothing: the call gives back its turn.
func (*turnCosts) GiveBack(*engine.Reservation, int64) {}

// Refund does nothing: the call has already waited for these units.
func (*turnCosts) Refund(*engine.Reservation, int64, int64) {}

// Charge delays the calls of the value that come from now on by what this one used beyond its
// reservation.
func (u *turnCosts) Charge(r *engine.Reservation, n, now int64) (forgiven int64) {
	return u.shard.charge(u.value, u.hash, n, now, perUnitOf(r))
}

// perUnitOf returns the time of a unit that the call took a turn for.
func perUnitOf(r *engine.Reservation) float64 { return math.Float64frombits(uint64(r.Undo)) }

// CountsOf is like [window.CountsOf].
func (u *turnCosts) CountsOf() (by any, value argument.Value) { return (*cell)(u).counts() }

// Refund returns units in flight that a call doesn't need. The call holds the others until it exits.
func (u *permitUnits) Refund(r *engine.Reservation, n, _ int64) {
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	(*cell)(u).releaseLocked(n)
	r.Units -= n
}

// Charge makes the call hold more units, whatever the limit.
func (u *permitUnits) Charge(r *engine.Reservation, n, _ int64) (forgiven int64) {
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	counted := min(n, maxHeld-u.held)
	u.held += counted
	r.Units += counted
	return n - counted
}

// maxHeld is the number of units in flight of a cell beyond which none is counted.
const maxHeld = 1 << 60

// CountsOf is like [window.CountsOf].
func (u *permitUnits) CountsOf() (by any, value argument.Value) { return (*cell)(u).counts() }

// costOfRest holds units that a value without a cell took from the rest. They go back there, but the
// value is charged: it may have a cell by then. Units in flight stay in the rest, which counts for
// cells that were created meanwhile.
type costOfRest struct {
	engine.Settler // of the rest
	shard          *shard
	value          argument.Value
	hash           uint64
}

// Charge charges the value.
func (u costOfRest) Charge(r *engine.Reservation, n, now int64) (forgiven int64) {
	switch u.Settler.(type) {
	case *permitUnits:
		return u.Settler.Charge(r, n, now)
	case *quotaUnits:
		return u.shard.chargeQuota(u.value, u.hash, n, r.Token)
	case *turnCosts:
		return u.shard.charge(u.value, u.hash, n, now, perUnitOf(r))
	}
	return u.shard.charge(u.value, u.hash, n, now, 0)
}

// CountsOf is like [window.CountsOf].
func (u costOfRest) CountsOf() (by any, value argument.Value) { return u.shard, u.value }
