package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// throttle spaces calls evenly: each takes a slot one cost after the last one,
// and the first after an idle time runs at once, whatever its size. Idle time earns
// no credit. It is safe for concurrent use.
//
// Invariant, under mu: last is the slot granted latest, and only moves forward,
// except that a call which gives its slot back while nobody has queued behind it
// moves last to where it was before. So two calls that run are never closer
// than the cost of the later one.
type throttle struct {
	mu   shared.Mutex
	last slot
}

// slot is a point in time, kept to a fraction of a nanosecond so that a rate whose
// cost is no whole number of them doesn't drift.
type slot struct {
	ns   int64
	frac uint32 // 1/2^32 ns
}

// longAgo is before every time that a clock can show, and far enough from the end
// of the range for any cost to be added.
const (
	longAgo = math.MinInt64 / 2
	maxCost = 1 << 61 // 73 years; a longer cost is never waited for
)

func newThrottle() *throttle { return &throttle{last: slot{ns: longAgo}} }

// cost is the time that n units take at perUnit nanoseconds each. It is never zero:
// no two calls get the same slot, so whoever gives one back knows whether somebody
// has queued behind it.
func cost(n int64, perUnit float64) slot {
	c := float64(n) * perUnit
	if !(c < maxCost) {
		return slot{ns: maxCost}
	}
	whole := math.Floor(c)
	frac := uint32((c - whole) * (1 << 32))
	if whole == 0 {
		frac = max(frac, 1)
	}
	return slot{ns: int64(whole), frac: frac}
}

func (s slot) plus(c slot) slot {
	frac := uint64(s.frac) + uint64(c.frac)
	return slot{ns: s.ns + c.ns + int64(frac>>32), frac: uint32(frac)}
}

// next is the slot that a call at now would get, and how long it would wait. A slot
// whose time is now keeps its fraction, so that callers who come right on time get
// no more than the rate. The caller holds mu.
func (t *throttle) next(now int64, c slot) (slot, time.Duration) {
	if at := t.last.plus(c); at.ns >= now {
		return at, time.Duration(at.ns - now)
	}
	return slot{ns: now}, 0
}

// fits reports whether the wait, which it returns, would be at most maxWait.
func (t *throttle) fits(now int64, c slot, maxWait time.Duration) (wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, wait = t.next(now, c)
	return wait, wait <= maxWait
}

// take takes the next slot if the wait is at most maxWait. before is the slot that
// was the latest until then.
func (t *throttle) take(now int64, c slot, maxWait time.Duration) (wait time.Duration, got, before slot, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.last
	got, wait = t.next(now, c)
	if wait > maxWait {
		return wait, slot{}, before, false
	}
	t.last = got
	return wait, got, before, true
}

// reserve notes a slot on the call, so that a refusal gives it back.
func (t *throttle) reserve(inv *core.Invocation, got, before slot) {
	inv.Reserve(core.Reservation{
		Holder: t, Units: int64(got.frac)<<32 | int64(before.frac),
		Token: got.ns, Undo: before.ns,
	})
}

// GiveBack takes a slot back if it is still the latest. Otherwise it stays empty:
// the queue behind it keeps its distances.
func (t *throttle) GiveBack(r *core.Reservation) {
	t.giveBack(slot{ns: r.Token, frac: uint32(r.Units >> 32)}, slot{ns: r.Undo, frac: uint32(r.Units)})
}

func (t *throttle) giveBack(got, before slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == got {
		t.last = before
	}
}

// retryAfter is when the next unit would not be refused any more.
func (t *throttle) retryAfter(now int64, c slot, maxWait time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, wait := t.next(now, c)
	return wait - maxWait
}

// idle reports whether the throttle can be forgotten: a new one would not admit
// anything earlier, not even the largest call.
func (t *throttle) idle(now int64, perUnit float64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, wait := t.next(now, cost(stat.MaxUnits, perUnit))
	return wait == 0
}
