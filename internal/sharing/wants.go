package sharing

import "time"

// This file holds the decisions of a demand: whether to ask the store, and for how much.

// position is the input of a demand's decisions: the limit, the leases and the current bucket.
type position struct {
	limit    int64 // of the window
	left     int64 // units of the current lease
	few      bool  // few of the lease's units are left
	next     bool  // the next lease is granted
	nextLeft int64 // its units
	edge     edge
}

// beginsSoon reports whether a lease begins in a moment and the bucket is probably over before a
// reply arrives. The bucket's end is known to a round trip, and so is the lease's begin. With a
// quarter of a round trip as the threshold, calls wait for at most two round trips (simulated;
// three with a whole one).
func (p position) beginsSoon(now int64) bool {
	return p.next && now >= p.edge.low-(p.edge.high-p.edge.low)/4
}

// covers reports whether a lease that begins in a moment has the units that calls wait for, so that
// nobody need ask the store.
func (p position) covers(now, units int64) bool { return p.beginsSoon(now) && units <= p.nextLeft }

// tooLate reports whether a lease of the current bucket would be over before the reply arrives,
// even if the bucket ends as late as it can. Half a round trip passes until the store has the
// command, which shortens the lease, and a whole one until the reply is here. A lease of the next
// bucket begins half a round trip after the bucket does.
func (p position) tooLate(now int64) bool {
	return !p.next && now >= p.edge.low-(p.edge.high-p.edge.low)/2 && now < p.edge.high
}

// ask is the units that a command asks for, see [store.Take].
type ask struct {
	need, want int64
	ahead      int64         // the coming bucket they are for, 0 for the current one
	borrow     time.Duration // how long a call may wait for a coming bucket
}

// waiting summarizes the waiting calls: the first one's need, nil if none waits, and the units of
// all.
type waiting struct {
	first *Need
	units int64
}

// askFor returns the units to ask for while calls wait.
func (d *demand) askFor(calls waiting, p position, now int64) (a ask) {
	d.short = 0
	a.need, a.borrow = calls.first.Units, calls.first.MaxWait
	if a.want = calls.units; a.need > mostUnits {
		a.want = a.need // the call gets it by itself
		return a
	}
	if a.borrow == 0 && p.tooLate(now) {
		a.ahead, d.nextAt = p.edge.bucket+1, never
	}
	if a.want = min(a.want, mostUnits); d.leasable(p.limit) {
		a.want = min(max(a.want, 2*a.need, d.more(p, now)), mostUnits)
	}
	return a
}

// askAhead returns the units to ask for while no call waits, or only calls that a lease about to
// begin covers. If there was no room, calls are refused until the reply arrives, at most for
// timeout.
func (d *demand) askAhead(p position, timeout time.Duration, now int64) (a ask) {
	short := d.short
	d.short = 0
	if !d.leasable(p.limit) {
		if short > 0 && now >= d.pause {
			a.need = min(short, p.limit, mostUnits)
		}
		return a
	}
	switch {
	case d.wantsNext(p, now):
		d.nextAt = never
		a.ahead = p.edge.bucket + 1
		a.need, a.want = 1, max(1, d.share(p, p.edge.low))
	case d.worthAsking(short, p, now) || d.wantsMore(p, now):
		a.need, a.want = 1, min(max(1, short, d.more(p, now)), mostUnits)
		if d.pause != 0 {
			d.room.until.Store(now + int64(timeout))
		}
	}
	return a
}

// leasable reports whether the limit is large enough to be leased: at least two units a member and
// horizon.
func (d *demand) leasable(limit int64) bool {
	window := d.ring.Span() * int64(d.ring.Shape.Width())
	return float64(limit)*float64(d.horizon) >= 2*float64(d.active)*float64(window)
}

// ahead returns the units wanted in a horizon, or until the bucket ends if it does so soon after: a
// lease for the last few milliseconds would cost as much as any. If there is ample room, it returns
// the units wanted until the end of the bucket, so that one lease lasts for the bucket.
func (d *demand) ahead(p position, now int64) int64 {
	left := p.edge.low - now
	if left <= 0 { // of a bucket that begins
		left = int64(d.ring.Shape.Width())
	}
	if h := d.horizon; left >= h+h/2 && !d.isAmple(p.limit) {
		return d.wanted.over(h)
	}
	return d.wanted.over(min(left, longest))
}

// isAmple reports whether the room at the store is enough for all members even if demand soon rises
// steeply: at least a third of the limit, and four times the demand of all in a bucket if each
// wants as much as this member now. Without the second condition, a burst into an empty window
// would lease all of it for one bucket and be refused in the next. With few buckets, there are few
// commands anyway, and units leased for a whole bucket would be missing elsewhere.
func (d *demand) isAmple(limit int64) bool {
	each := d.wanted.over(d.lasts())
	return d.ring.Shape.Buckets >= fewBuckets && d.free >= limit/3 && d.free/4 >= each*max(d.active, 1)
}

const fewBuckets = 5

// lasts returns the life of a lease that begins with its bucket.
func (d *demand) lasts() int64 { return min(int64(d.ring.Shape.Width()), longest) }

// keeps returns how long the rest of a lease waits for a command to carry it back. If there is
// ample room, it waits for the command that fetches the next lease.
func (d *demand) keeps(limit int64) int64 {
	if d.isAmple(limit) {
		return d.lasts()
	}
	return d.horizon * 5 / 6
}

// share returns the units to lease: ahead, and half as much again if there is ample room, as calls
// arrive unevenly.
func (d *demand) share(p position, now int64) int64 {
	units := d.ahead(p, now)
	if d.isAmple(p.limit) {
		units += units / 2
	}
	return units
}

// more returns the share, but at least twice the last grant if that lease ran out too soon.
func (d *demand) more(p position, now int64) int64 {
	if d.wanted.at != 0 && p.left > 0 {
		return d.share(p, now)
	}
	return max(d.share(p, now), 2*d.lastGrant)
}

// worthAsking reports whether the missing units are worth a command.
func (d *demand) worthAsking(short int64, p position, now int64) bool {
	return short > 0 && now >= d.pause && !p.beginsSoon(now)
}

// wantsNext reports whether it is time to fetch the lease of the next bucket.
func (d *demand) wantsNext(p position, now int64) bool {
	return !p.next && now >= d.nextAt && now < p.edge.low && d.wanted.over(d.horizon) > 0
}

// wantsMore reports whether the units of this bucket are running out.
func (d *demand) wantsMore(p position, now int64) bool {
	return now >= d.pause && !p.beginsSoon(now) && p.few && d.ahead(p, now) > 0 && !d.suffices(p, now)
}

// suffices reports whether the lease has one and a half times the units that calls are expected to
// want.
func (d *demand) suffices(p position, now int64) bool {
	wants := d.ahead(p, now)
	return wants > 0 && wants+wants/2 <= p.left
}

// runsLow records that few units are left, which is worth a command unless they suffice.
func (d *demand) runsLow(p position, now int64) {
	if now < d.pause || !d.suffices(p, now) {
		d.short++
	}
}

// by returns the latest time to send a command that no call waits for. Commands of other keys may
// join it until then, since the lease lasts longer. A limit that is not leased, or a member that
// got much less than it wanted, doesn't wait.
func (d *demand) by(limit, now int64) int64 {
	if !d.leasable(limit) || d.pressed {
		return now
	}
	return now + d.horizon/16
}

// wakesAt returns when a command may be due that no call would trigger; never if there is none.
func (d *demand) wakesAt(now int64) int64 {
	at := never
	if d.nextAt > now && d.nextAt != never && d.wanted.rate > 0 {
		at = d.nextAt
	}
	if d.pause > now && (d.short > 0 || d.missed.Load() > 0 || d.wanted.units > 0) {
		at = min(at, d.pause)
	}
	return at
}
