//go:build sim

package flow

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/sim"
)

const ms = int64(time.Millisecond)

// museum 10, 11, 16: callers queue at one throttle at the same instant or with older
// readings of the clock, some give their slot back. Two that run are never closer
// than the later one's cost, nobody waits for longer than the maximum, and what they
// are told could have been told one after the other.
func TestSimThrottle(t *testing.T) {
	sim.Random(t, func(s *sim.Schedule) {
		q := newThrottle()
		var history sim.History[*int64]
		last := int64(longAgo)
		if s.Rand.IntN(2) == 0 {
			last = -3 * ms
			q.last.ns = last
		}
		maxWait := s.Rand.Int64N(25) * ms
		type turn struct{ at, cost int64 }
		var runs []turn
		for range 2 + s.Rand.IntN(3) {
			now := []int64{0, 0, 0, ms, 5 * ms, 10 * ms, 40 * ms}[s.Rand.IntN(7)]
			c := []int64{1, 4 * ms, 10 * ms}[s.Rand.IntN(3)]
			leaves := s.Rand.IntN(3) == 0
			s.Go(func() {
				var got, before slot
				var ok bool
				history.Do(func() (func() string, func(*int64) bool) {
					var wait time.Duration
					wait, got, before, ok = q.take(now, slot{ns: c}, time.Duration(maxWait))
					if ok && (wait < 0 || int64(wait) > maxWait || got.ns != now+int64(wait)) {
						s.Failf("a wait of %v, the maximum is %v", wait, time.Duration(maxWait))
					}
					return func() string { return fmt.Sprintf("take at %d, cost %d: wait %d %v", now, c, wait, ok) },
						func(last *int64) bool {
							at := max(now, *last+c)
							if at-now <= maxWait {
								*last = at
								return ok && got.ns == at
							}
							return !ok
						}
				})
				if !ok {
					return
				}
				if !leaves {
					runs = append(runs, turn{got.ns, c})
					return
				}
				history.Do(func() (func() string, func(*int64) bool) {
					q.GiveBack(&core.Reservation{Token: got.ns, Undo: before.ns})
					return func() string { return fmt.Sprintf("give %d back", got.ns) },
						func(last *int64) bool {
							if *last == got.ns {
								*last = before.ns
							}
							return true
						}
				})
			})
		}
		s.Check(func() {
			slices.SortStableFunc(runs, func(a, b turn) int { return int(a.at - b.at) })
			for i := 1; i < len(runs); i++ {
				if gap := runs[i].at - runs[i-1].at; gap < runs[i].cost {
					s.Failf("two run %d ns apart, the later one costs %d", gap, runs[i].cost)
				}
			}
			clone := func(n *int64) *int64 { c := *n; return &c }
			if !history.Linearizable(&last, clone) {
				s.Failf("no serial order gives these answers (began-ended):\n%v", &history)
			}
		})
	})
}

// museum 16: of four callers at one instant exactly one runs at once.
func TestSimThrottleEverySchedule(t *testing.T) {
	sim.Exhaustive(t, 1_000_000, func(s *sim.Schedule) {
		q := newThrottle()
		var waits []time.Duration
		for range 4 {
			s.Go(func() {
				if _, ok := q.fits(0, slot{ns: 10 * ms}, 20*time.Millisecond); ok {
					if wait, _, _, ok := q.take(0, slot{ns: 10 * ms}, 20*time.Millisecond); ok {
						waits = append(waits, wait)
					}
				}
			})
		}
		s.Check(func() {
			slices.Sort(waits)
			if want := []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond}; !slices.Equal(waits, want) {
				s.Failf("waits of %v, want %v", waits, want)
			}
		})
	})
}
