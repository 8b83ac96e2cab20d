package cluster

import (
	"errors"
	"fmt"
	"time"
)

// This file is a window's round: when there is something to send, what, and what is made of the
// reply. All but turn, command and answered need mu.

// roll begins and ends leases.
func (w *Window) roll(now int64) {
	if w.cur != 0 && now >= w.lease.end.Load() {
		if unitsOf(w.lease.word.Load()) > 0 {
			w.grown = 0 // it hasn't run out: no reason to ask for more than that
		}
		w.closeLease(now)
	}
	l := w.lots.find(w.next)
	switch {
	case l == nil || now < l.starts:
	case now >= l.ends:
		w.closeNext(now)
	default:
		w.closeLease(now)
		w.cur, w.next = w.next, 0
		w.lease.open(w.cur, w.nextLeft, l.ends)
		w.nextLeft = 0
		width, ahead := w.ring.Shape.Width(), time.Duration(l.bucket-w.current)
		w.enterBucket(now, l.bucket, w.edgeLow+shorter(ahead*width), w.edgeHigh+longer(ahead*width))
		w.grown = l.granted
		w.serve(now)
	}
}

// closeLease ends the lease: what is unspent goes back.
func (w *Window) closeLease(now int64) {
	l := w.lots.find(w.cur)
	w.cur = 0
	w.settle(l, w.lease.close(), now)
}

// closeNext is closeLease for the one that hasn't begun.
func (w *Window) closeNext(now int64) {
	l := w.lots.find(w.next)
	w.next = 0
	w.settle(l, w.nextLeft, now)
	w.nextLeft = 0
}

// settle accounts for a lot that is over.
func (w *Window) settle(l *lot, unspent, now int64) {
	if l == nil || l.epoch != w.epoch {
		return
	}
	spent := l.granted - unspent
	if spent > 0 {
		e := w.account.of(l.bucket)
		e.counted += spent
		e.at = now
	}
	w.wanted.units += spent - l.measured
	w.handBack(l.bucket, unspent)
}

// measure has the demand count what was spent of the lease by now.
func (w *Window) measure(now int64) {
	if l := w.lots.find(w.cur); l != nil {
		spent := l.granted - unitsOf(w.lease.word.Load())
		w.wanted.units += spent - l.measured
		l.measured = spent
	}
	w.wanted.units += w.missed.Swap(0)
	w.wanted.look(now, w.horizon)
}

// handBack has units sent back with the next command, or by themselves if none comes soon.
func (w *Window) handBack(bucket, n int64) {
	if n <= 0 {
		return
	}
	w.backAt = min(w.backAt, w.m.clock.Now()+w.horizon/2+w.m.chance(w.horizon/8))
	for i := range w.backs {
		if w.backs[i].Bucket == bucket {
			w.backs[i].Units += n
			return
		}
	}
	w.backs = append(w.backs, Units{bucket, n})
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

// leases reports whether the limit is large enough to be leased: two units a member and horizon.
func (w *Window) leases() bool {
	span := w.ring.Span() * int64(w.ring.Shape.Width())
	return float64(w.limit())*float64(w.horizon) >= 2*float64(w.active)*float64(span)
}

// fill says what a command asks for.
func (w *Window) fill(t *Take, now int64) {
	w.measure(now)
	short := w.short
	w.short = 0
	if len(w.waiters) > 0 && !w.gap(now) {
		w.asking = w.waiters[0]
		first := w.asking.need
		t.Need, t.Want = first.Units, 0
		for _, x := range w.waiters {
			t.Want += x.need.Units
		}
		t.Borrow = first.MaxWait
		if !w.leases() {
			return
		}
		t.Want = min(max(t.Want, 2*t.Need, w.more(now)), mostUnits)
		return
	}
	if !w.leases() {
		if short > 0 && now >= w.pause {
			t.Need = min(short, w.limit())
		}
		return
	}
	switch {
	case w.wantsNext(now):
		w.aheadAt = never
		t.Ahead = w.current + 1
		t.Need, t.Want = 1, max(1, w.wanted.over(w.horizon))
	case short > 0 && now >= w.pause || w.wantsMore(now):
		t.Need, t.Want = 1, min(max(1, short, w.more(now)), mostUnits)
		if w.pause != 0 { // there was no room: until it is known that there is, nobody waits for it
			w.refusedUntil.Store(now + int64(w.m.cfg.Timeout))
		}
	}
}

// ahead is how many units are wanted in a horizon, or until the bucket ends.
func (w *Window) ahead(now int64) int64 {
	t := w.horizon
	if left := w.edgeLow - now; left > 0 {
		t = min(t, left)
	}
	return w.wanted.over(t)
}

// more is ahead, but where the lease ran out too soon at least twice the last one.
func (w *Window) more(now int64) int64 {
	if w.wanted.at != 0 && unitsOf(w.lease.word.Load()) > 0 {
		return w.ahead(now)
	}
	return max(w.ahead(now), 2*w.grown)
}

// gap reports whether a lease begins in a moment that has what all wait for, and the bucket may be over: nobody
// need ask the store.
func (w *Window) gap(now int64) bool {
	if w.next == 0 || now < w.edgeLow-(w.edgeHigh-w.edgeLow) {
		return false
	}
	left := w.nextLeft
	for _, x := range w.waiters {
		if left -= x.need.Units; left < 0 {
			return false
		}
	}
	return true
}

// wantsNext reports whether it is time to fetch the lease of the next bucket.
func (w *Window) wantsNext(now int64) bool {
	return w.next == 0 && now >= w.aheadAt && now < w.edgeLow && w.wanted.over(w.horizon) > 0
}

// wantsMore reports whether units of this bucket are running out.
func (w *Window) wantsMore(now int64) bool {
	if now < w.pause || w.current != 0 && now >= w.edgeLow && w.next != 0 {
		return false
	}
	return unitsOf(w.lease.word.Load()) < w.lease.low.Load() && w.ahead(now) > 0 && !w.suffices(now)
}

// suffices reports whether the lease has half as many units again as calls are expected to want of it.
func (w *Window) suffices(now int64) bool {
	wants := w.ahead(now)
	return wants > 0 && wants+wants/2 <= unitsOf(w.lease.word.Load())
}

// want posts the window if there is something to send, and reports whether it did.
func (w *Window) want(now int64) bool {
	if w.inFlight != nil || w.posted || w.left || now < w.retryAt {
		return false
	}
	if !w.hasCommand(now) || !w.m.post(w.shard, w, now, len(w.waiters) > 0) {
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
	case w.fallback.on, w.account.owes():
		return true // the store is back, or may be, or knows too little
	case w.short > 0 && now >= w.pause:
		return true
	case !w.leases():
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
	if !w.want(now) {
		w.schedule(now)
	}
}

// schedule plans when the window looks next.
func (w *Window) schedule(now int64) {
	at := never
	if w.cur != 0 {
		at = min(at, w.lease.end.Load())
	}
	if l := w.lots.find(w.next); l != nil {
		at = min(at, l.starts)
	}
	if w.inFlight == nil && !w.posted && !w.left {
		if len(w.backs) > 0 {
			at = min(at, max(w.backAt, now+1))
		}
		if w.aheadAt > now && w.aheadAt != never && w.wanted.rate > 0 {
			at = min(at, w.aheadAt)
		}
		if w.pause > now && (w.short > 0 || w.missed.Load() > 0 || w.wanted.units > 0) {
			at = min(at, w.pause)
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
func (w *Window) command(now int64) Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posted = false
	if w.inFlight != nil {
		return nil
	}
	w.roll(now)
	t := &Take{Outcome: Outcome{Key: w.key}, Ring: w.ring, Limit: w.limit(), Seen: w.seen}
	if !w.left {
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
	case w.epoch != 0 && (w.cur|w.next != 0 || len(t.Backs)+len(w.account) > 0):
		t.Epoch = w.epoch
	}
	t.NewEpoch = unknownEpoch + 1 + w.m.chance(MostNumber-unknownEpoch-1)
	t.Caller = w.m.caller()
	w.inFlight = t
	w.requests++
	w.schedule(now)
	return t
}

// unknownEpoch is no key's.
const unknownEpoch = 1

// answered takes what the store says.
func (w *Window) answered(c Command, sent, received int64, err error) {
	t := c.(*Take)
	w.mu.Lock()
	defer w.mu.Unlock()
	outdated := t == w.outdated
	w.inFlight, w.outdated = nil, nil
	if err != nil {
		w.failed(t, received, err)
		return
	}
	w.broken, w.retryAt = false, 0
	r := &t.Reply
	w.account.heard(t.Epoch == r.Epoch)
	if r.Epoch != w.epoch {
		w.renew(r.Epoch, received)
	}
	w.returned(received)
	w.roll(received)
	w.active = r.Active
	if t.Need|t.Want != 0 {
		w.seen = r.Current
	}
	if r.Current >= w.current || r.Current+w.ring.Span() <= w.current { // or the clock was set back
		w.enterBucket(received, r.Current, sent+shorter(r.Left)-w.m.lag, received+longer(r.Left)+w.m.lag)
	}
	if t.Epoch == 0 || t.Epoch == r.Epoch {
		w.granted(t, sent, received)
	}
	if outdated {
		w.closeLease(received)
		w.closeNext(received)
	}
	w.serve(received)
	w.want(received)
	w.schedule(received)
}

// failed is answered for a command that the store did not answer, or did not execute.
func (w *Window) failed(t *Take, now int64, err error) {
	w.account.heard(false)
	switch {
	case errors.Is(err, ErrNotExecuted):
		w.backs = append(w.backs, t.Backs...)
		w.backAt = now + w.horizon
	case errors.Is(err, ErrForeign):
		if !w.broken {
			w.m.cfg.Logger.Error("a cluster rule can't use its key: it does as its onFailure says", "key", w.key, "error", err)
		}
		w.broken, w.brokenBy, w.retryAt = true, fmt.Sprint(err), now+probeEvery
	}
	w.refusedUntil.Store(0)
	w.failAll(now)
	w.schedule(now)
}

// renew begins with an epoch: the key was made anew, so what is leased is worth nothing, and the
// store has to be told what was admitted.
func (w *Window) renew(epoch, now int64) {
	if w.epoch != 0 {
		w.closeLease(now)
		w.closeNext(now)
		w.backs = nil
		w.account.anew()
	} else { // what was admitted before is in buckets of a time that was perhaps not the store's
		before := w.account
		w.account = nil
		for _, e := range before {
			w.account.of(w.ring.Bucket(w.m.storeTime(w.shard, e.at))).join(e)
		}
	}
	w.epoch = epoch
}

// granted makes a lease of what the store has granted, and takes note of what it hasn't.
func (w *Window) granted(t *Take, sent, received int64) {
	r := &t.Reply
	if t.Need|t.Want == 0 {
		return
	}
	if r.Granted == 0 && w.standsAside(t, received) {
		return // the call asks once more, with what is handed back
	}
	limited := r.Granted < max(t.Need, t.Want)
	if limited && t.Ahead <= r.Current {
		w.limited(t, received)
	} else if t.Ahead == 0 {
		w.refusedUntil.Store(0)
		w.pause = 0
	}
	if r.Granted == 0 {
		if t.Borrow > 0 && len(w.waiters) > 0 && w.waiters[0] == w.asking { // the call that may wait has had its turn
			w.miss(w.waiters[0].need.Units)
			w.waiters[0].decide(false)
			w.waiters = w.waiters[1:]
		}
		return
	}
	w.grown = r.Granted
	l := w.lotOf(r, sent, received)
	borrowed := r.Bucket > r.Current && t.Ahead == 0
	if received >= l.ends { // it took too long
		w.settle(&l, r.Granted, received)
		return
	}
	if at := w.lots.of(l.bucket, l.epoch, received, borrowed); at != nil && (borrowed || at.number == w.cur || at.number == w.next) {
		at.starts, at.ends = max(at.starts, l.starts), max(at.ends, l.ends)
		w.put(at, r.Granted, received)
		return
	}
	if !borrowed && r.Bucket == r.Current {
		w.closeLease(received)
	} else if !borrowed {
		w.closeNext(received)
	}
	l.granted, l.borrowed = 0, borrowed
	w.put(w.lots.add(l), r.Granted, received)
}

// standsAside hands back what the member has leased, if a call that waits was refused only since it
// needs that, and can't have it: it is less than the call needs. It does so once for a call.
func (w *Window) standsAside(t *Take, now int64) bool {
	if len(w.waiters) == 0 || w.waiters[0] != w.asking || w.asking.again || t.Need != w.asking.need.Units {
		return false
	}
	lacks, lease := t.Need-t.Reply.Room, unitsOf(w.lease.word.Load())
	switch {
	case lacks <= lease:
	case lacks <= lease+w.nextLeft && t.Need > w.nextLeft:
		w.closeNext(now)
	default:
		return false
	}
	w.closeLease(now)
	w.refusedUntil.Store(0)
	w.asking.again = true
	return true
}

// put has n units in a lot.
func (w *Window) put(l *lot, n, now int64) {
	l.granted += n
	switch {
	case l.borrowed:
		w.lend(l, n, now)
	case l.starts > now:
		w.next = l.number
		w.nextLeft += n
	case l.number == w.cur:
		w.lease.add(n, l.ends)
	default:
		w.cur = l.number
		w.lease.open(w.cur, n, l.ends)
	}
}

// limited is what the store says where there is less room than was wanted: what is beyond it is refused
// until some may be free, at most for a second, and then the store is asked by one.
func (w *Window) limited(t *Take, now int64) {
	r := &t.Reply
	var free int64
	switch {
	case r.Granted > 0: // a share: when all members have theirs, the rest is shared out again
		free = w.horizon / 6
	case r.Free > 0:
		free = longer(r.Free)
	default: // there is room for less
		free = max(w.edgeHigh-now, w.horizon/6)
	}
	free = min(free, longest)
	w.pause = now + free + w.m.chance(w.horizon/4)
	room := int64(0)
	if r.Granted == 0 {
		room = r.Room
	}
	w.room.Store(room)
	w.refusedUntil.Store(w.pause + w.horizon/16) // the one that asks then comes first
}

// drop gives the leases up, and what calls were lent that wait for it.
func (w *Window) drop(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeLease(now)
	w.closeNext(now)
	w.lots.end(now)
	w.schedule(now)
}

// leave hands everything back.
func (w *Window) leave(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeLease(now)
	w.closeNext(now)
	w.left = true
	w.failAll(now)
	if !w.posted && w.inFlight == nil && (len(w.backs) > 0 || w.account.owes()) {
		w.posted = w.m.post(w.shard, w, now, true)
	}
}

// until is how long after now a time is, at least 0.
func until(at, now int64) time.Duration { return time.Duration(max(0, at-now)) }
