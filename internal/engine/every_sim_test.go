//go:build sim

package engine

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// bell is a clock that stands still, and whose alarms ring when the test says so.
type bell struct {
	*clocks.Manual
	rings []func()
}

func (b *bell) Alarm(_ time.Duration, ring func()) (stop func()) {
	i := len(b.rings)
	b.rings = append(b.rings, ring)
	return func() { b.rings[i] = nil }
}

// Timers fire while one goroutine stops the task and another closes the engine. Two runs never
// overlap, and none begins after Close has returned.
func TestSimEvery(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		clock := &bell{Manual: clocks.NewManual(time.Unix(1, 0))}
		e := &Engine{config: Config{Clock: clock}, clock: clock}
		e.rules.Store(new(Snapshot))
		running, closed := 0, false
		run := func(int64) {
			if closed {
				s.Failf("it runs after Close has returned")
			}
			if running++; running > 1 {
				s.Failf("it runs twice at once")
			}
			e.failures.Load() // a point where others may run
			running--
		}
		stop := e.Every(time.Second, run)
		for range 2 {
			s.Go(func() {
				for range 2 { // a timer that has fired can no longer be stopped
					if n := len(clock.rings); n > 0 && clock.rings[n-1] != nil {
						ring := clock.rings[n-1]
						clock.rings[n-1] = nil
						e.failures.Load()
						ring()
					}
				}
			})
		}
		if s.Rand.IntN(2) == 0 {
			s.Go(stop)
		}
		s.Go(func() {
			e.endRepeats()
			closed = true
			e.Every(time.Second, run)
		})
		s.Check(func() {
			for _, ring := range clock.rings {
				if ring != nil {
					s.Failf("a timer is left")
				}
			}
		})
	})
}
