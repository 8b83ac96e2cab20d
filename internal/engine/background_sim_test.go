//go:build sim

package engine

import (
	"testing"

	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// Functions begin and end while the engine is closed: no more than the bound run at once, none begins
// after the close, and its wait is over exactly when the last one has ended.
func TestSimBackground(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		var b background
		before := int64(MaxBackground - 2) // others that have been running
		for range before {
			if _, ok := b.begin(); !ok {
				s.Failf("no place")
			}
		}
		running, closed := 0, false
		over := func() bool {
			select {
			case <-b.done:
				return true
			default:
				return false
			}
		}
		for range 4 {
			s.Go(func() {
				for range 2 {
					was := closed
					if _, ok := b.begin(); ok {
						if running++; running > 2 || was {
							s.Failf("%d run, and closed is %v", running, was)
						}
						shared.Gosched()
						if closed && over() {
							s.Failf("Close has returned while a function runs")
						}
						running--
						b.end()
					}
				}
			})
		}
		s.Go(func() { b.shut(); closed = true })
		s.Check(func() {
			if over() {
				s.Failf("the wait is over while %d run", before)
			}
			for range before {
				b.end()
			}
			if !over() {
				s.Failf("Close waits for nothing")
			}
		})
	})
}
