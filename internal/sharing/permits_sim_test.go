//go:build sim

package sharing

import (
	"testing"

	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// known bug 192: calls take permits and release them, on lanes or not, while the member gives some
// up and gets more. Calls never hold more than the store counts for the member.
func TestSimPermits(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		lending.Always = s.Rand.IntN(3) > 0
		defer func() { lending.Always = false }()
		var p permits
		var mu shared.Mutex
		running, counted := int64(0), 1+s.Rand.Int64N(4)
		p.good.Store(counted)
		p.expires.Store(1)
		for range 2 + s.Rand.IntN(2) {
			lane, n, turns := uint32(s.Rand.IntN(2)), 1+s.Rand.Int64N(2), 1+s.Rand.IntN(3)
			s.Go(func() {
				for range turns {
					if !p.take(lane, 0, n) {
						continue
					}
					if running += n; running > counted {
						s.Failf("%d run, and the store counts %d", running, counted)
					}
					running -= n
					p.inUse.Release(lane, n)
				}
			})
		}
		rounds, more := 1+s.Rand.IntN(2), s.Rand.Int64N(3)
		s.Go(func() {
			for range rounds {
				mu.Lock()
				used := p.giveUp()
				counted = max(used, p.good.Load()) // reported to the store
				if running > counted {
					s.Failf("%d run, and the store counts %d", running, counted)
				}
				mu.Unlock()
				mu.Lock()
				counted += more
				p.good.Store(counted)
				mu.Unlock()
			}
		})
		s.Check(func() {
			if n := p.inUse.InUse(); n != 0 {
				s.Failf("%d are in use in the end", n)
			}
		})
	})
}
