package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// Reservation records the units that a call holds until it is rejected or, with UntilExit, until it
// exits. The kind determines the meaning of Token and Undo:
//
//	kind        counted by    Token            Undo
//	byHolder    Holder        the holder's     the holder's
//	byLease     Holder        the holder's     the instant from which the units are valid
//	inWindow    window        the Receipt      the lowest limit under which the call took there
//	inFlight    semaphore     -                -
//	confirmed   semaphore     -                -      and the call has been counted on its node
type Reservation struct {
	Holder    Holder // nil if a semaphore counts the units; for a window nil, or the Overdraft
	Units     int64
	Token     int64
	Undo      int64
	UntilExit bool

	kind      reservationKind
	fleeting  bool             // byLease: the units are valid for a short time only; see fetch.go
	cost      uint8            // number of the call's cost that is settled here, from 1; 0 for none
	more      bool             // granted by More; see [Entry.More]
	follows   int32            // inWindow: number of the followed reservation, from 1; 0 for others
	window    *stat.Window     // nil except for inWindow
	semaphore *meter.Semaphore // nil except for inFlight and confirmed, and units of a share
}

type reservationKind uint8

const (
	byHolder reservationKind = iota
	byLease
	inWindow
	inFlight
	confirmed
)

// Holder takes back its grants, at now, without reserving anything as it does so.
type Holder interface {
	GiveBack(r *Reservation, now int64)
}

func (r *Reservation) giveBack(inv *Invocation) {
	switch r.kind {
	case inWindow:
		r.window.Cancel(r.Receipt(), r.Units)
	case inFlight:
		r.semaphore.Release(inv.lane, r.Units)
	case confirmed:
		r.semaphore.ReleaseConfirmed(r.Units)
	default:
		r.Holder.GiveBack(r, inv.now)
	}
}

// Receipt returns the window's receipt for the units.
func (r *Reservation) Receipt() stat.Receipt { return stat.Receipt(r.Token) }

// LowerLimit records that units of a window are within that limit as well.
func (r *Reservation) LowerLimit(limit int64) { r.Undo = min(r.Undo, limit) }

// Reserve records a grant.
func (inv *Invocation) Reserve(r Reservation) { inv.held = append(inv.held, r) }

// ReserveUnits is like Reserve, but for units that the call holds until it is admitted.
func (inv *Invocation) ReserveUnits(h Holder, units, token int64) {
	inv.reserve(units, token, 0, false).Holder = h
}

// reserve returns the next reservation, still empty. Filling it in in place costs half of copying
// one made elsewhere.
func (inv *Invocation) reserve(units, token, undo int64, untilExit bool) *Reservation {
	r := inv.nextReservation()
	r.Units, r.Token, r.Undo, r.UntilExit, r.kind = units, token, undo, untilExit, byHolder
	return r
}

// nextReservation appends a reservation. Its pointers are nil: see empty.
func (inv *Invocation) nextReservation() *Reservation {
	n := len(inv.held)
	if n == cap(inv.held) {
		inv.held = slices.Grow(inv.held, 1)
	}
	inv.held = inv.held[:n+1]
	return &inv.held[n]
}

// Reservations returns the number of reservations of the call.
func (inv *Invocation) Reservations() int { return len(inv.held) }

// GiveBackFrom gives back all reservations but the first n, the last one first, for a rule that
// makes several grants and finds that it can't make them all. A later reservation that follows one
// of the first n isn't that rule's, and stays.
func (inv *Invocation) GiveBackFrom(n int) {
	inv.forgetHeld(n)
	var kept []Reservation
	for len(inv.held) > n {
		last := len(inv.held) - 1
		r := &inv.held[last]
		inv.held = inv.held[:last]
		if r.follows > 0 && int(r.follows) <= n {
			kept = append(kept, *r)
		} else {
			r.giveBack(inv)
		}
		*r = Reservation{}
	}
	for _, r := range slices.Backward(kept) {
		inv.held = append(inv.held, r)
	}
}

// ReserveBucket records n units that a window counts within limit.
func (inv *Invocation) ReserveBucket(w *stat.Window, receipt stat.Receipt, n, limit int64) {
	r := inv.nextReservation()
	r.Units, r.Token, r.Undo, r.UntilExit, r.kind, r.window = n, int64(receipt), limit, false, inWindow, w
}

// ReserveCost is like ReserveBucket, but for units of a kind, which are settled with the call's other
// units of that kind. bound may be nil.
func (inv *Invocation) ReserveCost(w *stat.Window, receipt stat.Receipt, n, limit int64, unit string, bound Overdraft) {
	inv.ReserveBucket(w, receipt, n, limit)
	if bound != nil {
		inv.held[len(inv.held)-1].Holder = bound
	}
	inv.SettleBy(unit)
}

// ReserveSemaphore records units of a semaphore.
func (inv *Invocation) ReserveSemaphore(g *meter.Semaphore) {
	r := inv.nextReservation()
	r.Units, r.Token, r.Undo, r.UntilExit, r.kind, r.semaphore = inv.units, 0, 0, true, inFlight, g
}

// ReserveSemaphoreFor is like ReserveSemaphore, but for n units of a kind; see ReserveCost.
func (inv *Invocation) ReserveSemaphoreFor(g *meter.Semaphore, n int64, unit string) {
	inv.ReserveSemaphore(g)
	inv.held[len(inv.held)-1].Units = n
	inv.SettleBy(unit)
}

// HeldBucket returns the call's reservation in a window, or nil. A call holds at most one per
// window.
func (inv *Invocation) HeldBucket(w *stat.Window) *Reservation {
	for i := range inv.held {
		if inv.held[i].window == w {
			return &inv.held[i]
		}
	}
	return nil
}

// FindBucket is like HeldBucket, but faster for a rule that looks for many windows, one after
// another.
func (inv *Invocation) FindBucket(w *stat.Window) *Reservation {
	if len(inv.held) > fewHeld {
		return inv.heldAt(w)
	}
	return inv.HeldBucket(w)
}

// Follow records the call's units in windows that took over from those it took from. Until then
// [Invocation.HeldBucket] doesn't find them.
func (inv *Invocation) Follow() {
	for i := 0; i < len(inv.held); i++ { // the result may itself have been handed over
		r := &inv.held[i]
		if r.kind != inWindow || !r.window.HandedOver(r.Receipt()) {
			continue
		}
		here, elsewhere := r.window.Follow(r.Receipt())
		r.Token = int64(here)
		from, first := *r, cmp.Or(r.follows, int32(i+1))
		for _, held := range elsewhere {
			inv.ReserveBucket(held.Window, held.Receipt, from.Units, from.Undo)
			last := &inv.held[len(inv.held)-1]
			last.Holder, last.follows, last.cost, last.more = from.Holder, first, from.cost, from.more
		}
	}
}

// Rebook moves the call's units in a window to a later bucket, under the lowest limit of all rules
// under which the call took units there, and returns the wait for it. If there is no room it
// returns false, and the units stay.
func (inv *Invocation) Rebook(w *stat.Window, limit int64, maxWait time.Duration) (wait time.Duration, ok bool) {
	inv.Follow()
	r := inv.HeldBucket(w)
	limit = min(limit, r.Undo)
	wait, receipt, ok := w.Rebook(inv.now, r.Receipt(), r.Units, limit, maxWait)
	if ok {
		r.Token, r.Undo = int64(receipt), limit
	}
	return wait, ok
}

// MeterBucket counts a call that has just been admitted in a window of one of its nodes, unless the
// call already holds units there.
func (inv *Invocation) MeterBucket(w *stat.Window) {
	if inv.Follow(); inv.FindBucket(w) != nil {
		return
	}
	receipt := w.AddAt(inv.lane, inv.now, inv.Runs(), inv.units)
	if inv.Follow(); inv.FindBucket(w) != nil { // the window took over in the meantime
		w.Cancel(receipt, inv.units)
	}
}

// HoldsSemaphore reports whether the call holds units of a semaphore.
func (inv *Invocation) HoldsSemaphore(g *meter.Semaphore) bool { return inv.findSemaphore(g) != nil }

// findSemaphore returns the call's reservation of a semaphore, or nil.
func (inv *Invocation) findSemaphore(g *meter.Semaphore) *Reservation {
	if len(inv.held) > fewHeld {
		return inv.heldAt(g)
	}
	return inv.heldSemaphore(g)
}

// heldSemaphore is like findSemaphore, but for few reservations. It looks from the end, because
// permits are taken late.
func (inv *Invocation) heldSemaphore(g *meter.Semaphore) *Reservation {
	for i := len(inv.held) - 1; i >= 0; i-- {
		if inv.held[i].semaphore == g {
			return &inv.held[i]
		}
	}
	return nil
}

// MeterSemaphore makes the call hold units of the semaphore of a node on which it has just been
// counted, unless a rule has already taken them.
func (inv *Invocation) MeterSemaphore(g *meter.Semaphore) {
	r := inv.findSemaphore(g)
	if r != nil && !g.Settling() {
		return
	}
	inv.meterSemaphore(g, r)
}

func (inv *Invocation) meterSemaphore(g *meter.Semaphore, r *Reservation) {
	if r == nil {
		g.Acquire(inv.lane, inv.units)
		inv.ReserveSemaphore(g)
		r = &inv.held[len(inv.held)-1]
	}
	if g.Settling() {
		g.Confirm(inv.units)
		if _, ok := r.Holder.(shareHolder); ok {
			r.Token = 1
		} else {
			r.kind = confirmed
		}
	}
}

// releaseUnseen ends the call on semaphores that were made after it had entered. It comes before
// the completion is counted, so that a semaphore never shows less than the units in flight.
func (inv *Invocation) releaseUnseen() {
	for _, n := range inv.Counted() {
		semaphores := n.Meters().Semaphores()
		for i := range semaphores {
			if g := &semaphores[i]; g.All() && inv.findSemaphore(g.Semaphore) == nil {
				g.ReleaseUnseen(inv.units)
			}
		}
	}
}

// unsettled reports whether one of the nodes on which the call was counted has a semaphore with
// units of unseen calls: if not, releaseUnseen and settle do nothing. Such a semaphore began with
// them before it was visible, and one that has settled stays settled.
func (inv *Invocation) unsettled() bool {
	for _, n := range inv.Counted() {
		m := n.Meters()
		if m == nil { // as on most nodes
			continue
		}
		semaphores := m.Semaphores()
		for i := range semaphores {
			if semaphores[i].Settling() {
				return true
			}
		}
	}
	return false
}

// settle corrects the unseen units of semaphores, once the completion is counted. Until then this
// call prevented that, or a semaphore made as it exited counted it as still running; and a call
// that waits in the queue for that permit will not settle anything.
func (inv *Invocation) settle() {
	for _, n := range inv.Counted() {
		semaphores := n.Meters().Semaphores()
		for i := range semaphores {
			if g := semaphores[i].Semaphore; g.Settling() {
				n.Settle(g)
			}
		}
	}
}

// giveBack gives back everything, in reverse order.
func (inv *Invocation) giveBack() {
	if len(inv.held) > 0 {
		inv.unwind(true)
	}
}

// release gives back the units held until exit. If no call waits for them, nothing can panic.
func (inv *Invocation) release() {
	held := inv.held
	for i := len(held) - 1; i >= 0; i-- {
		r := &held[i]
		if r.UntilExit && (r.kind != inFlight ||
			!r.semaphore.TryRelease(r.Units) && !r.semaphore.TryReleaseOn(inv.lane, r.Units)) {
			inv.held = held[:i+1]
			inv.unwind(false)
			return
		}
		r.empty()
	}
	inv.held, inv.index = held[:0], nil
}

// empty keeps the storage of held for the next call.
func (inv *Invocation) empty(held []Reservation) {
	for i := range held {
		held[i].empty()
	}
	inv.held, inv.index = held[:0], nil
}

// empty clears the pointers: a pooled invocation must not keep windows alive. That costs less than
// clearing everything.
func (r *Reservation) empty() {
	r.Holder, r.window, r.semaphore, r.follows, r.fleeting, r.cost, r.more = nil, nil, nil, 0, false, 0, false
}

// unwind gives back held units, including units that a holder reserved as it took others back. A
// holder that panics keeps its grant; the others still get theirs back.
func (inv *Invocation) unwind(all bool) {
	held := inv.held
	for len(inv.held) > 0 {
		inv.unwindSome(all)
	}
	inv.empty(held[:cap(held)])
}

func (inv *Invocation) unwindSome(all bool) {
	defer func() {
		if r := recover(); r != nil {
			inv.engine.failed(r, inv.now, nil)
		}
	}()
	for i := len(inv.held) - 1; i >= 0; i-- {
		r := &inv.held[i]
		inv.held = inv.held[:i]
		if all || r.UntilExit {
			r.giveBack(inv)
		}
	}
}

// chargeAt moves the call's units to the bucket in which it will run, in every window where the
// limit allows it. Elsewhere they stay in the bucket of the decision, where they count toward the
// limit just as well.
func (inv *Invocation) chargeAt(at int64) {
	inv.Follow()
	for i := range inv.held {
		if r := &inv.held[i]; r.kind == inWindow {
			r.Token = int64(r.window.Move(r.Receipt(), at, r.Units, r.Undo))
		}
	}
}
