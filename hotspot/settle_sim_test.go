//go:build sim

package hotspot_test

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// A call asks for more while others settle and end it, twice each, in any order, and calls of another
// value come and go, for whose cells there may be no room. In the end nothing is in flight. The value
// has no more room, or an earlier turn, than if it had used just what the call used, or what it
// reserved if it was not settled in time; and if each value has a cell, it has no less.
func TestSimSettleMoreAndExitOfAValue(t *testing.T) {
	const reserved, more, limit = 100, 10, 1000
	schedules.Random(t, func(s *schedules.Schedule) {
		rule := []hotspot.Rule{
			{}, {Behavior: hotspot.TokenBucket, Burst: limit - 1}, {Behavior: hotspot.Throttle, MaxWait: time.Hour}, {Metric: hotspot.Concurrency},
		}[s.Rand.IntN(4)]
		rule.ID, rule.Resource, rule.Param, rule.Unit, rule.Threshold = "r", "chat", "user", "tokens", limit
		roomy := s.Rand.IntN(2) == 0
		if !roomy {
			rule.MaxValues = 1
		}
		clock := clocks.NewManual(trial.Start)
		clock.SetSleep(clocks.SleepRecord)
		e, err := engine.NewEngine(engine.Config{Clock: clock, Chain: trial.Chain()})
		if err != nil {
			panic(err)
		}
		if err := e.Update(func(b *engine.SnapshotBuilder) error { return hotspot.Compile(b, []hotspot.Rule{rule}) }); err != nil {
			panic(err)
		}
		enter := func(user string, n int64) (engine.Entry, error) {
			return e.Enter(context.Background(), "chat", []engine.Option{engine.Param("user", user), engine.Cost("tokens", n)})
		}
		if s.Rand.IntN(2) == 0 {
			first, _ := enter("b", 1)
			first.Settle("tokens", 0)
			first.Exit()
		}
		call, err := enter("a", reserved)
		if err != nil {
			panic(err)
		}
		used := []int64{30, 105, 200}[s.Rand.IntN(3)]
		granted, lost := int64(0), false
		for range 2 {
			s.Named("more", func() {
				if call.More(context.Background(), "tokens", more) == nil {
					granted += more
				} else {
					lost = true // its turn may be
				}
			})
			s.Named("settle", func() { call.Settle("tokens", used) })
			s.Named("exit", call.Exit)
		}
		s.Named("other", func() {
			if other, err := enter("b", 1); err == nil {
				other.Settle("tokens", 0)
				other.Exit()
			}
		})
		s.Check(func() {
			takes := reserved + granted
			r, _ := e.FindResource("chat")
			if total := r.UnitStats()[0].Total; total.Refunded+total.Overdrawn > 2 { // up to 2 are of the other calls
				takes = used
			}
			for _, f := range e.Rules().RuleStats() {
				if f.Details.(hotspot.Stats).InFlight != 0 {
					s.Failf("%d in flight", f.Details.(hotspot.Stats).InFlight)
				}
			}
			room := limit - takes
			switch {
			case rule.Metric == hotspot.Concurrency:
				room = limit
			case rule.Behavior == hotspot.Throttle:
				next := time.Duration(max(takes, reserved+granted)-reserved+1) * time.Millisecond
				_, _ = enter("a", 1)
				all := clock.Slept()
				if wait := all[len(all)-1]; wait < next || wait > next && roomy && !lost {
					s.Failf("the next turn is in %v, want %v", wait, next)
				}
				return
			}
			if _, err := enter("a", room+1); err == nil {
				s.Failf("room for more than %d", room)
			}
			if _, err := enter("a", room); err != nil && roomy {
				s.Failf("no room for %d: %v", room, core.KindOf(err))
			}
		})
	})
}
