package model

import (
	"math"
	"math/big"
	"slices"
	"time"
)

// queue holds the turns of a throttle, in units of 2^-32 ns: the granted ones, and the awaited ones
// in order, each a cost after the one before it.
type queue struct {
	granted, waiting []*turn
	paid             payment // to the granted ones
	overtaken        bool    // the last call was not a prioritized one
}

type turn struct {
	call    *Call // nil for the last unit of a token bucket that the queue continues
	queue   *queue
	awaited bool // the call doesn't run before
	first   bool // it jumps ahead
	cost    *big.Int
	at      *big.Int // as things stand, if it is awaited

	// paid is for a turn that jumped ahead: when it came, the payments of the turn right behind it,
	// to it and to the turns before it. before is the queue's paid at the time of the grant.
	paid, before payment
}

// payment holds a waiting turn's payments to turns that jumped ahead of it: never more than its own
// cost.
type payment struct {
	by  *turn
	sum *big.Int
}

// of returns x's payment, if known.
func (p payment) of(x *turn) *big.Int {
	if p.by == x {
		return p.sum
	}
	return new(big.Int)
}

// parts converts a time to units of 2^-32 ns.
func parts(ns int64) *big.Int { return new(big.Int).Lsh(big.NewInt(ns), 32) }

// whole converts a time to nanoseconds.
func whole(at *big.Int) int64 {
	if ns := new(big.Int).Rsh(at, 32); ns.IsInt64() {
		return ns.Int64()
	}
	return math.MaxInt64
}

// after returns the turn behind the first i waiting turns: a cost after the last of them, or at
// once.
func (q *queue) after(i int, now int64, cost *big.Int) (*big.Int, time.Duration) {
	all := slices.Concat(q.granted, q.waiting[:i])
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

// spot returns the position of a prioritized call among the waiting ones, and the payment of the
// call behind it. The prioritized call queues behind the last one that jumped ahead. The others pay
// for it in order, each with the remainder of its own cost; it queues before the first that can pay
// the whole remainder.
func (q *queue) spot(now int64, cost *big.Int) (i int, paid payment) {
	paid = q.paid
	for j, x := range q.waiting {
		if x.first {
			i, paid = j+1, x.paid
		}
	}
	for due := cost; i < len(q.waiting); i++ {
		x := q.waiting[i]
		has, pays := new(big.Int).Sub(x.cost, paid.of(x)), due
		if at, _ := q.after(0, now, cost); i == 0 && len(q.granted) > 0 { // the time since the latest turn
			pays = new(big.Int).Sub(at, q.granted[len(q.granted)-1].at)
		}
		if pays.Cmp(has) <= 0 {
			return i, payment{x, new(big.Int).Add(paid.of(x), pays)}
		}
		if due = new(big.Int).Sub(due, has); due.Sign() < 0 {
			due = new(big.Int)
		}
	}
	return i, payment{}
}

// next returns the turn that a call would get now, and its wait.
func (q *queue) next(now int64, cost *big.Int, first bool) (*big.Int, time.Duration) {
	q.advance(now)
	i := len(q.waiting)
	if first {
		i, _ = q.spot(now, cost)
	}
	return q.after(i, now, cost)
}

// take gives a call the turn that next returned.
func (q *queue) take(c *Call, now int64, cost *big.Int, first, awaited bool) {
	at, wait := q.next(now, cost, first)
	x := &turn{call: c, queue: q, awaited: awaited, first: first, cost: cost, at: at}
	c.turns = append(c.turns, x)
	i, paid := len(q.waiting), payment{}
	if first {
		i, paid = q.spot(now, cost)
	}
	q.overtaken = q.overtaken || i < len(q.waiting)
	switch {
	case wait == 0:
		x.before = q.paid
		if len(q.waiting) > 0 {
			q.paid = paid
		}
		if q.granted = append(q.granted, x); len(q.granted) > 400 {
			q.granted = q.granted[200:] // no call leaves a turn that has so many behind it
		}
	default:
		x.paid = paid
		q.waiting = slices.Insert(q.waiting, i, x)
	}
	q.line()
}

// line puts waiting turns a cost behind each other.
func (q *queue) line() {
	for i, x := range q.waiting {
		if before := slices.Concat(q.granted, q.waiting[:i]); len(before) > 0 {
			x.at = new(big.Int).Add(before[len(before)-1].at, x.cost)
		}
	}
}

// advance grants the turns that are due by now.
func (q *queue) advance(now int64) {
	for len(q.waiting) > 0 && whole(q.waiting[0].at) <= now {
		q.grantDue(now)
	}
}

// grantDue grants a turn that is due. The turn and all turns behind it are delayed if the waiting
// call is overdue by more than both the turn's cost and 50 ms.
func (q *queue) grantDue(now int64) {
	x := q.waiting[0]
	if late := now - max(whole(x.at), x.call.wake); late > max(whole(x.cost), int64(50*time.Millisecond)) && x.awaited {
		x.at = parts(now)
	}
	q.grant()
	q.line()
}

func (q *queue) grant() {
	x := q.waiting[0]
	if x.before = q.paid; x.first {
		q.paid = x.paid
	}
	q.granted = append(q.granted, x)
	q.waiting = q.waiting[1:]
}

// look grants a turn at now, and the turns before it that are due by then.
func (x *turn) look(now, by int64) {
	for slices.Contains(x.queue.waiting, x) && whole(x.queue.waiting[0].at) <= by {
		x.queue.grantDue(now)
	}
}

// come grants a turn, and those before it, regardless of the time.
func (x *turn) come() {
	for slices.Contains(x.queue.waiting, x) {
		x.queue.grant()
	}
}

// leave gives up a turn: the turns behind it advance, but not into the past. A granted turn is lost
// if there is a later one.
func (x *turn) leave(now int64) {
	q := x.queue
	q.advance(now)
	if i := slices.Index(q.waiting, x); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else if n := len(q.granted); n > 0 && q.granted[n-1] == x {
		q.granted, q.paid = q.granted[:n-1], x.before
	} else {
		return
	}
	if len(q.waiting) > 0 {
		if q.waiting[0].at, _ = q.after(0, now, q.waiting[0].cost); whole(q.waiting[0].at) <= now {
			q.grant()
		}
	}
	q.line()
	q.advance(now)
}

// last returns the latest turn of all, granted or awaited, or nil if there was none.
func (q *queue) last() *big.Int {
	all := slices.Concat(q.granted, q.waiting)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1].at
}

// follow schedules all later turns after the given time, unless calls wait.
func (q *queue) follow(at *big.Int) {
	if before := q.last(); len(q.waiting) == 0 && (before == nil || before.Cmp(at) < 0) {
		q.granted = append(q.granted, &turn{queue: q, at: at})
	}
}

// takeTurn gives a call a turn that is at most maxWait away. A prioritized call jumps ahead; if its
// own turn is not awaited, it delays no waiting call.
func (m *Model) takeTurn(q *queue, c *Call, cost *big.Int, maxWait time.Duration, awaited bool) (wait time.Duration, ok bool) {
	first := c.Prioritized && (awaited || !slices.ContainsFunc(q.waiting, func(x *turn) bool { return x.awaited }))
	if _, wait = q.next(m.now, cost, first); wait > maxWait {
		return wait, false
	}
	q.take(c, m.now, cost, first, awaited)
	m.rewake()
	return wait, true
}

// leaveTurns makes a call leave all its queues.
func (m *Model) leaveTurns(c *Call) {
	for _, x := range c.turns {
		x.leave(m.now)
	}
	m.rewake()
}

// rewake updates the wake times of calls that wait for turns.
func (m *Model) rewake() {
	for _, c := range m.calls {
		if c.State == Waiting && len(c.turns) > 0 {
			c.wake = c.firm
			for _, x := range c.turns {
				if x.awaited {
					c.wake = max(c.wake, whole(x.at))
				}
			}
		}
	}
}
