package engine

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/meter"
)

// waiter is a queued call: its place in the queue, and the limits of the rule that queued it.
type waiter struct {
	place *meter.Waiter
	until int64 // time at which its rule rejects it
	by    *core.BlockError
}

// placeHolder holds a place in a queue, or the units that were granted there.
type placeHolder struct{ *meter.Waiter }

func (h placeHolder) GiveBack(*Reservation, int64) { h.Leave() }

// shareHolder holds units of a share. Token is 1 once the call has been counted on its node.
type shareHolder struct{ *meter.Share }

func (h shareHolder) GiveBack(r *Reservation, _ int64) { h.Release(r.Units, r.Token == 1) }

// ReserveShare records units of a semaphore that a share was granted; nil stands for no share.
func (inv *Invocation) ReserveShare(g *meter.Semaphore, share *meter.Share) {
	inv.ReserveSemaphore(g)
	if share != nil {
		inv.held[len(inv.held)-1].ofShare(share)
	}
}

func (r *Reservation) ofShare(share *meter.Share) { r.Holder, r.kind = shareHolder{share}, byHolder }

// ReservePlace records a place in the queue of a semaphore. Unlike with [Invocation.Await], the
// call doesn't wait for its units; at exit the call leaves the queue, or gives back the units
// granted there.
func (inv *Invocation) ReservePlace(w *meter.Waiter) {
	inv.Reserve(Reservation{Holder: placeHolder{w}, Units: inv.units, UntilExit: true})
}

// Await records a place in a queue: the call must wait until units are granted there, for at most
// maxWait. If that time or the context ends first, by rejects the call.
//
// That wait begins when the call has served the waits of other rules. Meanwhile the call holds
// everything else it was granted. So a call may be in only one queue: two calls, each next in line
// for units that the other holds, would wait for each other. A rule checks [Invocation.Awaits]
// before it queues a call.
func (inv *Invocation) Await(w *meter.Waiter, maxWait time.Duration, by *core.BlockError) {
	inv.ReservePlace(w)
	inv.waits = true
	inv.waiter = &waiter{place: w, until: inv.now + int64(maxWait), by: by}
}

// Awaits reports whether the call is queued.
func (inv *Invocation) Awaits() bool { return inv.waiter != nil }

// awaitGrant waits for the grant that the call is queued for, and reports whether it got it. If
// not, cause is the reason, or nil if its time ran out or it lost its place. before is called as
// soon as the call sleeps.
func (inv *Invocation) awaitGrant(before func()) (returned func(), ok bool, cause error) {
	w, draining := inv.waiter.place, &inv.engine.drain
	rest := time.Duration(inv.waiter.until - inv.now)
	deadline, bounded := inv.untilDeadline()
	if bounded = bounded && deadline < rest; bounded {
		rest = deadline
	}
	if left, ok := inv.untilAnswer(); ok && left < rest {
		rest, bounded = left, false
	}
	returned = before
	var err error
	if rest > 0 {
		wake := clocks.Wakeable(inv.ctx)
		defer wake.Release()
		if !draining.joinForPermit(wake) {
			return returned, false, core.ErrDraining
		}
		defer draining.leaveForPermit(wake)
		w.Attend(wake.Wake)
		if !wake.Woken() {
			returned, err = clocks.SleepCall(wake, inv.engine.clock, rest, before)
		}
		if wake.Woken() {
			err = nil // woken, or its context has ended
		}
	}
	switch ended := inv.ctx.Err(); {
	case ended != nil:
		return returned, false, ended
	case w.Granted():
		inv.granted(w)
		return returned, true, nil
	case w.Displaced():
		return returned, false, errDisplaced
	case draining.on.Load():
		return returned, false, core.ErrDraining
	case err == nil && bounded:
		return returned, false, context.DeadlineExceeded
	}
	return returned, false, err
}

// granted turns a granted place into a reservation of units of the semaphore, like any other.
func (inv *Invocation) granted(w *meter.Waiter) {
	for i := range inv.held {
		r := &inv.held[i]
		if h, ok := r.Holder.(placeHolder); ok && h.Waiter == w {
			r.Holder, r.kind, r.semaphore = nil, inFlight, w.Semaphore()
			if share := w.Share(); share != nil {
				r.ofShare(share)
			}
			inv.forgetHeld(i)
		}
	}
	inv.waiter = nil
}
