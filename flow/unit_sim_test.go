//go:build sim

package flow

import (
	"context"
	"testing"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// A call asks for more while others settle and end it: twice each, in any order. In the end the
// window holds what the call reserved, or what it used if it was settled in time, and the semaphore
// nothing.
func TestSimSettleMoreAndExit(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		clock := clocks.NewManual(trial.Start)
		e, err := engine.NewEngine(engine.Config{Clock: clock, Chain: trial.Chain()})
		if err != nil {
			panic(err)
		}
		rules := []Rule{
			{ID: "window", Resource: "chat", Unit: "tokens", Threshold: 1000},
			{ID: "memory", Resource: "chat", Unit: "tokens", Threshold: 1000, Metric: Concurrency},
		}
		if err := e.Update(func(b *engine.SnapshotBuilder) error { return Compile(b, rules) }); err != nil {
			panic(err)
		}
		const reserved, more = 100, 10
		call, err := e.Enter(context.Background(), "chat", []engine.Option{engine.Cost("tokens", reserved)})
		if err != nil {
			panic(err)
		}
		used := []int64{30, 105, 200}[s.Rand.IntN(3)]
		granted, settled := int64(0), false
		for range 2 {
			s.Named("more", func() {
				if call.More(context.Background(), "tokens", more) == nil {
					granted += more
				}
			})
			s.Named("settle", func() { call.Settle("tokens", used) })
			s.Named("exit", call.Exit)
		}
		s.Check(func() {
			r, _ := e.FindResource("chat")
			for _, u := range r.UnitStats() {
				settled = u.Total.Refunded+u.Total.Overdrawn > 0 || reserved+granted == used
				if settled && u.Total.Used() != used || !settled && u.Total.Used() != reserved+granted {
					s.Failf("used %d, granted %d, settled %v: %+v", used, granted, settled, u.Total)
				}
			}
			held := int64(0)
			for _, w := range r.Meters().Windows() {
				held += w.Sum(clock.Now())
			}
			want := reserved + granted
			if settled {
				want = used
			}
			if held != want {
				s.Failf("the window holds %d, want %d (settled: %v)", held, want, settled)
			}
			for _, g := range r.Meters().Semaphores() {
				if g.InUse() != 0 {
					s.Failf("the semaphore holds %d", g.InUse())
				}
			}
		})
	})
}
