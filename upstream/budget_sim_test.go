//go:build sim

package upstream

import (
	"testing"

	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// Calls and retries begin and end in any order. At the instant at which a retry is admitted, the
// retries in flight are within the budget of the calls in flight; a call that isn't a retry is never
// refused; and nothing is held at the end.
//
// The counts of the test change in the same step as the word, as no other caller runs in between.
func TestSimRetryBudget(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		r := Retries{Share: []float64{0.01, 0.34, 0.5, 1}[s.Rand.IntN(4)], Least: 1 + s.Rand.IntN(2)}
		budgetCalls(s, r, 2+s.Rand.IntN(5), func(int) bool { return s.Rand.IntN(3) > 0 })
	})
}

// The same for each schedule of three retries and a call.
func TestSimRetryBudgetEverySchedule(t *testing.T) {
	schedules.Exhaustive(t, 1_000_000, func(s *schedules.Schedule) {
		budgetCalls(s, Retries{Share: 0.5, Least: 1}, 4, func(i int) bool { return i > 0 })
	})
}

func budgetCalls(s *schedules.Schedule, r Retries, callers int, isRetry func(int) bool) {
	var b budget
	var calls, retries int64
	for i := range callers {
		retry := isRetry(i)
		s.Go(func() {
			held, ok := b.take(r, retry)
			if !ok {
				if !retry {
					s.Failf("a first attempt was refused")
				}
				return
			}
			if calls++; retry {
				if retries++; retries > r.limit(calls) {
					s.Failf("%d retries among %d calls", retries, calls)
				}
			}
			b.fits(r) // others begin or end
			b.release(held)
			if calls--; retry {
				retries--
			}
		})
	}
	s.Check(func() {
		if calls, retries := b.inFlight(); calls != 0 || retries != 0 {
			s.Failf("%d calls and %d retries are left", calls, retries)
		}
	})
}

// Answers pause and extend while calls ask: a call that begins after an answer was reported is not
// admitted, the pause ends with the latest answer, and no pause is lost as others are added.
func TestSimPauses(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		p := newPauses(1)
		latest := map[string]int64{} // of the answers reported so far
		names := []string{"a", "b"}
		for range 2 + s.Rand.IntN(3) {
			name, until := names[s.Rand.IntN(2)], 100+s.Rand.Int64N(3)*100
			s.Go(func() {
				p.add(name, 0, span{until, until + until/10})
				latest[name] = max(latest[name], until)
			})
		}
		for range 2 {
			name, now := names[s.Rand.IntN(2)], s.Rand.Int64N(4)*99
			s.Go(func() {
				until := latest[name]
				if p.admit(name, now) && now < until {
					s.Failf("%s passes at %d, before %d", name, now, until)
				}
			})
		}
		s.Check(func() {
			for name, until := range latest {
				if x, _ := p.find(name, 0); x.until != until {
					s.Failf("%s pauses until %d, not %d", name, x.until, until)
				}
			}
		})
	})
}
