package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/stat"
)

type taker struct{ _ byte }

func (*taker) GiveBack(*Reservation) {}

// A reservation is filled in where one of an earlier call was: whatever that was, nothing
// of it is left.
func TestReservationHasNothingOfTheOneBefore(t *testing.T) {
	w, err := stat.NewWindow(stat.Shape{Interval: time.Second, Buckets: 1})
	require.NoError(t, err)
	g, h := new(stat.Gauge), new(taker)
	kinds := map[string]struct {
		reserve func(*Invocation)
		want    Reservation
	}{
		"any":    {func(inv *Invocation) { inv.Reserve(Reservation{h, 7, 8, 9, true, nil, nil}) }, Reservation{h, 7, 8, 9, true, nil, nil}},
		"units":  {func(inv *Invocation) { inv.ReserveUnits(h, 3, 4) }, Reservation{Holder: h, Units: 3, Token: 4}},
		"bucket": {func(inv *Invocation) { inv.ReserveBucket(w, 5, 6) }, Reservation{Units: 2, Token: 5, Undo: 6, window: w}},
		"gauge":  {func(inv *Invocation) { inv.ReserveGauge(g) }, Reservation{Units: 2, UntilExit: true, gauge: g}},
	}
	for before, first := range kinds {
		for after, second := range kinds {
			inv := &Invocation{call: call{units: 2}}
			for range 2 {
				first.reserve(inv)
				inv.held[0].Token, inv.held[0].Undo = confirmed, 11 // as may come to be
				inv.empty(inv.held)
			}
			second.reserve(inv)
			assert.Equal(t, second.want, inv.held[0], "%s after %s", after, before)
		}
	}
}
