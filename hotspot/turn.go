package hotspot

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
)

// turn is a point in time in the queue of a value, kept to a fraction of a nanosecond
// so that a rate whose cost is no whole number of them doesn't drift.
//
// A cell keeps the turn that was given last. It only moves forward, except that a call
// which gives its turn back while nobody has queued behind it moves it to where it was.
// So two calls of a value that run are never closer than the cost of the later one. The
// shard's lock guards it.
type turn struct {
	ns   int64
	frac uint32 // 1/2^32 ns
}

const (
	longAgo = math.MinInt64 / 2 // before every time, and any cost can be added
	maxCost = 1 << 61           // 73 years; a longer cost is never waited for
)

// cost is the time that n units take at perUnit nanoseconds each. It is never zero: no
// two calls get the same turn.
func cost(n int64, perUnit float64) turn {
	c := float64(n) * perUnit
	if !(c < maxCost) {
		return turn{ns: maxCost}
	}
	whole := math.Floor(c)
	frac := uint32((c - whole) * (1 << 32))
	if whole == 0 {
		frac = max(frac, 1)
	}
	return turn{ns: int64(whole), frac: frac}
}

func (t turn) plus(c turn) turn {
	frac := uint64(t.frac) + uint64(c.frac)
	return turn{ns: t.ns + c.ns + int64(frac>>32), frac: uint32(frac)}
}

func (t turn) later(other turn) turn {
	if other.ns > t.ns || other.ns == t.ns && other.frac > t.frac {
		return other
	}
	return t
}

// next is the turn after t that a call at now gets, and how long it waits. The first
// after an idle time runs at once, whatever its size.
func (t turn) next(now int64, c turn) (turn, time.Duration) {
	if at := t.plus(c); at.ns >= now {
		return at, time.Duration(at.ns - now)
	}
	return turn{ns: now}, 0
}

// turnUnits are a turn that a call has in a cell's queue.
type turnUnits cell

// reserved notes a turn and the one before it.
func (u *turnUnits) reserved(got, before turn) core.Reservation {
	return core.Reservation{
		Holder: u, Units: int64(got.frac)<<32 | int64(before.frac),
		Token: got.ns, Undo: before.ns,
	}
}

// GiveBack gives the turn back if it is still the latest. Otherwise it stays empty: the
// queue behind it keeps its distances.
func (u *turnUnits) GiveBack(r *core.Reservation) {
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	if got := (turn{r.Token, uint32(r.Units >> 32)}); u.turn == got {
		u.turn = turn{r.Undo, uint32(r.Units)}
	}
}
