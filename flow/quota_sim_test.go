//go:build sim

package flow

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// Up to 64 callers take units of a quota around a boundary, some with an older reading of the clock,
// and settle them in their period or after it, while the calendar changes. No more is used in a
// period than the limit and what was charged beyond it, though a period may seem to begin again, and
// in the end the account holds what the calls of the current period used.
func TestSimQuota(t *testing.T) {
	midnight := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC).UnixNano()
	schedules.Random(t, func(s *schedules.Schedule) {
		calendars := []*calendar.Calendar{
			calendar.Fields{Per: spec.PerDay, Timezone: "UTC", Starts: "00:00"}.Calendar(),
			calendar.Fields{Per: spec.PerDay, Timezone: "Asia/Tokyo", Starts: "09:00"}.Calendar(), // the same
			calendar.Fields{Per: spec.PerMonth, Timezone: "UTC", Starts: "1 00:00"}.Calendar(),
		}
		const limit = 20
		a := &account{calendar: calendars[0]}
		reserved, used := make(map[int64]int64), make(map[int64]int64) // by period
		for range 1 + s.Rand.IntN(s.Rand.IntN(63)+1) {
			now := midnight + int64(s.Rand.IntN(5)-2)
			n, uses := 1+s.Rand.Int64N(7), s.Rand.Int64N(9)
			settles := s.Rand.IntN(3) > 0
			s.Named("call", func() {
				period, ok := a.take(now, n, limit)
				if !ok {
					return
				}
				reserved[period] += n
				used[period] += n
				r := engine.Reservation{Holder: a, Units: n, Token: period, Undo: 1 << 40}
				if !settles {
					return
				}
				switch {
				case uses < n:
					a.Refund(&r, n-uses, now)
				case uses > n:
					a.Charge(&r, uses-n, now)
				}
				used[period] += uses - n
				reserved[period] -= max(0, n-uses)
			})
		}
		if s.Rand.IntN(2) == 0 {
			c := calendars[s.Rand.IntN(len(calendars))]
			s.Named("reload", func() { a.follow(c, nil, midnight) })
		}
		s.Check(func() {
			for period, units := range reserved {
				if units > limit {
					s.Failf("%d units of %d in the period from %d", units, limit, period)
				}
			}
			current, _ := a.take(midnight-10, 0, 1<<40)
			m, c := a.look()
			if got := m.Used(c, midnight-10); got != used[current] {
				s.Failf("the account holds %d, the calls used %d", got, used[current])
			}
		})
	})
}
