//go:build sim

package clocks

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

type simClock struct{ now shared.Int64 }

func (c *simClock) Now() int64                                 { return c.now.Load() }
func (c *simClock) Sleep(context.Context, time.Duration) error { return nil }

// A clock is set back and corrected while others read it, in any order. No reading is older than a
// reading that finished before, beyond the grain, and no time is gained. known bug 30
func TestSimSteady(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		c := new(simClock)
		c.now.Store(int64(time.Hour) * 1000)
		clock := NewSteady(c)
		begin := clock.Now()
		latest, passed := begin, int64(0)
		for range 3 {
			s.Go(func() {
				for range 2 {
					before := latest
					now := clock.Now()
					if now < before-readingGrain {
						s.Failf("%v earlier than a previous reading", time.Duration(before-now))
					}
					if now > begin+passed {
						s.Failf("%v more than the time that has passed", time.Duration(now-begin-passed))
					}
					latest = max(latest, now)
				}
			})
		}
		s.Go(func() {
			for range 1 + s.Rand.IntN(3) {
				d := []time.Duration{-time.Hour, time.Millisecond, time.Microsecond, 400 * time.Microsecond}[s.Rand.IntN(4)]
				passed += int64(max(d, 0))
				c.now.Add(int64(d))
			}
		})
	})
}
