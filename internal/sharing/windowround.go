package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// This file begins and ends leases, and sends commands when there is a reason to. The amount to ask
// for is decided in wants.go; replies are applied in windowanswer.go.

// rollLocked begins and ends leases.
func (w *Window) rollLocked(now int64) {
	over, begun := w.leases.roll(now)
	if over[0].unspent > 0 {
		w.demand.lasted()
	}
	w.settleLocked(over[0], now)
	w.settleLocked(over[1], now)
	if begun == nil {
		return
	}
	w.enterLocked(now, w.round.edge.at(begun.bucket, w.round.ring.Shape.Width()))
	w.demand.begin(begun.granted)
	w.serveLocked(now)
}

// closeLeasesLocked ends the leases and hands back their unspent units.
func (w *Window) closeLeasesLocked(now int64) {
	w.settleLocked(w.leases.closeCurrent(now), now)
	w.settleLocked(w.leases.closeNext(), now)
}

// settleLocked accounts for an ended lot, if there is one.
func (w *Window) settleLocked(over leftover, now int64) {
	l := over.lot
	if l == nil || l.epoch != w.round.epoch {
		return
	}
	spent := over.spent()
	if spent > 0 {
		w.round.spend(store.Units{Bucket: l.bucket, Units: spent}, now)
	}
	w.demand.spent(spent - l.measured)
	w.fallback.ended(l, over.unspent)
	w.handBackLocked(store.Units{Bucket: l.bucket, Units: over.unspent})
}

// countSpentLocked reports the newly spent units of the lease to the demand.
func (w *Window) countSpentLocked(now int64) {
	w.demand.count(now, w.leases.newlySpent())
}

// handBackLocked sends units back with the next command, or by themselves if none comes soon.
func (w *Window) handBackLocked(u store.Units) {
	if u.Units > 0 {
		w.round.handBack(u, w.m.clock.Now()+w.demand.keeps(w.limit())+w.m.chance(w.demand.horizon/8))
	}
}

// returnLocked accepts units that a call gives back to a lot in no lease.
func (w *Window) returnLocked(u store.Units) {
	w.round.unspend(u)
	w.handBackLocked(u)
}

// enterLocked records the current bucket and its end.
func (w *Window) enterLocked(now int64, e edge) {
	if w.round.enter(e) {
		w.leases.lots.forget(e.bucket-w.round.ring.Span(), w.round.epoch)
		w.demand.enter(now, e, w.m.chance)
	}
}

// bucketAt returns the store's bucket at a time of the member, by an estimate of the store's clock.
func (w *Window) bucketAt(at int64) int64 { return w.round.ring.Bucket(w.m.storeTime(w.shard(), at)) }

// postLocked posts a command for by if there is something to send, and reports whether a flush may
// send it.
func (w *Window) postLocked(now, by int64) bool {
	if w.round.owes(now) {
		by = now // until the store has the charges, it grants their room to others
	}
	by = unlessAwaited(w.waiters, by)
	switch {
	case !w.canPostLocked(now):
		return false
	case w.posted:
		return w.m.hasten(w.shard(), now, by)
	case !w.hasCommandLocked(now) || !w.m.post(w.shard(), w, now, by):
		w.scheduleLocked(now)
		return false
	}
	w.posted = true
	return true
}

func (w *Window) hasCommandLocked(now int64) bool {
	p := w.positionLocked()
	switch {
	case len(w.waiters) > 0 && !p.covers(now, w.waitingLocked().units):
		return true
	case w.round.due(now), w.fallback.used:
		return true // the store is back, or may be, or knows too little
	case w.demand.worthAsking(w.demand.short, p, now):
		return true
	case !w.demand.leasable(p.limit):
		return false
	}
	w.countSpentLocked(now)
	return w.demand.wantsNext(p, now) || w.demand.wantsMore(p, now)
}

// askLocked decides the units that a command asks for.
func (w *Window) askLocked(now int64) ask {
	w.countSpentLocked(now)
	p := w.positionLocked()
	if calls := w.waitingLocked(); calls.first != nil && !p.covers(now, calls.units) {
		w.round.asking = w.waiters[0]
		return w.demand.askFor(calls, p, now)
	}
	return w.demand.askAhead(p, w.Timeout(), now)
}

// turn runs at a planned time.
func (w *Window) turn(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rollLocked(now)
	w.serveLocked(now)
	if !w.postLocked(now, w.demand.by(w.limit(), now)) {
		w.scheduleLocked(now)
	}
}

// scheduleLocked plans the next turn.
func (w *Window) scheduleLocked(now int64) {
	at := w.leases.changesAt()
	if !w.inFlight && !w.posted && !w.gone {
		if len(w.round.backs) > 0 {
			at = min(at, max(w.round.backAt, now+1))
		}
		at = min(at, w.demand.wakesAt(now))
		if w.round.owes(now) { // no call may come that would send it
			at = min(at, max(now+w.demand.horizon, w.shard().probeAt.Load()))
		}
	}
	if at == never {
		w.m.unplan(&w.task)
		return
	}
	if w.unreachableLocked() {
		at = max(at, now+w.demand.horizon)
	}
	w.m.plan(&w.task, max(at, now))
}

// command returns the Take to send now.
func (w *Window) command(now int64) store.Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posted = false
	if w.inFlight {
		return nil
	}
	w.rollLocked(now)
	var a ask
	if !w.gone {
		a = w.askLocked(now)
	}
	t := w.round.command(a, w.leases.cur|w.leases.next != 0, w.fallback.used)
	if t == nil {
		w.scheduleLocked(now)
		return nil
	}
	t.Key, t.Limit = w.key, w.limit()
	t.NewEpoch = unknownEpoch + 1 + w.m.chance(store.MaxEpoch-unknownEpoch)
	t.Caller = w.m.caller()
	w.inFlight = true
	w.scheduleLocked(now)
	return t
}

// giveUpLocked hands back the leases, and marks the grant in flight to go back when it arrives.
func (w *Window) giveUpLocked(now int64) {
	w.closeLeasesLocked(now)
	w.round.outdated = w.inFlight
}

// drop gives up the leases, and ends what was granted to calls that still wait.
func (w *Window) drop(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeLeasesLocked(now)
	w.leases.lots.end(now)
	w.scheduleLocked(now)
}

// leave hands everything back.
func (w *Window) leave(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
	w.failAllLocked(now)
	w.handBackAllLocked(now)
}

// handBackAllLocked hands back the leases, by a command of its own unless one is in flight: then
// its reply does so.
func (w *Window) handBackAllLocked(now int64) {
	w.closeLeasesLocked(now)
	if !w.posted && !w.inFlight && (len(w.round.backs) > 0 || w.round.owes(now)) {
		w.posted = w.m.post(w.shard(), w, now, immediately)
	}
}

// until returns the time from now to at, at least 0.
func until(at, now int64) time.Duration { return time.Duration(max(0, at-now)) }
