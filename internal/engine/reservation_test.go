package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// taker is a holder; each is distinct.
type taker struct{ back func(*Reservation) }

func (h *taker) GiveBack(r *Reservation, _ int64) {
	if h.back != nil {
		h.back(r)
	}
}

// A reservation reuses the memory of an earlier call's, and keeps none of its fields.
func TestReservationHasNothingOfTheOneBefore(t *testing.T) {
	w, err := stat.NewWindow(stat.Shape{Interval: time.Second, Buckets: 1})
	require.NoError(t, err)
	g, h := new(meter.Semaphore), new(taker)
	kinds := map[string]struct {
		reserve func(*Invocation)
		want    Reservation
	}{
		"any": {func(inv *Invocation) {
			inv.Reserve(Reservation{Holder: h, Units: 7, Token: 8, Undo: 9, UntilExit: true})
		}, Reservation{Holder: h, Units: 7, Token: 8, Undo: 9, UntilExit: true}},
		"leased":    {func(inv *Invocation) { inv.ReserveLeased(h, 3, 4) }, Reservation{Holder: h, Units: 3, Token: 4, kind: byLease, fleeting: true}},
		"units":     {func(inv *Invocation) { inv.ReserveUnits(h, 3, 4) }, Reservation{Holder: h, Units: 3, Token: 4}},
		"bucket":    {func(inv *Invocation) { inv.ReserveBucket(w, 5, 2, 6) }, Reservation{Units: 2, Token: 5, Undo: 6, kind: inWindow, window: w}},
		"semaphore": {func(inv *Invocation) { inv.ReserveSemaphore(g) }, Reservation{Units: 2, UntilExit: true, kind: inFlight, semaphore: g}},
	}
	for before, first := range kinds {
		for after, second := range kinds {
			inv := &Invocation{call: call{units: 2}}
			for range 2 {
				first.reserve(inv)
				inv.held[0].Token, inv.held[0].Undo, inv.held[0].follows = 10, 11, 1 // as may happen
				inv.empty(inv.held)
			}
			second.reserve(inv)
			assert.Equal(t, second.want, inv.held[0], "%s after %s", after, before)
		}
	}
}

// A holder that reserves while it takes back breaks its contract, but harms no later call.
func TestReservedWhileGivingBack(t *testing.T) {
	g, back := new(meter.Semaphore), int64(0)
	inv := &Invocation{call: call{units: 1}, held: make([]Reservation, 0, 8)}
	inv.ReserveUnits(new(taker), 1, 0)
	inv.ReserveUnits(&taker{func(*Reservation) {
		inv.ReserveUnits(new(taker), 1, 0)
		inv.ReserveSemaphore(g)
	}}, 1, 0)
	inv.giveBack()

	next := &taker{func(r *Reservation) { back += r.Units }}
	for range 3 {
		inv.ReserveUnits(next, 5, 0)
	}
	inv.giveBack()
	assert.EqualValues(t, 15, back)
	assert.Zero(t, g.InUse())
}
