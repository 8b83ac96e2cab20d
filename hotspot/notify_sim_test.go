//go:build sim

package hotspot

import (
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// Callers take units of two values and look for notices, while a rule follows that keeps them. Each
// value has one notice of each share that it has reached, and none of the others.
func TestSimNotices(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		e, err := engine.NewEngine(engine.Config{Chain: engine.NewChain(), Clock: s.Clock(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			s.Failf("%v", err)
		}
		build := func() *controller {
			c := simulated(s, Rule{Threshold: 4, Notify: []string{"50%", "100%"}})
			c.engine = e
			c.notifier = family.NewNotifier(e, c.record, core.KindHotspot, "r", "orders", c.rule.Notify, c.rule.Interval)
			return c
		}
		rule := build()
		now := int64(time.Hour)
		var passed [2]int64
		var notices [2][101]int
		for range 3 + s.Rand.IntN(3) {
			v, n := s.Rand.IntN(2), 1+s.Rand.Int64N(2)
			s.Go(func() {
				for range 2 {
					c := rule
					if _, block := c.grant(now, argument.Of(v), n, nil); block == nil {
						passed[v] += n
					}
					reached, _ := c.reached(now, argument.Of(v), nil)
					for _, percent := range reached {
						notices[v][percent]++
					}
				}
			})
		}
		if s.Rand.IntN(2) == 0 {
			old, next := rule, build()
			next.values = old.values
			s.Go(func() {
				next.values.follow(next, old, now)
				rule = next
			})
		}
		s.Check(func() {
			for v, n := range passed {
				want := map[int]int{50: 0, 100: 0}
				if n >= 2 {
					want[50] = 1
				}
				if n >= 4 {
					want[100] = 1
				}
				for percent, w := range want {
					if got := notices[v][percent]; got != w {
						s.Failf("%d units of %d pass, and %d notices of %d%%", n, v, got, percent)
					}
				}
			}
		})
	})
}
