package sharing

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// This file is a throttle's round: when a command is sent, what it asks for, what becomes of the reply, and of the
// calls that wait for it. All but command, answered, failed, replied and the methods of Limit and handled need mu.

// want posts the throttle if there is something to ask for.
func (t *Throttle) want(now int64) bool {
	if t.posted || !t.canPost(now) || t.short == 0 && len(t.waiters) == 0 {
		return false
	}
	t.posted = t.m.post(t.shard(), t, now, unlessAwaited(t.waiters, now))
	return t.posted
}

func (t *Throttle) command(now int64) store.Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.posted = false
	short := t.short
	t.short = 0
	if t.inFlight || short == 0 && len(t.waiters) == 0 {
		return nil
	}
	t.wanted.look(now, turnsAhead)
	spacing := t.spaced()
	c := &store.Turn{Outcome: store.Outcome{Key: t.key}, Spacing: time.Duration(spacing), Need: 1, Within: time.Duration(turnsAhead)}
	if len(t.waiters) > 0 {
		t.asking = t.waiters[0]
		c.Need, c.Within = min(t.asking.need.Units, mostTurns/spacing), t.asking.need.MaxWait
		short = 0
		for _, x := range t.waiters {
			short += x.need.Units
		}
	}
	c.Want = max(c.Need, min(max(short, t.wanted.over(turnsAhead)), turnsAhead/spacing))
	t.inFlight = true
	t.figures.Requests++
	return c
}

func (t *Throttle) answered(command store.Command, sent, received int64, err error) {
	c := command.(*store.Turn)
	if err == nil {
		t.replied(c, sent, received)
	} else if t.failed(received, err) { // no lock is held, see Window.answered
		t.m.tellBroken(t.key, err)
	}
}

// failed is answered for a command that was perhaps not executed. It reports whether the key has turned
// out to be no throttle's.
func (t *Throttle) failed(now int64, err error) (broke bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight, t.asking = false, nil
	broke = t.broken.hear(err, now)
	t.failAll(now)
	return broke
}

// replied is answered for a command that was executed.
func (t *Throttle) replied(c *store.Turn, sent, received int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight, t.broken = false, broken{}
	r := &c.Reply
	spacing := int64(c.Spacing)
	first := received + longer(r.Wait) + t.m.lag
	if r.Granted == 0 {
		t.last = max(t.last, sent+shorter(r.Wait)-times(c.Need, spacing))
	} else {
		t.last = sent + shorter(r.Wait) + times(r.Granted-c.Need, spacing)
		// What was left of the last lease is lost. The first turn counts as one, however many units
		// it is for.
		t.next, t.turns, t.spacing = first, r.Granted-c.Need+1, spacing
	}
	t.serve(c, received)
	t.asking = nil // it may be the last thing that refers to the call, and to what else that lacked
	t.want(received)
}

// serve gives calls that wait their turns, and refuses those that the store has no turn for in
// time.
func (t *Throttle) serve(c *store.Turn, now int64) {
	if x := t.asking; len(t.waiters) > 0 && t.waiters[0] == x {
		t.waiters = slices.Delete(t.waiters, 0, 1)
		if c.Reply.Granted > 0 {
			x.need.Wait = until(t.next, now)
			t.turns--
			t.next += t.spacing
			t.wanted.units += c.Need
		}
		x.decideLocked(c.Reply.Granted > 0) // the store's answer overrides refuses, which only estimates
	}
	t.waiters = slices.DeleteFunc(t.waiters, func(x *waiter) bool {
		n, maxWait := x.need.Units, x.need.MaxWait
		if wait, ok := t.turn(now, n, maxWait, true); ok {
			x.need.Wait = wait
			t.wanted.units += n
			x.decideLocked(true)
		} else if t.refuses(now, n, maxWait) {
			x.decideLocked(false)
		}
		return x.decided
	})
}

func (t *Throttle) failAll(now int64) {
	for _, x := range t.waiters {
		t.decideAway(x, now)
	}
	t.waiters = nil
}

func (t *Throttle) decideAway(x *waiter, now int64) {
	wait, ok := t.turnAway(now, x.need.Units, x.need.MaxWait, true)
	x.need.Wait = wait
	x.decideLocked(ok)
}

func (t *Throttle) enter(x *waiter, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, maxWait := x.need.Units, x.need.MaxWait
	wait, ok := t.turn(now, n, maxWait, true)
	switch {
	case ok:
		x.need.Wait = wait
		t.wanted.units += n
		x.decideLocked(true)
	case t.refuses(now, n, maxWait):
		t.figures.Refused++
		x.decideLocked(false)
	case t.away():
		t.decideAway(x, now)
		t.short += n
		t.want(now)
	case !t.m.mayWait(x, t.cfg.Value, now):
		t.decideAway(x, now)
	default:
		if !x.late {
			t.figures.Waited++
		}
		t.waiters = append(t.waiters, x)
		t.want(now)
	}
}

func (t *Throttle) expire(x *waiter, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.withdraw(x) {
		t.decideAway(x, now)
	}
}

// giveBack does nothing: the turn is lost.
func (t *Throttle) giveBack(*Need) {}

// drop forgets the lease, and what is known of the store's turns: its clock was set.
func (t *Throttle) drop(int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns, t.last = 0, longAgo
}

func (t *Throttle) leave(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	t.turns = 0
	t.failAll(now)
}
