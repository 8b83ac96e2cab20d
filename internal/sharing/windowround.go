package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// This file is a window's round: leases begin and end, and a command is sent when there is a reason
// to. What it asks for is in windowwants.go, what becomes of the reply in windowanswer.go. All but
// turn, command, drop and leave need mu.

// roll begins and ends leases.
func (w *Window) roll(now int64) {
	over, begun := w.leases.roll(now)
	if over[0].unspent > 0 {
		w.grown = 0 // it hasn't run out: no reason to ask for more than that
	}
	w.settle(over[0], now)
	w.settle(over[1], now)
	if begun == nil {
		return
	}
	w.short = 0
	width, ahead := w.ring.Shape.Width(), time.Duration(begun.bucket-w.current)
	w.enterBucket(now, begun.bucket, w.edgeLow+shorter(ahead*width), w.edgeHigh+longer(ahead*width))
	w.grown = begun.granted
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
	w.wanted.units += spent - l.measured
	w.fallback.ended(l, over.unspent)
	w.handBack(l.bucket, over.unspent)
}

// measure has the demand count what was spent of the lease by now.
func (w *Window) measure(now int64) {
	w.wanted.units += w.leases.newlySpent() + w.missed.Swap(0)
	w.wanted.look(now, w.horizon)
}

// handBack has units sent back with the next command, or by themselves if none comes soon.
func (w *Window) handBack(bucket, n int64) {
	if n <= 0 {
		return
	}
	wait := w.horizon * 5 / 6
	if w.isAmple() { // with the command that fetches the next lease
		wait = w.lasts()
	}
	w.backAt = min(w.backAt, w.m.clock.Now()+wait+w.m.chance(w.horizon/8))
	for i := range w.backs {
		if w.backs[i].Bucket == bucket {
			w.backs[i].Units += n
			return
		}
	}
	w.backs = append(w.backs, store.Units{Bucket: bucket, Units: n})
}

// enterBucket notes that a bucket is current, and when it ends.
func (w *Window) enterBucket(now, bucket, low, high int64) {
	if bucket != w.current {
		third := min(int64(w.ring.Shape.Width())/3, longest)
		w.aheadAt = max(now, low-w.m.chance(third)-third/16)
		w.account.forget(bucket - w.ring.Span())
		w.grown = 0 // a lease that is over ran out for another reason
	}
	w.current, w.edgeLow, w.edgeHigh = bucket, low, high
}

// later is when a command that no call waits for is sent at the latest. Commands of other keys may join it until then,
// since what is leased lasts longer. A window whose lease goes faster than expected, or that lacks much, doesn't wait.
func (w *Window) later(now int64) int64 {
	if !w.leasable() || w.pressed {
		return now
	}
	return now + w.horizon/16
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
	switch {
	case len(w.waiters) > 0 && !w.gap(now):
		return true
	case len(w.backs) > 0 && now >= w.backAt:
		return true
	case w.fallback.on, w.account.owes(now - w.counts()):
		return true // the store is back, or may be, or knows too little
	case w.lacks(w.short, now):
		return true
	case !w.leasable():
		return false
	}
	w.measure(now)
	return w.wantsNext(now) || w.wantsMore(now)
}

// turn is what the window does at a time that it has planned.
func (w *Window) turn(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roll(now)
	w.serve(now)
	if !w.want(now, w.later(now)) {
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
		if w.aheadAt > now && w.aheadAt != never && w.wanted.rate > 0 {
			at = min(at, w.aheadAt)
		}
		if w.pause > now && (w.short > 0 || w.missed.Load() > 0 || w.wanted.units > 0) {
			at = min(at, w.pause)
		}
		if w.account.owes(now - w.counts()) { // no call may come to have it told
			at = min(at, max(now+w.horizon, w.shard().probeAt.Load()))
		}
	}
	if at == never {
		w.m.unplan(&w.task)
		return
	}
	if w.away() {
		at = max(at, now+w.horizon)
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
