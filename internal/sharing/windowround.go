package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// This file is a window's round: leases begin and end, and a command is sent when there is a reason
// to. What it asks for is in wants.go, what becomes of the reply in windowanswer.go. All but
// turn, command, drop and leave need mu.

// roll begins and ends leases.
func (w *Window) roll(now int64) {
	over, begun := w.leases.roll(now)
	if over[0].unspent > 0 {
		w.demand.lasted()
	}
	w.settle(over[0], now)
	w.settle(over[1], now)
	if begun == nil {
		return
	}
	w.enterBucket(now, w.edge.at(begun.bucket, w.ring.Shape.Width()))
	w.demand.begin(begun.granted)
	w.serve(now)
}

// closeLeases ends the leases: what is unspent goes back.
func (w *Window) closeLeases(now int64) {
	w.settle(w.leases.closeCurrent(now), now)
	w.settle(w.leases.closeNext(), now)
}

// settle accounts for a lot that is over, if there is one.
func (w *Window) settle(over leftover, now int64) {
	l := over.lot
	if l == nil || l.epoch != w.epoch {
		return
	}
	spent := over.spent()
	if spent > 0 {
		e := w.account.of(l.bucket)
		e.counted += spent
		e.at = now
	}
	w.demand.wanted.units += spent - l.measured
	w.fallback.ended(l, over.unspent)
	w.handBack(l.bucket, over.unspent)
}

// measure has the demand count what was spent of the lease by now.
func (w *Window) measure(now int64) {
	w.demand.count(now, w.leases.newlySpent())
}

// handBack has units sent back with the next command, or by themselves if none comes soon.
func (w *Window) handBack(bucket, n int64) {
	if n <= 0 {
		return
	}
	w.backAt = min(w.backAt, w.m.clock.Now()+w.demand.keeps(w.limit())+w.m.chance(w.demand.horizon/8))
	for i := range w.backs {
		if w.backs[i].Bucket == bucket {
			w.backs[i].Units += n
			return
		}
	}
	w.backs = append(w.backs, store.Units{Bucket: bucket, Units: n})
}

// enterBucket notes that a bucket is current, and when it ends.
func (w *Window) enterBucket(now int64, e edge) {
	if e.bucket != w.edge.bucket {
		w.demand.enter(now, e, w.m.chance)
		w.account.forget(e.bucket - w.ring.Span())
	}
	w.edge = e
}

// want has a command sent by that time, if there is something to send, and reports whether a flush may send it.
func (w *Window) want(now, by int64) bool {
	by = unlessAwaited(w.waiters, by)
	switch {
	case w.inFlight != nil || w.gone || now < w.broken.retryAt:
		return false
	case w.posted:
		return w.m.hasten(w.shard(), now, by)
	case !w.hasCommand(now) || !w.m.post(w.shard(), w, now, by):
		w.schedule(now)
		return false
	}
	w.posted = true
	return true
}

func (w *Window) hasCommand(now int64) bool {
	p := w.position()
	switch {
	case len(w.waiters) > 0 && !p.covers(now, w.waiting().units):
		return true
	case len(w.backs) > 0 && now >= w.backAt:
		return true
	case w.fallback.on, w.account.owes(now - w.counts()):
		return true // the store is back, or may be, or knows too little
	case w.demand.lacks(w.demand.short, p, now):
		return true
	case !w.demand.leasable(p.limit):
		return false
	}
	w.measure(now)
	return w.demand.wantsNext(p, now) || w.demand.wantsMore(p, now)
}

// fill says what a command asks for.
func (w *Window) fill(t *store.Take, now int64) {
	w.measure(now)
	p := w.position()
	var a ask
	if calls := w.waiting(); calls.first != nil && !p.covers(now, calls.units) {
		w.asking = w.waiters[0]
		a = w.demand.askFor(calls, p, now)
	} else {
		a = w.demand.askAhead(p, w.Timeout(), now)
	}
	t.Need, t.Want, t.Ahead, t.Borrow = a.need, a.want, a.ahead, a.borrow
}

// turn is what the window does at a time that it has planned.
func (w *Window) turn(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roll(now)
	w.serve(now)
	if !w.want(now, w.demand.by(w.limit(), now)) {
		w.schedule(now)
	}
}

// counts is for how long a unit counts at most.
func (w *Window) counts() int64 { return (w.ring.Span() + 1) * int64(w.ring.Shape.Width()) }

// schedule plans when the window looks next.
func (w *Window) schedule(now int64) {
	at := w.leases.changesAt()
	if w.inFlight == nil && !w.posted && !w.gone {
		if len(w.backs) > 0 {
			at = min(at, max(w.backAt, now+1))
		}
		at = min(at, w.demand.wakesAt(now))
		if w.account.owes(now - w.counts()) { // no call may come to have it told
			at = min(at, max(now+w.demand.horizon, w.shard().probeAt.Load()))
		}
	}
	if at == never {
		w.m.unplan(&w.task)
		return
	}
	if w.away() {
		at = max(at, now+w.demand.horizon)
	}
	w.m.plan(&w.task, max(at, now))
}

// command is the Take to send now.
func (w *Window) command(now int64) store.Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posted = false
	if w.inFlight != nil {
		return nil
	}
	w.roll(now)
	t := &store.Take{Outcome: store.Outcome{Key: w.key}, Ring: w.ring, Limit: w.limit(), Seen: w.seen, Lacked: w.lacked}
	if !w.gone {
		w.fill(t, now)
	}
	t.Charges = w.account.tell()
	w.backs, t.Backs = nil, w.backs // forgotten as they are sent
	w.backAt = never
	if t.Need|t.Want == 0 && len(t.Backs)+len(t.Charges) == 0 && !w.fallback.on {
		w.schedule(now)
		return nil
	}
	switch {
	case w.epoch == 0 && len(t.Charges) > 0:
		t.Epoch = unknownEpoch // nothing is granted before they are charged
	case w.epoch != 0 && (w.leases.cur|w.leases.next != 0 || len(t.Backs)+len(w.account) > 0):
		t.Epoch = w.epoch
	}
	t.NewEpoch = unknownEpoch + 1 + w.m.chance(store.MostEpoch-unknownEpoch)
	t.Caller = w.m.caller()
	w.inFlight = t
	w.requests++
	w.schedule(now)
	return t
}

// unknownEpoch is no key's.
const unknownEpoch = 1

// giveUp hands back what is leased, and has what the store is about to grant go back as it comes. It needs mu.
func (w *Window) giveUp(now int64) {
	w.closeLeases(now)
	w.outdated = w.inFlight
}

// drop gives the leases up, and what calls were lent that wait for it.
func (w *Window) drop(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeLeases(now)
	w.leases.lots.end(now)
	w.schedule(now)
}

// leave hands everything back.
func (w *Window) leave(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
	w.failAll(now)
	w.handBackAll(now)
}

// handBackAll hands back what is leased, by a command of its own unless one is on its way: then its answer does.
func (w *Window) handBackAll(now int64) {
	w.closeLeases(now)
	if !w.posted && w.inFlight == nil && (len(w.backs) > 0 || w.account.owes(now-w.counts())) {
		w.posted = w.m.post(w.shard(), w, now, immediately)
	}
}

// until is how long after now a time is, at least 0.
func until(at, now int64) time.Duration { return time.Duration(max(0, at-now)) }
