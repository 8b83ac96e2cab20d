//go:build sim

package hotspot

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// Callers of two values, in a table with room for one or four, are refused in three intervals, while the
// rule's limit changes. However they interleave, an interval counts once, a lockout begins once and is
// never extended, and a value that is locked out keeps its cell.
func TestSimLockouts(t *testing.T) {
	const second = int64(time.Second)
	schedules.Random(t, func(s *schedules.Schedule) {
		build := func(threshold float64, most int) *controller {
			return simulated(s, Rule{Threshold: threshold, MaxValues: most, Lockout: Lockout{After: 2, For: 10 * time.Second}})
		}
		most := 1 + 3*s.Rand.IntN(2)
		rule := build(0, most)
		start := 1000 * second
		var refused [2][3]bool
		for range 2 + s.Rand.IntN(3) {
			v, first := s.Rand.IntN(2), s.Rand.Int64N(2)
			s.Go(func() {
				for i := first; i < 3; i++ {
					if rule.ask(start+i*second, argument.Of(v), 5, false, nil) == nil {
						s.Failf("a call of 5 units passes")
					}
					refused[v][i] = true
				}
			})
		}
		if s.Rand.IntN(2) == 0 {
			old, next := rule, build(1, most)
			next.values = old.values
			s.Go(func() {
				next.values.follow(next, old, start)
				rule = next
			})
		}
		s.Check(func() {
			locked := int64(0)
			sh := &rule.values.shards[0]
			sh.cells.all(func(x *cell) {
				if x.extras == nil || x.extras.lockout.until == 0 {
					return
				}
				locked++
				begin := (x.extras.lockout.until - start - 10*second) / second
				v := int(x.value.Int())
				if begin < 1 || begin > 2 || !refused[v][begin] || !refused[v][begin-1] {
					s.Failf("value %d is locked out at %d, and was refused in %v", v, begin, refused[v])
				}
			})
			if n := rule.values.lockouts.Load(); n != locked {
				s.Failf("%d lockouts began, and %d values are locked out", n, locked)
			}
		})
	})
}
