package core

import (
	"slices"

	"github.com/penstock-go/penstock/stat"
)

// Reservation is what a rule granted a call and the call holds until it is
// refused after all or, with UntilExit, until it exits.
type Reservation struct {
	Holder    Holder // nil where it is a window or a gauge
	Units     int64
	Token     int64 // the holder's own
	Undo      int64 // the holder's own
	UntilExit bool

	window *stat.Window // the window that Token is a bucket of, or nil
	gauge  *stat.Gauge  // that the units are of, or nil
}

// Holder takes back what it granted, and reserves nothing as it does.
type Holder interface {
	GiveBack(*Reservation)
}

// confirmed is the Token of units of a gauge whose call has been counted too.
const confirmed = 1

func (r *Reservation) giveBack() {
	switch {
	case r.window != nil:
		r.window.Cancel(r.Token, r.Units)
	case r.gauge == nil:
		r.Holder.GiveBack(r)
	case r.Token == confirmed:
		r.gauge.ReleaseConfirmed(r.Units)
	default:
		r.gauge.Release(r.Units)
	}
}

// Reserve notes what a rule granted.
func (inv *Invocation) Reserve(r Reservation) { inv.held = append(inv.held, r) }

// ReserveUnits is Reserve for units that the call holds until it is admitted.
func (inv *Invocation) ReserveUnits(h Holder, units, token int64) {
	inv.reserve(units, token, 0, false).Holder = h
}

// reserve returns the next reservation, of nothing yet. To fill it in where it stands costs
// half of what it takes to copy one that was made elsewhere.
func (inv *Invocation) reserve(units, token, undo int64, untilExit bool) *Reservation {
	n := len(inv.held)
	if n == cap(inv.held) {
		inv.held = slices.Grow(inv.held, 1)
	}
	inv.held = inv.held[:n+1]
	r := &inv.held[n] // its pointers are nil: see empty
	r.Units, r.Token, r.Undo, r.UntilExit = units, token, undo, untilExit
	return r
}

// Reservations is how many reservations the call has.
func (inv *Invocation) Reservations() int { return len(inv.held) }

// GiveBackFrom gives back all reservations but the first n, the last one first: those
// of a rule that grants several and finds that it can't grant them all.
func (inv *Invocation) GiveBackFrom(n int) {
	for len(inv.held) > n {
		last := len(inv.held) - 1
		r := &inv.held[last]
		inv.held = inv.held[:last]
		r.giveBack()
		*r = Reservation{}
	}
}

// ReserveBucket notes units in a bucket of a window that holds under limit.
func (inv *Invocation) ReserveBucket(w *stat.Window, bucket, limit int64) {
	inv.reserve(inv.units, bucket, limit, false).window = w
}

// ReserveGauge notes units of a gauge.
func (inv *Invocation) ReserveGauge(g *stat.Gauge) {
	inv.reserve(inv.units, 0, 0, true).gauge = g
}

// HeldBucket returns the call's reservation in a window, or nil. A call holds at
// most one in each.
func (inv *Invocation) HeldBucket(w *stat.Window) *Reservation {
	for i := range inv.held {
		if inv.held[i].window == w {
			return &inv.held[i]
		}
	}
	return nil
}

// HoldsGauge reports whether the call holds units of a gauge.
func (inv *Invocation) HoldsGauge(g *stat.Gauge) bool { return inv.heldGauge(g) != nil }

// heldGauge looks from the end: permits are taken late.
func (inv *Invocation) heldGauge(g *stat.Gauge) *Reservation {
	for i := len(inv.held) - 1; i >= 0; i-- {
		if inv.held[i].gauge == g {
			return &inv.held[i]
		}
	}
	return nil
}

// MeterGauge makes the call hold units of the gauge of a node on which it has just
// been counted, unless a rule has taken them.
func (inv *Invocation) MeterGauge(g *stat.Gauge) {
	r := inv.heldGauge(g)
	if r != nil && !g.Settling() {
		return
	}
	inv.meterGauge(g, r)
}

func (inv *Invocation) meterGauge(g *stat.Gauge, r *Reservation) {
	if r == nil {
		g.Acquire(inv.units)
		inv.ReserveGauge(g)
		r = &inv.held[len(inv.held)-1]
	}
	if g.Settling() {
		g.Confirm(inv.units)
		r.Token = confirmed
	}
}

// releaseUnseen ends the call on gauges that were made after it had entered. It
// comes before the completion is counted, so that a gauge never shows less than
// what is in flight.
func (inv *Invocation) releaseUnseen() {
	for _, n := range inv.Counted() {
		gauges := n.Gauges()
		for i := range gauges {
			if g := &gauges[i]; g.All() && inv.heldGauge(g.Gauge) == nil {
				g.ReleaseUnseen(inv.units)
			}
		}
	}
}

// unsettled reports whether one of the nodes on which the call was counted has a gauge that
// holds something for calls it never saw: if not, releaseUnseen and settle do nothing. A
// gauge that does so began to before it could be seen, and one that is done stays so.
func (inv *Invocation) unsettled() bool {
	for _, n := range inv.Counted() {
		gauges := n.Gauges()
		for i := range gauges {
			if gauges[i].Settling() {
				return true
			}
		}
	}
	return false
}

// settle corrects what gauges hold for calls that they never saw, once the completion
// is counted. Until then this call stood in the way, or a gauge that was made as it
// left took it for one that stays; and who waits in line for that permit will not
// settle anything.
func (inv *Invocation) settle() {
	for _, n := range inv.Counted() {
		gauges := n.Gauges()
		for i := range gauges {
			if g := gauges[i].Gauge; g.Settling() {
				n.Settle(g)
			}
		}
	}
}

// giveBack returns everything, the last thing first.
func (inv *Invocation) giveBack() {
	if len(inv.held) > 0 {
		inv.unwind(true)
	}
}

// release returns what is held until exit. Where nobody waits for it nothing can go wrong.
func (inv *Invocation) release() {
	held := inv.held
	for i := len(held) - 1; i >= 0; i-- {
		r := &held[i]
		if r.UntilExit && (r.gauge == nil || r.Token == confirmed || !r.gauge.TryRelease(r.Units)) {
			inv.held = held[:i+1]
			inv.unwind(false)
			break
		}
	}
	inv.empty(held)
}

// empty makes held the place for what the next call holds. A pooled invocation must not
// keep windows alive.
func (inv *Invocation) empty(held []Reservation) {
	for i := range held { // they are few: this costs less than to clear them whole
		r := &held[i]
		r.Holder, r.window, r.gauge = nil, nil, nil
	}
	inv.held = held[:0]
}

// unwind empties what is held, and what a holder left behind the end that reserved as it
// took back. A holder that panics keeps what it granted; the others still get theirs.
func (inv *Invocation) unwind(all bool) {
	held := inv.held
	for len(inv.held) > 0 {
		inv.unwindSome(all)
	}
	inv.empty(held[:cap(held)])
}

func (inv *Invocation) unwindSome(all bool) {
	done := false
	defer func() {
		if done {
			return
		}
		if r := recover(); r != nil {
			inv.engine.failed(r, inv.now)
			return
		}
		// The holder ended the goroutine; nobody else goes on with an exit.
		inv.unwind(all)
		if !all {
			inv.record(phaseCompleted, nil)
			inv.settle()
		}
	}()
	for i := len(inv.held) - 1; i >= 0; i-- {
		r := &inv.held[i]
		inv.held = inv.held[:i]
		if all || r.UntilExit {
			r.giveBack()
		}
	}
	done = true
}

// chargeAt moves the call's units to the bucket in which it will run, in every
// window where the limit allows it. Elsewhere they stay in the bucket of the
// decision, where they hold the limit just as well.
func (inv *Invocation) chargeAt(at int64) {
	for i := range inv.held {
		if r := &inv.held[i]; r.window != nil {
			r.Token = r.window.Move(r.Token, at, r.Units, r.Undo)
		}
	}
}
