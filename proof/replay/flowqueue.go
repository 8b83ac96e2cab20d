package replay

import (
	"math"
	"math/big"
	"slices"
	"time"
)

// turns are those of a queue that were taken, in their order: those that have come, or were
// not waited for, and those that are waited for, each a cost after the one before it.
type turns struct{ granted, waiting []*taken }

// taken is the turn of a call.
type taken struct {
	of       *turns
	at, cost turn
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

// last is the turn that was taken latest, the zero one if there is none.
func (q *turns) last() turn { return q.before(len(q.waiting)) }

// before is the turn before one that is waited for, the zero one if there is none.
func (q *turns) before(i int) (t turn) {
	switch n := len(q.granted); {
	case i > 0:
		t = q.waiting[i-1].at
	case n > 0:
		t = q.granted[n-1].at
	}
	return t
}

// take has a call take a turn.
func (q *turns) take(c *call, at, cost turn, waits bool) {
	q.advance(c.asked)
	x := &taken{q, at, cost}
	c.turns = append(c.turns, x)
	if waits {
		q.waiting = append(q.waiting, x)
	} else {
		q.granted = append(q.granted, x)
	}
}

// advance grants what has come by now.
func (q *turns) advance(now int64) {
	for len(q.waiting) > 0 && q.waiting[0].at.after(now) <= 0 {
		q.granted = append(q.granted, q.waiting[0])
		q.waiting = q.waiting[1:]
	}
}

// giveBack takes out a turn whose call does not run. Those behind it move up, but to no time
// that is over. One that has come is lost if there is another since.
func (x *taken) giveBack(now int64) {
	q := x.of
	q.advance(now)
	if i := slices.Index(q.waiting, x); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else if n := len(q.granted); n > 0 && q.granted[n-1] == x {
		q.granted = q.granted[:n-1]
	}
	for i, w := range q.waiting {
		w.at = q.before(i).next(now, w.cost)
	}
	q.advance(now)
}
