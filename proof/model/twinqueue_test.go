package model

import (
	"math"
	"math/big"
	"slices"
	"time"
)

// queue is the turns of a throttle, in units of 2^-32 ns: those that were granted, and
// those that are waited for, each a cost after the one before it.
type queue struct{ granted, waiting []*turn }

type turn struct {
	call    *call
	queue   *queue
	awaited bool // the call doesn't run before
	cost    *big.Int
	at      *big.Int // as things stand, if it is waited for
}

// parts is a time in units of 2^-32 ns.
func parts(ns int64) *big.Int { return new(big.Int).Lsh(big.NewInt(ns), 32) }

// whole is a time in nanoseconds.
func whole(at *big.Int) int64 {
	if ns := new(big.Int).Rsh(at, 32); ns.IsInt64() {
		return ns.Int64()
	}
	return math.MaxInt64
}

// next is the turn that a call would get now: a cost after the last one, or at once.
func (q *queue) next(now int64, cost *big.Int) (*big.Int, time.Duration) {
	q.advance(now)
	all := slices.Concat(q.granted, q.waiting)
	if len(all) == 0 {
		return parts(now), 0
	}
	at := new(big.Int).Add(all[len(all)-1].at, cost)
	switch ns := whole(at); {
	case ns < now:
		return parts(now), 0
	case ns == math.MaxInt64:
		return at, math.MaxInt64
	default:
		return at, time.Duration(ns - now)
	}
}

// take has a call take a turn that next has said.
func (q *queue) take(c *call, at, cost *big.Int, wait time.Duration, awaited bool) {
	x := &turn{call: c, queue: q, awaited: awaited, cost: cost, at: at}
	c.turns = append(c.turns, x)
	if wait == 0 {
		q.granted = append(q.granted, x)
	} else {
		q.waiting = append(q.waiting, x)
	}
}

// advance grants what has come by now.
func (q *queue) advance(now int64) {
	for len(q.waiting) > 0 && whole(q.waiting[0].at) <= now {
		q.grant()
	}
}

func (q *queue) grant() {
	q.granted = append(q.granted, q.waiting[0])
	q.waiting = q.waiting[1:]
}

// come grants a turn, and those before it, whatever the time.
func (x *turn) come() {
	for slices.Contains(x.queue.waiting, x) {
		x.queue.grant()
	}
}

// leave gives a turn up: those behind it move up, but to no time that is over. One that was
// granted is lost if there is another since.
func (x *turn) leave(now int64) {
	q := x.queue
	q.advance(now)
	if i := slices.Index(q.waiting, x); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else if n := len(q.granted); n > 0 && q.granted[n-1] == x {
		q.granted = q.granted[:n-1]
	} else {
		return
	}
	for i, w := range q.waiting {
		w.at = parts(now)
		if before := slices.Concat(q.granted, q.waiting[:i]); len(before) > 0 {
			if at := new(big.Int).Add(before[len(before)-1].at, w.cost); i > 0 || whole(at) >= now {
				w.at = at
			}
		}
	}
	if len(q.waiting) > 0 && q.waiting[0].at.Cmp(parts(now)) == 0 {
		q.grant()
	}
	q.advance(now)
}

// leaveTurns has a call leave all its queues, and others wake when their turns are now.
func (t *twin) leaveTurns(c *call) {
	for _, x := range c.turns {
		x.leave(t.now)
	}
	for _, other := range t.calls {
		if other.state == waiting && len(other.turns) > 0 {
			other.wake = other.firm
			for _, x := range other.turns {
				if x.awaited {
					other.wake = max(other.wake, whole(x.at))
				}
			}
		}
	}
}
