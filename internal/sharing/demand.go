package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/internal/shared"
)

// demand estimates the units that calls will want, and decides when to ask the store for how many.
// Its decisions are in wants.go.
//
// Invariant: a unit that a call wanted is counted once, either spent from a lease or missed. Once
// the next bucket's lease has been requested, nextAt is never until a bucket begins. While room has
// an end, pause ends earlier, so the store is asked before refused calls try again.
//
// The window's mutex guards all fields but missed and room, which calls use without it.
type demand struct {
	ring      store.Ring
	horizon   int64 // the time that one lease covers
	wanted    average
	missed    shared.Int64 // units that calls went without since wanted was updated
	room      room
	short     int64 // units missing, or about to be, since the last command
	lastGrant int64 // units of the latest grant; 0 once a lease has lasted
	nextAt    int64 // when to request the next lease; never if it was requested
	pause     int64 // earliest time to ask for more
	pressed   bool  // the latest share is much smaller than the demand
	active    int64 // members, by the latest reply
	free      int64 // units that no member holds, by the latest reply
}

func newDemand(ring store.Ring) demand {
	return demand{ring: ring, horizon: horizonOf(ring.Shape.Width()), nextAt: never, active: 1}
}

// horizonOf returns the time that one lease covers: half a bucket, from 20 ms to 1 s.
func horizonOf(width time.Duration) int64 {
	return int64(min(max(width/2, 20*time.Millisecond), time.Second))
}

// random returns a number in [0, n).
type random func(n int64) int64

// room records that the store had fewer units than requested. Until it expires, calls that need
// more than that are refused.
type room struct {
	until shared.Int64
	units shared.Int64
}

// refuses reports whether n exceeds the units in the store plus own, which the member holds.
func (r *room) refuses(now, n, own int64) bool {
	return now < r.until.Load() && n > r.units.Load()+own
}

// wait returns the time until n units are no longer refused; 0 if they are not refused.
func (r *room) wait(now, n int64) time.Duration {
	if until := r.until.Load(); now < until && n > r.units.Load() {
		return time.Duration(until - now)
	}
	return 0
}

// forget stops refusing calls: there may be room.
func (r *room) forget() { r.until.Store(0) }

// count updates the average with spent and missed units.
func (d *demand) count(now, spent int64) {
	d.wanted.units += spent + d.missed.Swap(0)
	d.wanted.look(now, d.horizon)
}

// fallsShort records that a call of n units found too few, unless it is too large for a lease.
func (d *demand) fallsShort(n int64) {
	if n <= mostUnits {
		d.short += n
	}
}

// spent counts units spent from a lease.
func (d *demand) spent(n int64) { d.wanted.units += n }

// lasted records that a lease has not run out, so the next one need not be larger.
func (d *demand) lasted() { d.lastGrant = 0 }

// restart forgets what calls wanted and the store had when the window was last in use. Otherwise the
// command with the window's charges would lease units that other members have yet to charge.
func (d *demand) restart() {
	d.wanted, d.short, d.lastGrant = average{}, 0, 0
	d.missed.Store(0)
	d.room.forget()
}

// enter records that a new bucket is current. The next lease is requested at a random moment in its
// last third.
func (d *demand) enter(now int64, e edge, rand random) {
	third := min(int64(d.ring.Shape.Width())/3, longest)
	d.nextAt = max(now, e.low-rand(third)-third/16)
	d.lastGrant = 0 // the lease ended with its bucket, not for want of units
}

// begin records that the next lease has begun with the granted units.
func (d *demand) begin(granted int64) { d.short, d.lastGrant = 0, granted }

// noteRoom records the free units that a reply reports.
func (d *demand) noteRoom(t *store.Take) {
	d.free = t.Reply.Room
	if t.Need|t.Want == 0 {
		d.room.units.Store(max(d.room.units.Load(), t.Reply.Room)) // also room made by hand-backs
	}
}

// learn records whether the store granted the requested units.
func (d *demand) learn(t *store.Take, limit int64, e edge, now int64, rand random) {
	r := &t.Reply
	short := r.Granted < max(t.Need, t.Want) && (r.Granted == 0 || !d.isAmple(limit))
	if short && t.Ahead <= r.Current {
		d.limited(t, e, now, rand)
	} else if t.Ahead == 0 {
		d.room.forget()
		d.pause, d.pressed = 0, false
	}
}

// limited is learn for a reply that granted too little: calls beyond the room are refused until
// some may be free, for at most a second and 5/16 of the horizon; then one call asks the store.
func (d *demand) limited(t *store.Take, e edge, now int64, rand random) {
	r := &t.Reply
	var pauseFor int64
	switch {
	case r.Granted > 0: // a share: once all members have theirs, the rest is shared out again
		pauseFor = d.horizon / 3
		if d.pressed = max(t.Need, t.Want) > 2*r.Granted; d.pressed { // others want less of it
			pauseFor = d.horizon / 8
		}
	case r.Free > 0:
		pauseFor = atMost(r.Free)
	default: // a smaller request would fit
		pauseFor = max(e.high-now, d.horizon/6)
	}
	pauseFor = min(pauseFor, longest)
	d.pause = now + pauseFor + rand(d.horizon/4)
	room := int64(0)
	if r.Granted == 0 {
		room = r.Room
	}
	d.room.units.Store(room)
	d.room.until.Store(d.pause + d.horizon/16) // so that the call that asks comes first
}

// average is the rate at which units are wanted, as a moving average over a horizon.
type average struct {
	rate  float64 // units per nanosecond
	at    int64
	units int64 // wanted since at
}

// look updates the average to now.
func (a *average) look(now, horizon int64) {
	passed := now - a.at
	if passed < horizon/16 { // too short to measure
		return
	}
	share := float64(passed) / float64(passed+horizon)
	a.rate += (float64(a.units)/float64(passed) - a.rate) * share
	a.at, a.units = now, 0
}

// over returns the expected demand within t nanoseconds.
func (a *average) over(t int64) int64 { return int64(min(a.rate*float64(t)+0.5, mostUnits)) }
