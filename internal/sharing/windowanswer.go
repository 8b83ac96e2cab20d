package sharing

import (
	"github.com/penstock-go/penstock/cluster/store"
)

// This file applies replies: each part takes what concerns it, and then calls that wait are served.

// answered applies the reply to a command, or notes that there is none.
func (w *Window) answered(c store.Command, sent, received int64, err error) {
	t := c.(*store.Take)
	if err == nil && w.forgets(t) {
		err = errForgets
	}
	if err == nil {
		w.replied(t, sent, received)
	} else if w.failed(t, received, err) { // no lock is held: the log's handler may be under this limit
		w.m.logBroken(w.key, err)
	}
}

// forgets is that of the round.
func (w *Window) forgets(t *store.Take) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.round.forgets(t)
}

// replied is answered for a command that was executed.
func (w *Window) replied(t *store.Take, sent, received int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	outdated := w.round.outdated
	w.inFlight, w.round.outdated = false, false
	if w.round.forgotten < mostFailures { // else it has yet to find the key that it left
		w.broken = broken{}
	}
	r := &t.Reply
	if w.round.replied(t) {
		w.renewLocked(r.Epoch, received)
	}
	w.fallback = fallback{} // the store has answered
	w.rollLocked(received)
	w.demand.active = r.Active
	if w.round.isCurrent(r.Current) {
		w.enterLocked(received, newEdge(r, sent, received, w.m.lag))
	}
	if t.Epoch == 0 || t.Epoch == r.Epoch {
		w.applyGrantLocked(t, sent, received)
	}
	if outdated {
		w.closeLeasesLocked(received)
	}
	w.serveLocked(received)
	w.round.asking = nil // it may be the last thing that refers to the call, and to what else that lacked
	w.postLocked(received, w.demand.by(w.limit(), received))
	if w.gone {
		w.handBackAllLocked(received)
	}
	w.scheduleLocked(received)
}

// failed is answered for a command that the store did not answer, or did not execute. It reports whether the
// key has turned out to be no window's.
func (w *Window) failed(t *store.Take, now int64, err error) (broke bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight = false
	w.round.failed(t, !is(err, store.ErrNotExecuted), now+w.demand.horizon)
	if is(err, errForgets) { // as if it had never been there
		w.renewLocked(0, now)
	}
	broke = w.broken.note(err, now)
	w.demand.room.forget()
	w.failAllLocked(now)
	w.scheduleLocked(now)
	return broke
}

// renewLocked begins with an epoch: what is leased is worth nothing.
func (w *Window) renewLocked(epoch, now int64) {
	if w.round.epoch != 0 {
		w.closeLeasesLocked(now)
	}
	w.round.renew(epoch, w.bucketAt)
}

// applyGrantLocked makes a lease of what the store has granted, and takes note of what it hasn't.
func (w *Window) applyGrantLocked(t *store.Take, sent, received int64) {
	r := &t.Reply
	w.demand.look(t)
	if t.Need|t.Want == 0 {
		return
	}
	l := newLot(r, w.round.ring.Shape.Width(), sent, received, w.m.lag)
	l.borrowed = r.Bucket > r.Current && t.Ahead == 0
	if at := w.leases.lots.like(l, received); at != nil { // a store that works grants no more than the limit
		r.Granted = min(r.Granted, mostUnits-at.granted)
	}
	l.granted = r.Granted
	if r.Granted == 0 && w.standAsideLocked(t, received) {
		return // the call asks once more, with what is handed back
	}
	w.demand.learn(t, w.limit(), w.round.edge, received, w.m.chance)
	if r.Granted == 0 {
		if t.Borrow > 0 {
			w.rejectAskingLocked()
		}
		return
	}
	if r.Granted < t.Want && !l.borrowed {
		w.round.lacked = r.Current
	}
	if received >= l.ends { // it took too long
		w.settleLocked(leftover{&l, r.Granted}, received)
		return
	}
	w.demand.lastGrant = r.Granted
	in, over := w.leases.grant(l, received)
	w.settleLocked(over, received)
	if l.borrowed {
		w.giveBorrowedLocked(in, r.Granted, received)
	}
}

// standAsideLocked hands back what the member has leased, if a call that waits was refused only since it
// needs that, and can't have it: it is less than the call needs. It does so once for a call.
func (w *Window) standAsideLocked(t *store.Take, now int64) bool {
	x := w.round.asking
	if len(w.waiters) == 0 || w.waiters[0] != x || x.retried || t.Need != x.need.Units {
		return false
	}
	lacks, lease, nextLeft := t.Need-t.Reply.Room, w.leases.lease.units(), w.leases.nextLeft
	switch {
	case lacks <= lease:
	case lacks <= lease+nextLeft && t.Need > nextLeft:
		w.settleLocked(w.leases.closeNext(), now)
	default:
		return false
	}
	w.settleLocked(w.leases.closeCurrent(now), now)
	w.demand.room.forget()
	x.retried = true
	return true
}
