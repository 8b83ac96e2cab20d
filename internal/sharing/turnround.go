package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// turnDemand decides how many turns to ask for.
//
// Invariant: wanted counts the units of calls that got turns, short those of calls that didn't,
// since the last command.
//
// The throttle's mutex guards it.
type turnDemand struct {
	wanted average
	short  int64
}

// turnsAhead is the longest time that a lease of turns covers.
const turnsAhead = int64(20 * time.Millisecond)

// ask returns the units before the first turn, the total wanted, and the time within which the
// first turn must be. The first turn is for the call that has waited longest, if any.
func (d *turnDemand) ask(calls waiting, spacing, now int64) (need, want int64, within time.Duration) {
	d.wanted.look(now, turnsAhead)
	short := d.short
	d.short = 0
	need, within = 1, time.Duration(turnsAhead)
	if calls.first != nil {
		need, within = min(calls.first.Units, mostTurns/spacing), calls.first.MaxWait
		short = calls.units
	}
	return need, max(need, min(max(short, d.wanted.over(turnsAhead)), turnsAhead/spacing)), within
}

// turnRound holds the time of the store's latest turn.
//
// Invariant: the store gives out no turn earlier than a spacing after last. A turn that a call owes is
// in debt until the store has given it out, or the fallback; if a reply is lost, it may be given out
// twice.
//
// The throttle's mutex guards it.
type turnRound struct {
	last     int64
	asking   *waiter // the call whose need the command in flight carries
	debt     int64   // turns that calls owe: they used more than they waited for
	charging int64   // the debt in the command in flight, if it asks for nothing else
	within   int64   // the debt's turn was refused because it comes so late
}

// charge makes the command that takes the turns of the debt, however late they come.
func (r *turnRound) charge(c *store.Turn, now int64) {
	spacing := int64(c.Spacing)
	c.Need = min(r.debt, mostTurns/spacing)
	late := max(until(r.next(c.Need, spacing), now), time.Duration(r.within))
	c.Want, c.Within = c.Need, min(late+time.Minute, time.Duration(mostTurns))
	r.charging = c.Need
}

// charged records the reply to the command that charge made.
func (r *turnRound) charged(c *store.Turn) {
	if r.within = 0; c.Reply.Granted > 0 {
		r.debt -= min(r.debt, r.charging)
	} else if r.within = int64(c.Reply.Wait); r.within >= mostTurns {
		r.debt, r.within = 0, 0 // turns can't come later
	}
	r.charging = 0
}

// replied records the granted turns, or the time until the next one.
func (r *turnRound) replied(c *store.Turn, sent int64) {
	first := sent + atLeast(c.Reply.Wait)
	if spacing := int64(c.Spacing); c.Reply.Granted == 0 {
		r.last = max(r.last, first-times(c.Need, spacing))
	} else {
		r.last = first + times(c.Reply.Granted-c.Need, spacing)
	}
}

// next returns the earliest time at which a call of n units may run.
func (r *turnRound) next(n, spacing int64) int64 { return r.last + times(n, spacing) }
