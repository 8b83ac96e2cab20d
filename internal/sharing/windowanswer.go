package sharing

import (
	"github.com/penstock-go/penstock/cluster/store"
)

// This file applies replies: each part records its share, and then waiting calls are served.

// answered applies the reply to a command, or records that there is none.
func (w *Window) answered(c store.Command, sent, received int64, err error) {
	t := c.(*store.Take)
	if err == nil && w.forgets(t) {
		err = errForgets
	}
	if err == nil {
		w.replied(t, sent, received)
	} else if w.failed(t, received, err) { // no lock is held: the log handler may be subject to this limit
		w.m.logBroken(w.key, err)
	}
}

// forgets is round.forgets, under the mutex.
func (w *Window) forgets(t *store.Take) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.round.forgets(t)
}

// replied handles a command that was executed.
func (w *Window) replied(t *store.Take, sent, received int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	outdated := w.round.outdated
	w.inFlight, w.round.outdated = false, false
	if w.round.forgotten < mostFailures { // otherwise the store may still be losing the key
		w.broken = broken{}
	}
	r := &t.Reply
	if w.round.replied(t) {
		w.renewLocked(r.Epoch, received)
	}
	w.fallback = fallback{} // the store has answered
	w.rollLocked(received)
	w.demand.active = r.Active
	if w.round.advances(r.Current) {
		w.enterLocked(received, newEdge(r, sent, received, w.m.lag))
	}
	if t.Epoch == 0 || t.Epoch == r.Epoch {
		w.applyGrantLocked(t, sent, received)
	}
	if outdated {
		w.closeLeasesLocked(received)
	}
	w.serveLocked(received)
	w.round.asking = nil // it may be the last reference to the call and its other needs
	w.postLocked(received, w.demand.by(w.limit(), received))
	if w.gone {
		w.handBackAllLocked(received)
	}
	w.scheduleLocked(received)
}

// failed handles a command that the store did not answer, or did not execute. It reports whether
// the key turned out to be unusable.
func (w *Window) failed(t *store.Take, now int64, err error) (broke bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight = false
	w.round.failed(t, !is(err, store.ErrNotExecuted), now+w.demand.horizon)
	if is(err, errForgets) { // as if the key had never been there
		w.renewLocked(0, now)
	}
	broke = w.broken.note(err, now)
	w.demand.room.forget()
	w.failAllLocked(now)
	w.scheduleLocked(now)
	return broke
}

// renewLocked begins an epoch: the leases are worthless.
func (w *Window) renewLocked(epoch, now int64) {
	if w.round.epoch != 0 {
		w.closeLeasesLocked(now)
	}
	w.round.renew(epoch, w.bucketAt)
}

// applyGrantLocked makes a lease of the granted units, and records the missing ones.
func (w *Window) applyGrantLocked(t *store.Take, sent, received int64) {
	r := &t.Reply
	w.demand.noteRoom(t)
	if t.Need|t.Want == 0 {
		return
	}
	l := newLot(r, w.round.ring.Shape.Width(), sent, received, w.m.lag)
	large := t.Need > mostUnits
	l.owned = large || r.Bucket > r.Current && t.Ahead == 0
	l.granted = r.Granted
	if r.Granted == 0 && w.standAsideLocked(t, received) {
		return // the call asks once more, with the units handed back
	}
	w.demand.learn(t, w.limit(), w.round.edge, received, w.m.chance)
	if r.Granted == 0 {
		if t.Borrow > 0 {
			w.rejectAskingLocked()
		}
		return
	}
	if r.Granted < t.Want && !l.owned {
		w.round.shortfall = r.Current
	}
	if received >= l.ends { // it arrived too late
		w.settleLocked(leftover{&l, r.Granted}, received)
		return
	}
	if !large {
		w.demand.lastGrant = r.Granted
	}
	in, over := w.leases.grant(l, received)
	w.settleLocked(over, received)
	if l.owned {
		w.giveOwnedLocked(in, r.Granted, received)
	}
}

// standAsideLocked hands back the leases if a waiting call was refused only for want of the units in
// them, which are too few for the call. It does so once per call.
func (w *Window) standAsideLocked(t *store.Take, now int64) bool {
	x := w.round.asking
	if len(w.waiters) == 0 || w.waiters[0] != x || x.retried || t.Need != x.need.Units {
		return false
	}
	missing, lease, nextLeft := t.Need-t.Reply.Room, w.leases.lease.units(), w.leases.nextLeft
	switch {
	case missing <= lease:
	case missing <= lease+nextLeft && t.Need > nextLeft:
		w.settleLocked(w.leases.closeNext(), now)
	default:
		return false
	}
	w.settleLocked(w.leases.closeCurrent(now), now)
	w.demand.room.forget()
	x.retried = true
	return true
}
