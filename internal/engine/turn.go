package engine

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/meter"
)

// TakeTurn takes the next turn in a queue for the call, at the given cost, if the wait for it is at
// most maxWait. It returns that wait. The caller holds the lock of the queue. The call gives the
// turn back if it is rejected. If the turn is awaited, the rule makes the call wait at least until
// then. If not, the call runs when it may, and uses its turn then.
//
// A call is in the queue until its turn: it may leave, advance, fall behind a prioritized call or,
// after a stall, be postponed.
//
// A prioritized call jumps ahead of others. If its own turn is not awaited, because the rule only
// watches, it jumps ahead only of calls like itself: it doesn't push back calls that have waited
// since the rule was enforced.
func (inv *Invocation) TakeTurn(q *meter.Pacer, cost meter.Moment, maxWait time.Duration, awaited bool) (wait time.Duration, ok bool) {
	first := inv.prioritized && (awaited || !q.Awaited())
	at, wait := q.Next(inv.now, cost, first)
	switch {
	case wait > maxWait:
		return wait, false
	case wait == 0:
		inv.holdTurn(q, at, q.Grant(at))
	default:
		inv.queueTurn(q, at, cost, first, awaited)
	}
	return wait, true
}

// TakeShareTurn takes the next turn for the call in its tenant's share, or a place in the share's queue.
// It returns the least possible wait. The caller holds the lock of the queue. The call gives the turn
// back if it is rejected. If its turn comes too late or it is displaced, by rejects it.
func (inv *Invocation) TakeShareTurn(q *meter.Pacer, c *meter.ShareTurn, by *core.BlockError) (least time.Duration, ok bool) {
	x := inv.nextTurn()
	x.Awaited = true
	until, least, ok := q.QueueShare(&x.Turn, inv.now, c)
	if !ok {
		x.Drop(inv.now)
		inv.turns = inv.turns[:len(inv.turns)-1]
		return 0, false
	}
	if least > 0 {
		x.until, x.by = until, by
		inv.queues, inv.shares = true, true
	}
	inv.reserve(0, 0, 0, false).Holder = x
	return least, true
}

// WaitAtLeast sets a minimum wait, regardless of the calls that leave its queues: the rule makes
// the call wait for something other than a turn, or for longer than until its turn.
func (inv *Invocation) WaitAtLeast(wait time.Duration) { inv.firm = max(inv.firm, wait) }

// holdTurn records a granted turn.
func (inv *Invocation) holdTurn(q *meter.Pacer, at, before meter.Moment) {
	token, part := at.Split()
	undo, undoPart := before.Split()
	inv.reserve(int64(part)<<32|int64(undoPart), token, undo, false).Holder = turnsHolder{q}
}

// queueTurn puts the call into the queue.
func (inv *Invocation) queueTurn(q *meter.Pacer, at, cost meter.Moment, first, awaited bool) {
	x := inv.nextTurn()
	x.Awaited = awaited
	q.Queue(&x.Turn, inv.now, at, cost, first)
	inv.queues = inv.queues || awaited
	inv.reserve(0, 0, 0, false).Holder = x
}

// turnsHolder is the holder of granted turns.
type turnsHolder struct{ *meter.Pacer }

func (h turnsHolder) GiveBack(r *Reservation, now int64) {
	at := meter.MomentOf(r.Token, uint32(r.Units>>32))
	h.GiveUp(at, meter.MomentOf(r.Undo, uint32(r.Units)), now)
}

// turn is a turn that a call waits for in a queue. It belongs to the invocation, and serves one
// call after another.
type turn struct {
	meter.Turn

	// In a share:
	until int64            // time of the call's first look
	by    *core.BlockError // rejects the call; nil in a queue without shares
}

func (x *turn) GiveBack(_ *Reservation, now int64) {
	x.Leave(now)
	if x.by != nil {
		x.until, x.by = 0, nil
	}
}

func (inv *Invocation) nextTurn() *turn {
	n := len(inv.turns)
	if n == cap(inv.turns) || inv.turns[:n+1][n] == nil {
		inv.turns = append(inv.turns, &turn{Turn: meter.MakeTurn(&inv.nap)})[:n]
	}
	inv.turns = inv.turns[:n+1]
	return inv.turns[n]
}

// awaitTurns waits as long as the rules require, or less if turns come earlier because other calls
// have left, or if the engine drains.
//
// The call sleeps once, until the latest of its turns. If it has several, or also waits for
// something else, it announces the end of its sleep in each queue: if a call behind it there sleeps
// too long, it wakes for its own turn there, wakes that call, and goes back to sleep.
func (inv *Invocation) awaitTurns(wait time.Duration, before func()) (returned func(), cause error) {
	draining := &inv.engine.drain
	if !draining.join(inv) {
		return before, core.ErrDraining
	}
	defer func() {
		draining.leave(inv)
		inv.nap.Again() // the call may wait once more
	}()
	firm, until, slept := inv.now+int64(inv.firm), inv.now+int64(wait), int64(0)
	latest, tooLate := int64(math.MaxInt64), errNoTimeToAnswer
	if left, ok := inv.untilAnswer(); ok {
		latest = inv.now + int64(max(left, wait))
	}
	if inv.shares {
		for _, x := range inv.turns {
			until = max(until, x.until)
		}
		if left, ok := inv.untilDeadline(); ok && inv.now+int64(left) < latest {
			latest, tooLate = inv.now+int64(left), context.DeadlineExceeded
		}
	}
	for {
		if until > latest { // prioritized calls have jumped ahead of this one, or its turn isn't known
			if until = latest; until <= inv.now {
				return before, tooLate
			}
		}
		if len(inv.turns) > 1 || firm > inv.now {
			inv.linger(until)
		}
		before, slept, cause = inv.nap.Sleep(inv.ctx, inv.engine.clock, inv.now, until, before)
		inv.now = max(inv.now, inv.engine.Now())
		if cause != nil {
			return before, cause
		}
		if until, cause = inv.lookForTurns(firm, slept); cause != nil || until <= max(inv.now, slept) {
			return before, cause
		}
		// Later changes end the nap again; earlier ones are found by looking.
		inv.nap.Again()
		if until, cause = inv.lookForTurns(firm, slept); cause != nil || until <= max(inv.now, slept) {
			return before, cause
		}
		if draining.on.Load() {
			return before, core.ErrDraining
		}
	}
}

// errNoTimeToAnswer is the reason if a turn was postponed so far that the server would have no time
// to respond.
var errNoTimeToAnswer = errors.New("its turn was postponed past the deadline for a response")

// errExpired is the reason if a turn in a share would have come too late.
var errExpired = errors.New("its turn would have come too late")

// lostTo returns the rejection of a call that has lost a place in a share, or nil.
func (inv *Invocation) lostTo() *core.BlockError {
	for _, x := range inv.turns {
		if lost, _ := x.Lost(); lost {
			return x.by
		}
	}
	return nil
}

// lookForTurns returns the time of the latest turn that the call awaits, or firm if that is later.
// The call has slept until slept, though the clock may not show it. lookForTurns looks in all
// queues: even if the call awaits nothing, calls behind it may wait to be woken. If the call has lost
// a place in a share, cause is the reason.
func (inv *Invocation) lookForTurns(firm, slept int64) (last int64, cause error) {
	last = firm
	for _, x := range inv.turns {
		at := x.Come(inv.now, slept)
		if x.Awaited {
			last = max(last, at)
		}
		if !inv.shares {
			continue
		}
		if lost, another := x.Lost(); lost && cause == nil {
			if cause = errExpired; another {
				cause = errDisplaced
			}
		}
	}
	return last, cause
}

// linger announces in the queues that the call sleeps until then.
func (inv *Invocation) linger(until int64) {
	for _, x := range inv.turns {
		x.Linger(until)
	}
}

// runTurns takes the turns of a call that runs now, although some may not be due yet.
func (inv *Invocation) runTurns() {
	for _, x := range inv.turns {
		x.Run()
	}
}

// dropTurns clears the turns, so that they keep nothing alive.
func (inv *Invocation) dropTurns() {
	for _, x := range inv.turns {
		x.Drop(inv.now)
		if inv.shares {
			x.until, x.by = 0, nil
		}
	}
	inv.turns = inv.turns[:0]
	inv.nap.Forget()
}
