package sharing

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// This file sends a throttle's commands, applies the replies, and decides for the waiting calls.

// postLocked posts the throttle if there is something to ask for.
func (t *Throttle) postLocked(now int64) bool {
	if t.posted || !t.canPostLocked(now) || !t.asksLocked() {
		return false
	}
	t.posted = t.m.post(t.shard(), t, now, unlessAwaited(t.waiters, now))
	return t.posted
}

func (t *Throttle) asksLocked() bool {
	return t.demand.short > 0 || len(t.waiters) > 0 || t.round.debt > 0
}

func (t *Throttle) command(now int64) store.Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.posted = false
	if t.inFlight || !t.asksLocked() {
		t.demand.short = 0
		return nil
	}
	spacing := t.spacingLocked()
	c := &store.Turn{Outcome: store.Outcome{Key: t.key}, Spacing: time.Duration(spacing)}
	if t.round.debt > 0 { // before the calls that wait: it came before them, or is late
		t.round.charge(c, now)
	} else {
		c.Need, c.Want, c.Within = t.demand.ask(t.waitingLocked(), spacing, now)
		if len(t.waiters) > 0 {
			t.round.asking = t.waiters[0]
		}
	}
	t.inFlight = true
	t.stats.Requests++
	return c
}

func (t *Throttle) answered(command store.Command, sent, received int64, err error) {
	c := command.(*store.Turn)
	if err == nil {
		t.replied(c, sent, received)
	} else if t.failed(received, err) { // no lock is held, see Window.answered
		t.m.logBroken(t.key, err)
	}
}

// failed handles a command that was perhaps not executed. It reports whether the key turned out to
// be unusable.
func (t *Throttle) failed(now int64, err error) (broke bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight, t.round.asking, t.round.charging = false, nil, 0
	broke = t.broken.note(err, now)
	if t.unreachableLocked() {
		t.chargeFallbackLocked(now, t.round.debt)
		t.round.debt = 0
	}
	if t.round.debt > 0 {
		t.postLocked(now) // no call may come that would send it
	}
	t.failAllLocked(now)
	return broke
}

// replied handles a command that was executed.
func (t *Throttle) replied(c *store.Turn, sent, received int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight, t.broken = false, broken{}
	t.round.replied(c, sent)
	switch {
	case t.round.charging > 0:
		t.round.charged(c)
	case c.Reply.Granted > 0: // the rest of the previous lease is lost
		t.turns = newTurns(c, received, t.m.lag)
	}
	t.serveLocked(c, received)
	t.round.asking = nil // it may be the last reference to the call and its other needs
	t.postLocked(received)
}

// serveLocked gives waiting calls their turns, and refuses calls that the store has no turn for in
// time.
func (t *Throttle) serveLocked(c *store.Turn, now int64) {
	if x := t.round.asking; len(t.waiters) > 0 && t.waiters[0] == x {
		t.waiters = slices.Delete(t.waiters, 0, 1)
		if c.Reply.Granted > 0 {
			x.need.Wait = t.turns.takeFirst(now)
			t.demand.wanted.units += c.Need
		}
		x.decideLocked(c.Reply.Granted > 0) // overrides the estimate of refusesLocked
	}
	t.waiters = slices.DeleteFunc(t.waiters, func(x *waiter) bool {
		n, maxWait := x.need.Units, x.need.MaxWait
		if wait, ok := t.turns.take(now, n, maxWait, true); ok {
			x.need.Wait = wait
			t.demand.wanted.units += n
			x.decideLocked(true)
		} else if t.refusesLocked(now, n, maxWait) {
			x.decideLocked(false)
		}
		return x.decided
	})
}

func (t *Throttle) failAllLocked(now int64) {
	for _, x := range t.waiters {
		t.fallBackLocked(x, now)
	}
	t.waiters = nil
}

func (t *Throttle) fallBackLocked(x *waiter, now int64) {
	wait, ok := t.fallbackTurnLocked(now, x.need.Units, x.need.MaxWait, true)
	x.need.Wait = wait
	x.decideLocked(ok)
}

func (t *Throttle) enter(x *waiter, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.need.Units = t.turnsLocked(x.need.Units)
	n, maxWait := x.need.Units, x.need.MaxWait
	wait, ok := t.turns.take(now, n, maxWait, true)
	switch {
	case ok:
		x.need.Wait = wait
		t.demand.wanted.units += n
		x.decideLocked(true)
	case t.refusesLocked(now, n, maxWait):
		t.stats.Refused++
		x.decideLocked(false)
	case t.unreachableLocked():
		t.fallBackLocked(x, now)
		t.demand.short += n
		t.postLocked(now)
	case !t.m.mayWait(x, t.cfg.Value, now):
		t.fallBackLocked(x, now)
	default:
		if !x.late {
			t.stats.Waited++
		}
		if t.cfg.Costs { // it has the rest of the lease, and waits for as many more as it needs
			x.need.Units -= t.turns.drain(now, n-1)
		}
		t.waiters = append(t.waiters, x)
		t.postLocked(now)
	}
}

func (t *Throttle) expire(x *waiter, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.withdrawLocked(x) {
		t.fallBackLocked(x, now)
	}
}

// giveBack does nothing: the turn is lost.
func (t *Throttle) giveBack(*Need) {}

func (t *Throttle) settle(_ *Need, now, over int64) {
	if over > 0 {
		t.Charge(now, over)
	}
}

// drop forgets the lease and the store's latest turn: its clock was set.
func (t *Throttle) drop(int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns.left, t.round.last = 0, longAgo
}

func (t *Throttle) leave(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	t.turns.left = 0
	t.failAllLocked(now)
}
