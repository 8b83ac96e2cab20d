//go:build sim

package engines

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/system"
)

func loadSystem(s *schedules.Schedule, e *engine.Engine, rules ...system.Rule) {
	if err := e.Update(func(b *engine.SnapshotBuilder) error { return system.Compile(b, rules) }); err != nil {
		s.Failf("loading rules: %v", err)
	}
}

// known bug 1, 2, 72: inbound calls of two resources share the limits of the system rules while the
// rules are edited. No more calls pass than the QPS limit allows, even if the shape of its window
// changes; and no more run at once than the other limit allows.
func TestSimSystemRules(t *testing.T) {
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{})
		const most, atOnce = 3, 2
		rules := func(interval time.Duration) []system.Rule {
			return []system.Rule{
				{ID: "qps", Metric: system.QPS, Threshold: most, Interval: interval},
				{ID: "concurrency", Metric: system.Concurrency, Threshold: atOnce},
			}
		}
		if s.Rand.IntN(2) == 0 { // a rule that keeps the other shape throughout
			alone := rules
			rules = func(interval time.Duration) []system.Rule {
				return append(alone(interval), system.Rule{ID: "beside", Metric: system.QPS, Threshold: 2 * most, Interval: 2 * time.Second})
			}
		}
		loadSystem(s, e, rules(time.Second)...)
		passed, running := 0, 0
		for i := range 2 + s.Rand.IntN(2) {
			s.Go(func() {
				for k := range 2 {
					entry, ok := enter(e, []string{"a", "b"}[(i+k)%2], engine.Inbound())
					if !ok {
						continue
					}
					if passed++; passed > most {
						s.Failf("%d passed", passed)
					}
					if running++; running > atOnce {
						s.Failf("%d run side by side", running)
					}
					s.Clock().Now() // some work
					running--
					entry.Exit()
				}
			})
		}
		least := atOnce
		if s.Rand.IntN(2) == 0 {
			least = 1 // a call that takes during the handover of a window counts twice
			back := s.Rand.IntN(2) == 0
			s.Named("rules", func() {
				loadSystem(s, e, rules(2*time.Second)...)
				if back {
					loadSystem(s, e, rules(time.Second)...)
				}
			})
		}
		s.Check(func() {
			if passed < least {
				s.Failf("only %d passed", passed)
			}
		})
	})
}
