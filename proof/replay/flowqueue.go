package replay

import (
	"math"
	"math/big"
	"slices"
	"time"
)

// turns are those of a queue that were taken, in their order: those that have come, or were
// not waited for, and those that are waited for, each a cost after the one before it.
type turns struct {
	granted, waiting []*taken
	paid             turn // by the first that waits, to those that were granted
	overtaken        bool // a prioritized call has not been the last
}

// taken is the turn of a call.
type taken struct {
	of       *turns
	at, cost turn
	first    bool // it is prioritized
	paid     turn // by the one behind it, if it is
}

// queue is the turn that a call gets, and how many are before it that are waited for. Each
// that is overtaken pays with its cost, once; see docs/rules/priority.md.
func (q *turns) queue(c *call, cost turn) (at turn, behind int, paid turn) {
	now := c.asked
	q.advance(now)
	behind, paid = len(q.waiting), turn{new(big.Int)}
	if c.prioritized && behind > 0 {
		pays, due := q.paid, turn{}
		behind = 0
		for i, w := range q.waiting {
			if w.first {
				behind, pays = i+1, w.paid
			}
		}
		for due = pays.plus(cost); behind < len(q.waiting); behind++ {
			w := q.waiting[behind]
			if behind == 0 { // it would wait for as long as nobody ran, if that is longer
				if first := q.last(0).next(now, cost); pays.plus(first).Cmp(w.cost.plus(q.last(0)).Int) <= 0 {
					return first, 0, turn{new(big.Int).Sub(pays.plus(first).Int, q.last(0).Int)}
				}
			} else if due.Cmp(w.cost.Int) <= 0 {
				paid = due
				break
			}
			if due.Sub(due.Int, w.cost.Int); due.Sign() < 0 {
				due.SetInt64(0)
			}
		}
	}
	return q.last(behind).next(now, cost), behind, paid
}

func (t turn) plus(c turn) turn {
	sum := new(big.Int)
	for _, x := range []turn{t, c} {
		if x.Int != nil {
			sum.Add(sum, x.Int)
		}
	}
	return turn{sum}
}

// turn is a time in 2^-32 ns, which is how finely our queues are spaced.
type turn struct{ *big.Int }

func turnAt(now int64) turn { return turn{new(big.Int).Lsh(big.NewInt(now), fine)} }

const fine = 32 // bits of a nanosecond

// cost is the time that units take of a queue at so many nanoseconds each.
func cost(units int64, perUnit float64) turn {
	c, _ := new(big.Float).SetMantExp(big.NewFloat(float64(units)*perUnit), fine).Int(nil)
	return turn{c}
}

// next is the turn that a call gets: a cost after the one before, or at once.
func (t turn) next(now int64, cost turn) turn {
	if t.Int == nil { // nobody was before
		return turnAt(now)
	}
	if next := (turn{new(big.Int).Add(t.Int, cost.Int)}); next.Cmp(turnAt(now).Int) > 0 {
		return next
	}
	return turnAt(now)
}

// after is how long after now the turn comes, in whole nanoseconds.
func (t turn) after(now int64) time.Duration {
	wait := new(big.Int).Sub(t.Int, turnAt(now).Int)
	if wait.Rsh(wait, fine); !wait.IsInt64() {
		return math.MaxInt64
	}
	return time.Duration(wait.Int64())
}

// last is the turn before number i of those that are waited for, the zero one if there is none.
func (q *turns) last(i int) (t turn) {
	switch n := len(q.granted); {
	case i > 0:
		t = q.waiting[i-1].at
	case n > 0:
		t = q.granted[n-1].at
	}
	return t
}

// take has a call take the turn that it gets.
func (q *turns) take(c *call, cost turn, parks bool) {
	at, behind, paid := q.queue(c, cost)
	x := &taken{of: q, at: at, cost: cost, first: c.prioritized, paid: paid}
	c.turns = append(c.turns, x)
	q.overtaken = q.overtaken || behind < len(q.waiting)
	if len(q.waiting) == 0 {
		q.paid = turn{}
	}
	if parks && at.after(c.asked) > 0 {
		q.waiting = slices.Insert(q.waiting, behind, x)
	} else {
		q.grant(x)
	}
	q.follow(c.asked)
}

// follow has those that wait follow each other.
func (q *turns) follow(now int64) {
	for i, w := range q.waiting {
		w.at = q.last(i).next(now, w.cost)
	}
}

func (q *turns) grant(x *taken) {
	q.granted = append(q.granted, x)
	if q.paid = (turn{}); x.first && len(q.waiting) > 0 {
		q.paid = x.paid
	}
}

// advance grants what has come by now.
func (q *turns) advance(now int64) {
	for len(q.waiting) > 0 && q.waiting[0].at.after(now) <= 0 {
		x := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.grant(x)
	}
}

// giveBack takes out a turn whose call does not run. Those behind it move up, but to no time
// that is over. One that has come is lost if there is another since.
func (x *taken) giveBack(now int64) {
	q := x.of
	q.advance(now)
	if i := slices.Index(q.waiting, x); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		switch {
		case x.first:
		case i == 0:
			q.paid = turn{}
		default:
			q.waiting[i-1].paid = turn{}
		}
	} else if n := len(q.granted); n > 0 && q.granted[n-1] == x {
		q.granted = q.granted[:n-1]
		if before := q.last(0); q.paid.Int != nil && before.Int != nil {
			back := new(big.Int).Sub(x.at.Int, before.Int)
			if q.paid = (turn{back.Sub(q.paid.Int, back)}); back.Sign() < 0 {
				q.paid = turn{}
			}
		}
	}
	q.follow(now)
	q.advance(now)
}
