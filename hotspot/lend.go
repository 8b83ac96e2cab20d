package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/shared"
)

// Lending: where many processors contend for one value of a shard, its cell lends units to the
// callers' lanes ahead of their calls; and once its bucket is full, it publishes the refusal where
// no lock is needed to read it. A call decided that way writes only to its lane. Only one value of a
// shard lends at a time, its hot value, and only under one controller's quota. Its cell stays the
// same, and every decision that isn't made here is made there, under the lock.
//
// It pays with two or more processors: with two goroutines on one value, an admitted call took 38 %
// of the time that it takes without lending, and a refused one 35 % (medians of five alternating
// runs of BenchmarkHotspotContended in package api).
//
// # Invariants
//
//  1. Units on lanes count as used in the newest bucket of the cell's window, from before they can
//     be spent until after they no longer can. So admitted units plus units on lanes are at most the
//     used ones, and the window starts no new bucket during that time. Likewise a cell with a
//     refilled bucket isn't refilled during that time.
//  2. While a refusal is shown, there is no room for that many units, not counting lent ones, and no
//     bucket begins or is refilled.
//  3. settle ends both, counts the calls decided without the lock, and comes before any read or change
//     of the cell. There is one exception, takePlain in the same bucket or filling where there is
//     room (see collect): it only uses more, which leaves (1) and (2) true.
//  4. token and until are stored before anything is lent or shown, and don't change while it is. Nor
//     does the tick of the cell's heat, since until is at most the tick's end.
//
// A call that spends loads the word of its lane, then until and token, and swaps that word for
// another. Nothing was settled in between, or the word's version would have changed; so until and
// token belong to the bucket in which the units are used, and they cover the call's time. By (1)
// there was room for the call at the swap, the moment of its admission.
//
// A call that is refused loads the shown refusal, then until, and then the refusal again, and finds
// the same number. So that refusal was shown when until was loaded, the moment of the call's
// refusal: by (2) the call's units didn't fit, not counting lent ones.
//
// In both cases the call has checked that the hot value belongs to the controller that decides it.
// A value that is evicted or follows another rule is settled first, and from then on nothing is
// lent or shown there.
//
// Lending units and showing refusals doesn't allocate; making a value hot does, once callers have
// waited for each other [lending.After] times within a second.
type hotValue struct {
	cell  *cell
	rule  *controller
	quota *quota
	plan  *plan // of the cell; the value is no longer hot once another call names another
	hash  uint64
	value argument.Value

	holder  engine.Holder    // of the units that calls take
	until   shared.Int64     // the last instant at which lent units and a shown refusal are valid
	token   shared.Int64     // the number of the window's bucket, or the time of the filling
	refusal shared.Uint64    // number(32) | minimum units refused(32); 0 means none is shown
	block   *core.BlockError // set before the first refusal is shown, and never changed

	lanes []hotLane // length is a power of two

	// Guarded by the lock of the shard:
	lent int64 // since the last settling, spent or not
	used int64 // when a unit was last lent or a refusal shown, or when the value became hot
}

// hotLane fills two cache lines, because processors fetch lines in pairs.
type hotLane struct {
	credit  lending.Credit
	refused shared.Uint64 // calls(24) | units(40)

	counted uint32 // version of credit up to which calls are counted; guarded by the shard's lock
	_       [108]byte
}

const (
	fewestUnits = 1<<32 - 1 // of a refusal

	refusedAt    = 40
	refusedUnits = 1<<refusedAt - 1
	// A caller that finds the word half full has it emptied. For an overflow, 2^23 calls, or 2^19
	// of the largest, would have to be delayed between adding and emptying.
	refusedHalf = 1<<63 | 1<<(refusedAt-1)

	// idleHot is the time that a value stays hot after the contention ends.
	idleHot = time.Minute
)

func newHotValue(x *cell, c *controller, q *quota, now int64) *hotValue {
	lanes := make([]hotLane, lending.Lanes(lending.Procs()))
	h := &hotValue{cell: x, rule: c, quota: q, plan: x.plan, hash: x.hash, value: x.value, lanes: lanes, used: now}
	if h.holder = (*bucketUnits)(x); !q.none && c.windows(x) {
		h.holder = c.windowOf(x, now)
	}
	return h
}

// take decides on n units if that needs no lock, and reserves them if they are admitted.
func (h *hotValue) take(inv *engine.Invocation, lane uint32, now, n int64) (decided bool, block *core.BlockError) {
	l := &h.lanes[lane&uint32(len(h.lanes)-1)]
	for {
		credit := l.credit.Load() // must be loaded first
		refusal := h.refusal.Load()
		if now > h.until.Load() {
			return false, nil
		}
		if lending.Held(credit) >= n {
			token := h.token.Load()
			if l.credit.Spend(credit, n) {
				inv.ReserveUnits(h.holder, n, token)
				return true, nil
			}
			continue
		}
		if fewest := int64(refusal & fewestUnits); fewest == 0 || n < fewest {
			return false, nil
		}
		if h.refusal.Load() == refusal {
			h.refuse(l, n)
			return true, h.block
		}
	}
}

// refuse counts a refused call on a lane. A goroutine that drops the hot value first marks it as
// dropped, and then counts the lanes: either the call is counted there, or it sees that the value
// was dropped and counts itself.
func (h *hotValue) refuse(l *hotLane, n int64) {
	if s := h.cell.shard; l.refused.Add(1<<refusedAt|uint64(n))&refusedHalf != 0 || s.hot.Load() != h {
		s.mu.Lock()
		h.settle()
		s.mu.Unlock()
	}
}

// The functions below need the lock of the shard.

// settle brings the cell to the state it would have if nothing had ever been lent or shown.
func (h *hotValue) settle() {
	if n := h.refusal.Load(); n&fewestUnits != 0 {
		h.refusal.Store((n | fewestUnits) + 1)
	}
	x := h.cell
	units := h.lent // units that were spent or refused
	for i := range h.lanes {
		l := &h.lanes[i]
		if h.lent != 0 {
			left := l.credit.Collect()
			if left != 0 {
				l.counted++
				x.spend(-left)
				units -= left
			}
			version := lending.Version(l.credit.Load()) // stable, as there is nothing to spend
			x.passed += int64(version - l.counted)
			l.counted = version
		}
		if l.refused.Load() != 0 {
			refused := l.refused.Swap(0)
			x.refused += int64(refused >> refusedAt)
			units += int64(refused & refusedUnits)
		}
	}
	h.lent = 0
	x.heat.amount += units << 8
}

// collect settles the units lent and the refusal shown by the cell, if they affect n units that a
// call takes at now under c.
func (s *shard) collect(c *controller, x *cell, now, n int64) {
	if h := s.hot.Load(); h != nil && h.cell == x && (h.rule != c || now > h.until.Load() || h.quota.none || x.spent() > h.quota.size-n) {
		h.settle()
	}
}

// settle settles the cell's hot value, if it has one.
func (s *shard) settle(x *cell) {
	if h := s.hot.Load(); h != nil && h.cell == x {
		h.settle()
	}
}

// lock acquires the lock of the shard, and settles.
func (s *shard) lock() {
	s.mu.Lock()
	if h := s.hot.Load(); h != nil {
		h.settle()
	}
}

// cool drops the hot value if it is the cell's or if x is nil. Calls counted on lanes after that are
// added by settle, or by later callers; see refuse.
func (s *shard) cool(x *cell) {
	if h := s.hot.Load(); h != nil && (x == nil || h.cell == x) {
		s.hot.Store(nil)
		h.settle()
	}
}

// rests drops the hot value if it hasn't been hot for a minute.
func (s *shard) rests(now int64) {
	if h := s.hot.Load(); h != nil && !lending.Always && now-h.used > int64(idleHot) {
		s.cool(nil)
	}
}

// lend runs after a call was decided under the lock. The call's value may become the hot one, which
// lends to the call's lane if the call passed, and shows the refusal if it didn't.
func (s *shard) lend(c *controller, x *cell, q *quota, lane uint32, now int64, block *core.BlockError, waited bool) {
	s.rests(now)
	h := s.hot.Load()
	if h == nil || h.cell != x || h.rule != c {
		if !lending.Always && !(waited && s.contend(x, now)) {
			return
		}
		if h = s.heatUp(x, c, q, now); h == nil {
			return
		}
	}
	if block == nil {
		h.lend(lane, now)
	} else {
		h.show(block, now)
	}
}

// heatUp makes a value the hot one, unless another is at least half as hot. In that case it returns
// nil.
func (s *shard) heatUp(x *cell, c *controller, q *quota, now int64) *hotValue {
	if other := s.hot.Load(); other != nil && other.cell != x {
		other.settle() // brings its heat up to date
		if x.heat.at(now) <= 2*other.cell.heat.at(now) {
			return nil
		}
	}
	s.cool(nil)
	h := newHotValue(x, c, q, now)
	s.hot.Store(h)
	return h
}

// contend records that a call for the cell has waited for the lock, and reports whether that
// happened often within a second. Values that alternate reset each other's count.
func (s *shard) contend(x *cell, now int64) bool {
	w := &s.waited
	switch second := now >> 30; {
	case w.second != second || w.times == 0:
		w.cell, w.second, w.times = x, second, 1
	case w.cell == x:
		w.times++
	default:
		w.times--
	}
	if w.times < int64(lending.After) {
		return false
	}
	w.times = 0
	return true
}

// waiting counts how often calls for one cell have waited for the lock of its shard.
type waiting struct {
	cell   *cell
	second int64
	times  int64
}

// storeUntil stores the validity of units lent, and refusals shown, from now on.
func (h *hotValue) storeUntil() {
	x := h.cell
	until := (x.heat.tick+1)<<heatTick - 1
	if !h.quota.none {
		until = min(until, h.holds())
	}
	if h.rule.asks && x.extras != nil {
		until = min(until, x.extras.due-1) // a call at that time asks
	}
	token := x.bucket.filled
	if x.strict != nil {
		token = x.strict.head
	}
	if h.until.Load() != until || h.token.Load() != token {
		h.until.Store(until)
		h.token.Store(token)
	}
}

// holds returns the last instant before the window's newest bucket ends, or before the bucket may
// be refilled.
func (h *hotValue) holds() int64 {
	if w := h.cell.strict; w != nil {
		return w.until
	}
	return h.cell.bucket.filled + int64(h.rule.rule.Interval)
}

// spent returns the units used in the cell's window, or in its bucket if it has no window. It rolls
// neither.
func (x *cell) spent() int64 {
	if x.strict != nil {
		return x.strict.used
	}
	return x.bucket.used
}

// spend uses n units there; a negative n returns them.
func (x *cell) spend(n int64) {
	if x.strict != nil {
		x.strict.add(n)
		return
	}
	x.bucket.used += n
}

// lend lends a part of the room to a lane.
func (h *hotValue) lend(lane uint32, now int64) {
	x := h.cell
	n := lending.Units(h.quota.size-x.spent(), len(h.lanes))
	if n == 0 {
		return
	}
	h.storeUntil()
	x.spend(n) // before any call can take it
	h.lent += n
	h.used = now
	l := &h.lanes[lane&uint32(len(h.lanes)-1)]
	l.credit.Lend(n)
	l.counted++
}

// show publishes that calls are refused, now that nothing is lent.
func (h *hotValue) show(block *core.BlockError, now int64) {
	x, fewest := h.cell, int64(1)
	if !h.quota.none {
		if x.strict == nil && x.bucket.filled == never || now > h.holds() {
			return // retrying depends on when the calls arrive
		}
		fewest = max(1, h.quota.size-x.spent()+1)
	}
	if fewest > fewestUnits {
		return
	}
	h.storeUntil()
	if h.block == nil {
		h.block = block
	}
	h.used = now
	h.refusal.Store(h.refusal.Load() + uint64(fewest))
}
