package sharing

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
)

// This file sends a bucket's commands, applies the replies, and decides without the store.

// bucketRound knows the store's bucket.
//
// Invariant: the store gives out no turn earlier than full. Units that calls owe are in debt until
// the store has turns for them, or the fallback.
//
// The bucket's mutex guards it.
type bucketRound struct {
	full     int64         // when the bucket will be full, by the latest reply
	hold     time.Duration // the time that a reply gets; about two round trips
	asking   *waiter       // the call whose need the command in flight carries
	debt     int64         // in turns
	charging int64         // the turns that the command in flight takes, if it asks for nothing else
	owed     int64         // those of charging that the fallback gave out
	within   time.Duration // the debt was refused because its turns come so late
}

// replied records when the bucket will be full, and how long the reply took.
func (r *bucketRound) replied(c *store.Tokens, sent int64) {
	if c.Reply.Granted == 0 {
		r.full = max(r.full, sent+atLeast(c.Reply.Wait))
	} else {
		r.full = sent + atLeast(max(c.Reply.Wait, c.Hold)) + times(c.Reply.Granted, int64(c.Spacing))
	}
}

// took records the time that a reply took.
func (r *bucketRound) took(trip, most time.Duration) {
	r.hold = min(max(2*trip, r.hold-r.hold/8), most)
}

// charge makes the command that takes the turns of units already used, however late they come.
func (r *bucketRound) charge(c *store.Tokens, debt, now int64) {
	c.Need = min(debt, mostTurns/int64(c.Spacing))
	last := until(r.full+times(c.Need, int64(c.Spacing)), now)
	c.Want, c.Within = c.Need, min(max(last, r.within)+time.Minute, time.Duration(mostTurns))
	r.charging = c.Need
}

// charged records the reply to the command that charge made.
func (r *bucketRound) charged(c *store.Tokens) {
	if r.within = 0; c.Reply.Granted > 0 {
		r.debt -= min(r.debt, r.charging-r.owed)
	} else if r.within = c.Reply.Wait + time.Duration(times(c.Need, int64(c.Spacing))); int64(r.within) >= mostTurns {
		r.debt, r.within = 0, 0 // turns can't come later
	}
}

// postLocked posts the bucket if there is something to ask for.
func (t *Bucket) postLocked(now int64) bool {
	if t.posted || !t.canPostLocked(now) || !t.asksLocked() {
		return false
	}
	t.posted = t.m.post(t.shard(), t, now, unlessAwaited(t.waiters, now))
	return t.posted
}

func (t *Bucket) asksLocked() bool {
	return t.demand.short > 0 || len(t.waiters) > 0 || t.round.debt > 0
}

func (t *Bucket) command(now int64) store.Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.posted = false
	if t.inFlight || !t.asksLocked() {
		t.demand.short = 0
		return nil
	}
	t.reshapeLocked()
	c := &store.Tokens{Outcome: store.Outcome{Key: t.key}, Unit: t.unit, Spacing: time.Duration(t.tokens.spacing)}
	t.round.owed = t.fallback.owes(now, t.gapLocked())
	if debt := t.round.debt + t.round.owed; debt > 0 { // before the calls that wait: it came before them, or is late
		t.round.charge(c, debt, now)
	} else {
		t.askLocked(c, now)
	}
	t.inFlight = true
	t.stats.Requests++
	return c
}

// askLocked makes the command for the calls that wait, and for those to come.
func (t *Bucket) askLocked(c *store.Tokens, now int64) {
	d := &t.demand
	d.wanted.look(now, turnsAhead)
	short := d.short
	d.short = 0
	t.round.took(t.m.trip(t.shard()), t.mostHoldLocked())
	c.Need, c.Hold, c.Within = 1, t.round.hold, time.Duration(t.tokens.slack)
	ahead := t.aheadLocked()
	if ahead > 0 { // so that members needn't ask for each unit that it gains
		c.Within += time.Duration(turnsAhead)
	}
	if len(t.waiters) > 0 {
		t.round.asking = t.waiters[0]
		left := t.tokens.left(now)
		c.Need = max(1, t.waiters[0].need.Units-left)
		short = t.waitingLocked().units - left
	}
	c.Want = min(max(c.Need, short, ahead), mostTurns/int64(c.Spacing))
}

// aheadLocked returns the turns to lease for calls to come: as many as they are expected to want, at
// most what the bucket gains in that time or, for a burst, a part of its size; none if that is hardly
// a unit, as one that nobody uses is lost.
func (t *Bucket) aheadLocked() int64 {
	n := min(t.demand.wanted.over(turnsAhead), max(turnsAhead, t.tokens.slack/leasedPart)/t.tokens.spacing)
	if n < 2*t.turnsLocked(1) {
		return 0
	}
	return n
}

const leasedPart = 32

// mostHoldLocked bounds the hold: a later reply counts as none.
func (t *Bucket) mostHoldLocked() time.Duration {
	return min(t.cfg.Timeout, time.Duration(t.tokens.slack))
}

func (t *Bucket) answered(command store.Command, sent, received int64, err error) {
	c := command.(*store.Tokens)
	if err == nil {
		t.replied(c, sent, received)
	} else if t.failed(received, err) { // no lock is held, see Window.answered
		t.m.logBroken(t.key, err)
	}
}

// failed handles a command that was perhaps not executed. It reports whether the key turned out to
// be unusable.
func (t *Bucket) failed(now int64, err error) (broke bool) {
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
func (t *Bucket) replied(c *store.Tokens, sent, received int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight, t.broken = false, broken{}
	current := int64(c.Spacing) == t.tokens.spacing && c.Unit == t.unit // else the rate has changed meanwhile
	if current {
		t.round.replied(c, sent)
	}
	switch {
	case t.round.charging > 0:
		t.round.charged(c)
		if c.Reply.Granted > 0 {
			t.fallback.paid(t.round.owed)
		}
		t.round.charging = 0
	case c.Reply.Granted > 0 && current && !t.gone:
		t.tokens.add(c, sent, received)
	}
	t.round.took(time.Duration(received-sent+2*t.m.lag), t.mostHoldLocked())
	t.serveLocked(c, received)
	t.round.asking = nil // it may be the last reference to the call and its other needs
	t.postLocked(received)
}

// serveLocked gives waiting calls their units, and refuses calls that the store has too few for. A
// call whose turns have passed on the way asks again.
func (t *Bucket) serveLocked(c *store.Tokens, now int64) {
	t.waiters = slices.DeleteFunc(t.waiters, func(x *waiter) bool {
		token, ok := t.takeLocked(now, x.need.Units)
		switch {
		case ok:
			x.need.Token = token
			x.decideLocked(true)
		case t.refusesLocked(now, x.need.Units) || x == t.round.asking && c.Reply.Granted == 0:
			x.decideLocked(false)
		}
		return x.decided
	})
}

func (t *Bucket) failAllLocked(now int64) {
	for _, x := range t.waiters {
		x.decideLocked(t.fallbackLocked(now, x.need.Units, true))
	}
	t.waiters = nil
}

func (t *Bucket) enter(x *waiter, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.need.Units = t.turnsLocked(x.need.Units)
	n := x.need.Units
	token, ok := t.takeLocked(now, n)
	switch {
	case ok:
		x.need.Token = token
		x.decideLocked(true)
	case t.refusesLocked(now, n):
		t.stats.Refused++
		x.decideLocked(false)
	case t.unreachableLocked():
		x.decideLocked(t.fallbackLocked(now, n, true))
		t.demand.short = n
		t.postLocked(now)
	case !t.m.mayWait(x, t.cfg.Value, now):
		x.decideLocked(t.fallbackLocked(now, n, true))
	default:
		if !x.late {
			t.stats.Waited++
		}
		t.waiters = append(t.waiters, x)
		t.postLocked(now)
	}
}

func (t *Bucket) expire(x *waiter, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.withdrawLocked(x) {
		x.decideLocked(t.fallbackLocked(now, x.need.Units, true))
	}
}

func (t *Bucket) giveBack(n *Need) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.Token != 0 {
		t.tokens.giveBack(t.m.clock.Now(), n.Token, n.Units) // in turns, see enter
	}
}

func (t *Bucket) settle(n *Need, now, over int64) {
	if over > 0 {
		t.Charge(now, over)
	} else {
		t.Cancel(n.Token, -over)
	}
}

// drop forgets the lease and the store's bucket: its clock was set.
func (t *Bucket) drop(int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens.drop()
	t.round.full = longAgo
}

func (t *Bucket) leave(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	t.tokens.drop()
	t.failAllLocked(now)
}

// bucketFallback decides while the store is unreachable. With [cluster.Local] it is a bucket of the
// member's own, with its share of the rate and of the size, at least one unit.
//
// Invariant: it is full no earlier than the store's would be, by the latest reply. units is the
// number of turns that it gave out, and that the store takes once it is back, unless the bucket has
// gained them meanwhile.
//
// The bucket's mutex guards it.
type bucketFallback struct{ full, units int64 }

// owes returns the turns that the store has to take for the fallback, whose turns are gap apart. It
// forgets units that have been gained.
func (f *bucketFallback) owes(now, gap int64) int64 {
	f.units = min(f.units, (max(0, f.full-now)+gap-1)/gap)
	return f.units
}

// paid records that the store has taken turns.
func (f *bucketFallback) paid(turns int64) {
	if f.units -= min(turns, f.units); turns > 0 && f.units == 0 {
		f.full = longAgo
	}
}

// gapLocked returns the time between two turns of the fallback: each member has its share of them.
func (t *Bucket) gapLocked() int64 { return times(t.m.Members(), t.tokens.spacing) }

// shareLocked returns the size of the fallback, in the time that it takes to fill.
func (t *Bucket) shareLocked() int64 {
	return max(t.tokens.slack+t.tokens.spacing, times(t.turnsLocked(1), t.gapLocked()))
}

// fallbackFullLocked returns the time at which the fallback will be full.
func (t *Bucket) fallbackFullLocked(now int64) int64 {
	return max(now, t.fallback.full, t.round.full)
}

// fallbackNextLocked returns the time at which n units fit the fallback.
func (t *Bucket) fallbackNextLocked(now, n int64) int64 {
	return t.fallbackFullLocked(now) + times(n, t.gapLocked()) - t.shareLocked()
}

// fallbackLocked decides for a call without the store. If takes is false, it only looks.
func (t *Bucket) fallbackLocked(now, n int64, takes bool) bool {
	switch {
	case t.cfg.OnFailure == cluster.Open:
		return true
	case t.cfg.OnFailure == cluster.Closed || t.fallbackNextLocked(now, n) > now:
		return false
	}
	if takes {
		t.chargeFallbackLocked(now, n)
	}
	return true
}

// chargeFallbackLocked counts turns in the fallback.
func (t *Bucket) chargeFallbackLocked(now, n int64) {
	if n > 0 && t.cfg.OnFailure == cluster.Local {
		t.fallback.full = min(t.fallbackFullLocked(now)+times(n, t.gapLocked()), mostSpaced)
		t.fallback.units = min(t.fallback.units+n, mostTurns)
	}
}
