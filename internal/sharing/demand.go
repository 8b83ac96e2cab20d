package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/internal/shared"
)

// demand estimates how many units calls will want, and decides how much to ask the store for, and when; its
// decisions are in wants.go.
//
// Invariant: a unit that a call wanted is counted once, as spent of a lease or as missed. Once the lease of
// the next bucket was asked for, nextAt is never until a bucket begins. While room has an end, pause has an
// earlier one, so that the store is asked before calls that were refused try again.
//
// The window's mutex guards all of it but missed and room, which calls use without.
type demand struct {
	ring      store.Ring
	horizon   int64 // the time that a lease is for
	wanted    average
	missed    shared.Int64 // units that calls did without, since wanted was brought up to date
	room      room
	short     int64 // units that were missing, or about to be, since the last command
	lastGrant int64 // what was granted last, 0 once a lease has lasted
	nextAt    int64 // when the next lease is to be asked for; never if it was
	pause     int64 // no request for more before that
	pressed   bool  // the latest share is much less than what was wanted
	active    int64 // members, by the last reply
	free      int64 // units that no member had, by the last reply
}

func newDemand(ring store.Ring) demand {
	return demand{ring: ring, horizon: horizonOf(ring.Shape.Width()), nextAt: never, active: 1}
}

// horizonOf returns the time that a lease is for: half a bucket, but from 20 ms to 1 s.
func horizonOf(width time.Duration) int64 {
	return int64(min(max(width/2, 20*time.Millisecond), time.Second))
}

// random returns a number from 0 up to n, n excluded.
type random func(n int64) int64

// room records that the store had fewer units than it was asked for. Calls that need more than those are
// refused until some time.
type room struct {
	until shared.Int64
	units shared.Int64
}

// refuses reports whether n units are more than there are, with some that the member has.
func (r *room) refuses(now, n, own int64) bool {
	return now < r.until.Load() && n > r.units.Load()+own
}

// wait returns for how long n units are refused at least; 0 if they are not.
func (r *room) wait(now, n int64) time.Duration {
	if until := r.until.Load(); now < until && n > r.units.Load() {
		return time.Duration(until - now)
	}
	return 0
}

// forget has no call refused: there may be room.
func (r *room) forget() { r.until.Store(0) }

// count brings the average up to now, with units that were spent and those that were missed.
func (d *demand) count(now, spent int64) {
	d.wanted.units += spent + d.missed.Swap(0)
	d.wanted.look(now, d.horizon)
}

// spent counts units that were spent of a lease.
func (d *demand) spent(n int64) { d.wanted.units += n }

// lasted notes that a lease has not run out: there is no reason to ask for more than that.
func (d *demand) lasted() { d.lastGrant = 0 }

// enter notes that another bucket is current. The next lease is asked for in its last third, at a random
// moment.
func (d *demand) enter(now int64, e edge, rand random) {
	third := min(int64(d.ring.Shape.Width())/3, longest)
	d.nextAt = max(now, e.low-rand(third)-third/16)
	d.lastGrant = 0 // a lease that is over ran out for another reason
}

// begin notes that the next lease has begun, with units that were granted.
func (d *demand) begin(granted int64) { d.short, d.lastGrant = 0, granted }

// look notes the units that are free, by the reply to a command.
func (d *demand) look(t *store.Take) {
	d.free = t.Reply.Room
	if t.Need|t.Want == 0 {
		d.room.units.Store(max(d.room.units.Load(), t.Reply.Room)) // of what was handed back, too
	}
}

// learn notes whether the store granted what it was asked for.
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

// limited is learn for a reply that granted less than was wanted: calls beyond the room are refused until
// some may be free, at most for a second, and then one call asks the store.
func (d *demand) limited(t *store.Take, e edge, now int64, rand random) {
	r := &t.Reply
	var free int64
	switch {
	case r.Granted > 0: // a share: when all members have theirs, the rest is shared out again
		free = d.horizon / 3
		if d.pressed = max(t.Need, t.Want) > 2*r.Granted; d.pressed { // others want less of it
			free = d.horizon / 8
		}
	case r.Free > 0:
		free = longer(r.Free)
	default: // there is room for less
		free = max(e.high-now, d.horizon/6)
	}
	free = min(free, longest)
	d.pause = now + free + rand(d.horizon/4)
	room := int64(0)
	if r.Granted == 0 {
		room = r.Room
	}
	d.room.units.Store(room)
	d.room.until.Store(d.pause + d.horizon/16) // the one that asks then comes first
}

// average is the rate at which units are wanted, as a moving average over a horizon.
type average struct {
	rate  float64 // units a nanosecond
	at    int64
	units int64 // wanted since at
}

// look brings the average up to now.
func (a *average) look(now, horizon int64) {
	passed := now - a.at
	if passed < horizon/16 { // too short to tell
		return
	}
	share := float64(passed) / float64(passed+horizon)
	a.rate += (float64(a.units)/float64(passed) - a.rate) * share
	a.at, a.units = now, 0
}

// over returns the units that will be wanted within a time t.
func (a *average) over(t int64) int64 { return int64(min(a.rate*float64(t)+0.5, mostUnits)) }
