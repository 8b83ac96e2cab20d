//go:build sim

package engine

import (
	"testing"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// Notices come while others are delivered, the listener leaves, and the engine is closed. Each is
// delivered at most once, in its caller's order, and each that comes before the last delivery is
// delivered if somebody listens.
func TestSimNotices(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		e, err := NewEngine(Config{Chain: NewChain(), Clock: s.Clock()})
		if err != nil {
			s.Failf("%v", err)
		}
		seen := map[int64]int{}
		var last [4]int64
		f := func(n core.Notice) {
			seen[n.Used]++
			if caller := n.Used / 10; n.Used < last[caller] {
				s.Failf("notice %d after %d", n.Used, last[caller])
			} else {
				last[caller] = n.Used
			}
		}
		remove := e.OnNotice(f)
		const callers, each = 3, 3
		for caller := range int64(callers) {
			s.Go(func() {
				for i := range int64(each) {
					e.Notice(core.Notice{Used: caller*10 + i})
				}
			})
		}
		leaves := s.Rand.IntN(4) == 0
		s.Go(func() { e.notices.deliver(0); e.notices.deliver(0) })
		if leaves {
			s.Go(remove)
		}
		s.Check(func() {
			e.notices.close()
			e.notices.close()
			e.Notice(core.Notice{Used: 99})
			if len(seen) != callers*each && !leaves {
				s.Failf("%d notices are delivered, not %d", len(seen), callers*each)
			}
			for n, times := range seen {
				if times != 1 || n == 99 {
					s.Failf("notice %d is delivered %d times", n, times)
				}
			}
		})
	})
}
