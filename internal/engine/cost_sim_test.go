//go:build sim

package engine

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/stat"
)

// A call is charged while its window is handed over to a second one, and that to a third, which
// itself may have counted the call before. In the end each holds the debit exactly once, whatever
// the order, and so do windows that calls admitted meanwhile.
func TestSimChargeFollowsTheWindow(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		const units, debit = 3, 5
		now := int64(1_700_000_000_000_000_000)
		shapes := []stat.Shape{
			{Interval: time.Second, Buckets: 2}, {Interval: time.Second, Buckets: 10, Strict: true}, {Interval: 2 * time.Second, Buckets: 4},
		}
		var windows []*stat.Window
		for _, shape := range shapes {
			w, err := stat.NewWindow(shape)
			require.NoError(t, err)
			windows = append(windows, w)
		}
		inv := &Invocation{}
		hold := func(w *stat.Window) {
			inv.ReserveCost(w, w.AddAt(0, now, now, units), units, math.MaxInt64, "tokens", nil)
		}
		order := []int{0}
		switch s.Rand.IntN(3) { // the call took in the second window too, before that was replaced
		case 0:
			order = []int{0, 1}
		case 1:
			order = []int{1, 0}
		}
		for _, i := range order {
			hold(windows[i])
		}
		if s.Rand.IntN(3) == 0 {
			inv.Follow()
		}
		others := s.Rand.Int64N(3)
		handOver := func(from, to int) {
			windows[to].Reseed(windows[from], now, func() {})
		}
		third := s.Rand.IntN(2) == 0
		s.Named("reload", func() {
			handOver(0, 1)
			if third {
				handOver(1, 2)
			}
		})
		s.Named("settle", func() {
			for i := range inv.held {
				r := &inv.held[i]
				chargeWindow(r.window, r.Receipt(), now, debit, math.MaxInt64)
			}
		})
		s.Named("caller", func() { windows[0].TryAdd(0, now, others, math.MaxInt64) })
		s.Check(func() {
			last := windows[1]
			if third {
				last = windows[2]
			}
			if got := windows[0].Sum(now); got != units+debit+others {
				s.Failf("the first window holds %d", got)
			}
			got := last.Sum(now)
			if got != units+debit && got != units+debit+others { // the caller may have come later
				s.Failf("the last window holds %d, want %d or %d", got, units+debit, units+debit+others)
			}
		})
	})
}
