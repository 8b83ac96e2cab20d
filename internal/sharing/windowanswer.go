package sharing

import (
	"github.com/penstock-go/penstock/cluster/store"
)

// This file is what a window makes of a reply. All but answered, forgets, replied and failed needs mu.

// answered takes what the store says.
func (w *Window) answered(c store.Command, sent, received int64, err error) {
	t := c.(*store.Take)
	if err == nil && w.forgets(t) {
		err = errForgets
	}
	if err == nil {
		w.replied(t, sent, received)
	} else if w.failed(t, received, err) { // no lock is held: the log's handler may be under this limit
		w.m.tellBroken(w.key, err)
	}
}

// forgets notes whether the store knew the key, and reports whether it hasn't for so many commands in a row that it is to be
// done without: it would be told with each of them what was admitted.
func (w *Window) forgets(t *store.Take) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch t.Epoch {
	case 0, unknownEpoch: // the window knew of no key
		return false
	case t.Reply.Epoch:
		w.forgotten = 0
		return false
	}
	w.forgotten++
	return w.forgotten >= mostFailures
}

// replied is answered for a command that was executed.
func (w *Window) replied(t *store.Take, sent, received int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	outdated := t == w.outdated
	w.inFlight, w.outdated = nil, nil
	if w.forgotten < mostFailures { // else it has yet to find the key that it left
		w.broken = broken{}
	}
	r := &t.Reply
	w.account.heard(t.Epoch == r.Epoch)
	if r.Epoch != w.epoch {
		w.renew(r.Epoch, received)
	}
	w.fallback = fallback{} // the store has answered
	w.roll(received)
	w.demand.active = r.Active
	if t.Need|t.Want != 0 {
		w.seen = r.Current
	}
	if r.Current >= w.edge.bucket || r.Current+w.ring.Span() <= w.edge.bucket { // or the clock was set back
		w.enterBucket(received, newEdge(r, sent, received, w.m.lag))
	}
	if t.Epoch == 0 || t.Epoch == r.Epoch {
		w.granted(t, sent, received)
	}
	if outdated {
		w.closeLeases(received)
	}
	w.serve(received)
	w.asking = nil // it may be the last thing that refers to the call, and to what else that lacked
	w.want(received, w.demand.by(w.limit(), received))
	if w.gone {
		w.handBackAll(received)
	}
	w.schedule(received)
}

// failed is answered for a command that the store did not answer, or did not execute. It reports whether the key
// has turned out to be no window's.
func (w *Window) failed(t *store.Take, now int64, err error) (broke bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight, w.outdated = nil, nil
	w.account.heard(false)
	w.asking = nil
	if is(err, store.ErrNotExecuted) {
		w.backs = append(w.backs, t.Backs...)
		w.backAt = now + w.demand.horizon
	}
	if is(err, errForgets) { // as if it had never been there
		w.renew(0, now)
	}
	broke = w.broken.hear(err, now)
	w.demand.room.forget()
	w.failAll(now)
	w.schedule(now)
	return broke
}

// renew begins with an epoch: the key was made anew, so what is leased is worth nothing, and the
// store has to be told what was admitted.
func (w *Window) renew(epoch, now int64) {
	if w.epoch != 0 {
		w.closeLeases(now)
		w.backs = nil
		w.account.anew()
	} else { // what was admitted before is in buckets of a time that was perhaps not the store's
		before := w.account
		w.account = nil
		for _, e := range before {
			w.account.of(w.ring.Bucket(w.m.storeTime(w.shard(), e.at))).join(e)
		}
	}
	w.epoch = epoch
}

// granted makes a lease of what the store has granted, and takes note of what it hasn't.
func (w *Window) granted(t *store.Take, sent, received int64) {
	r := &t.Reply
	w.demand.look(t)
	if t.Need|t.Want == 0 {
		return
	}
	borrowed := r.Bucket > r.Current && t.Ahead == 0
	if at := w.leases.lots.of(r.Bucket, r.Epoch, received, borrowed); at != nil { // a store that is one grants no more than the limit
		r.Granted = min(r.Granted, mostUnits-at.granted)
	}
	if r.Granted == 0 && w.standsAside(t, received) {
		return // the call asks once more, with what is handed back
	}
	w.demand.learn(t, w.limit(), w.edge, received, w.m.chance)
	if r.Granted == 0 {
		if t.Borrow > 0 {
			w.turnDown()
		}
		return
	}
	if r.Granted < t.Want && !borrowed {
		w.lacked = r.Current
	}
	l := newLot(r, w.ring.Shape.Width(), sent, received, w.m.lag)
	l.borrowed = borrowed
	if received >= l.ends { // it took too long
		w.settle(leftover{&l, r.Granted}, received)
		return
	}
	w.demand.grown = r.Granted
	in, over := w.leases.grant(l, received)
	w.settle(over, received)
	if borrowed {
		w.lend(in, r.Granted, received)
	}
}

// standsAside hands back what the member has leased, if a call that waits was refused only since it
// needs that, and can't have it: it is less than the call needs. It does so once for a call.
func (w *Window) standsAside(t *store.Take, now int64) bool {
	if len(w.waiters) == 0 || w.waiters[0] != w.asking || w.asking.again || t.Need != w.asking.need.Units {
		return false
	}
	lacks, lease, nextLeft := t.Need-t.Reply.Room, w.leases.lease.units(), w.leases.nextLeft
	switch {
	case lacks <= lease:
	case lacks <= lease+nextLeft && t.Need > nextLeft:
		w.settle(w.leases.closeNext(), now)
	default:
		return false
	}
	w.settle(w.leases.closeCurrent(now), now)
	w.demand.room.forget()
	w.asking.again = true
	return true
}
