package sharing

import (
	"github.com/penstock-go/penstock/cluster/store"
)

// This file is how much a window asks the store for, and whether it has to. All of it needs mu.

// leasable reports whether the limit is large enough to be leased: two units a member and horizon.
func (w *Window) leasable() bool {
	span := w.ring.Span() * int64(w.ring.Shape.Width())
	return float64(w.limit())*float64(w.horizon) >= 2*float64(w.active)*float64(span)
}

// fill says what a command asks for.
func (w *Window) fill(t *store.Take, now int64) {
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
		if t.Borrow = first.MaxWait; t.Borrow == 0 && w.tooLate(now) {
			t.Ahead, w.aheadAt = w.current+1, never
		}
		if !w.leasable() {
			return
		}
		t.Want = min(max(t.Want, 2*t.Need, w.more(now)), mostUnits)
		return
	}
	if !w.leasable() {
		if short > 0 && now >= w.pause {
			t.Need = min(short, w.limit())
		}
		return
	}
	switch {
	case w.wantsNext(now):
		w.aheadAt = never
		t.Ahead = w.current + 1
		t.Need, t.Want = 1, max(1, w.share(w.edgeLow))
	case w.lacks(short, now) || w.wantsMore(now):
		t.Need, t.Want = 1, min(max(1, short, w.more(now)), mostUnits)
		if w.pause != 0 { // there was no room: until it is known that there is, nobody waits for it
			w.refusedUntil.Store(now + int64(w.Timeout()))
		}
	}
}

// ahead is how many units are wanted in a horizon, or until the bucket ends if that is soon after it: a lease
// for the last few milliseconds would cost as much as any. Where there is room for all it is what is wanted until the
// bucket ends, so that one lease does for it.
func (w *Window) ahead(now int64) int64 {
	left := w.edgeLow - now
	if left <= 0 { // of a bucket that begins
		left = int64(w.ring.Shape.Width())
	}
	if t := w.horizon; left >= t+t/2 && !w.isAmple() {
		return w.wanted.over(t)
	}
	return w.wanted.over(min(left, longest))
}

// isAmple reports whether the room that the store had last is enough for all, also if they want much more soon: a third of
// the limit, and four times what all want in a bucket if they want as much as this member does by now. Without the latter, a
// burst into an empty window would lease all of it for one bucket, and be refused in the next. Where buckets are few, they
// make few commands, and what is leased for a whole one is missing elsewhere.
func (w *Window) isAmple() bool {
	each := w.wanted.over(w.lasts())
	return w.ring.Shape.Buckets >= fewBuckets && w.free >= w.limit()/3 && w.free/4 >= each*max(w.active, 1)
}

const fewBuckets = 5

// lasts is how long a lease is good that begins with its bucket.
func (w *Window) lasts() int64 { return min(int64(w.ring.Shape.Width()), longest) }

// share is what to lease: ahead, and half as much again where there is room for all, as calls don't come evenly.
func (w *Window) share(now int64) int64 {
	units := w.ahead(now)
	if w.isAmple() {
		units += units / 2
	}
	return units
}

// more is share, but where the lease ran out too soon at least twice the last one.
func (w *Window) more(now int64) int64 {
	if w.wanted.at != 0 && w.leases.lease.units() > 0 {
		return w.share(now)
	}
	return max(w.share(now), 2*w.grown)
}

// relieved reports whether a lease begins in a moment, and the bucket is probably over before a reply comes. When it ends
// is known to a round trip, and so is when the lease begins: a quarter of one earlier, calls wait for two round trips at
// most (simulated; with a whole one, for three).
func (w *Window) relieved(now int64) bool {
	return w.leases.next != 0 && now >= w.edgeLow-(w.edgeHigh-w.edgeLow)/4
}

// tooLate reports whether a lease of the current bucket would be over before the reply comes, even if the bucket ends as
// late as it can: half a round trip passes until the store has the command, and that is taken off the lease, and then a
// whole one until the reply is here. A lease of the next bucket begins half a round trip after that does.
func (w *Window) tooLate(now int64) bool {
	return w.leases.next == 0 && now >= w.edgeLow-(w.edgeHigh-w.edgeLow)/2 && now < w.edgeHigh
}

// gap reports whether a lease begins in a moment that has what all wait for: nobody need ask the store.
func (w *Window) gap(now int64) bool {
	if !w.relieved(now) {
		return false
	}
	left := w.leases.nextLeft
	for _, x := range w.waiters {
		if left -= x.need.Units; left < 0 {
			return false
		}
	}
	return true
}

// lacks reports whether units that are missing are worth a command.
func (w *Window) lacks(short, now int64) bool { return short > 0 && now >= w.pause && !w.relieved(now) }

// wantsNext reports whether it is time to fetch the lease of the next bucket.
func (w *Window) wantsNext(now int64) bool {
	return w.leases.next == 0 && now >= w.aheadAt && now < w.edgeLow && w.wanted.over(w.horizon) > 0
}

// wantsMore reports whether units of this bucket are running out.
func (w *Window) wantsMore(now int64) bool {
	if now < w.pause || w.relieved(now) {
		return false
	}
	return unitsOf(w.leases.lease.word.Load()) < w.leases.lease.low.Load() && w.ahead(now) > 0 && !w.suffices(now)
}

// suffices reports whether the lease has half as many units again as calls are expected to want of it.
func (w *Window) suffices(now int64) bool {
	wants := w.ahead(now)
	return wants > 0 && wants+wants/2 <= w.leases.lease.units()
}
