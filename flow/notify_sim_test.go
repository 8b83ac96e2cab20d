//go:build sim

package flow

import (
	"context"
	"log/slog"
	"testing"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// Callers enter at one instant while the rule is loaded with another limit for others. There is one
// notice of each share that use has reached.
func TestSimNotices(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		clock := clocks.NewManual(trial.Start)
		e, err := engine.NewEngine(engine.Config{Clock: clock, Chain: trial.Chain(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			panic(err)
		}
		load := func(id string) {
			rules := []Rule{{ID: id, Resource: "orders", Threshold: 4, Notify: []string{"50%", "100%"}}}
			if err := e.Update(func(b *engine.SnapshotBuilder) error { return Compile(b, rules) }); err != nil {
				panic(err)
			}
		}
		load("one")
		seen := map[int]int{}
		e.OnNotice(func(n core.Notice) { seen[n.Percent]++ })
		passed := int64(0)
		for range 3 {
			n := 1 + s.Rand.IntN(2)
			s.Go(func() {
				entry, err := e.Enter(context.Background(), "orders", []engine.Option{engine.Units(n)})
				if err == nil {
					passed += int64(n)
				}
				entry.Exit()
			})
		}
		if s.Rand.IntN(3) == 0 {
			s.Go(func() { load("two") })
		}
		s.Check(func() {
			if err := e.Close(); err != nil {
				panic(err)
			}
			for percent, reached := range map[int]bool{50: passed >= 2, 100: passed >= 4} {
				if n := seen[percent]; (n == 1) != reached || n > 1 {
					s.Failf("%d units pass, and there are %d notices of %d%%", passed, n, percent)
				}
			}
		})
	})
}
