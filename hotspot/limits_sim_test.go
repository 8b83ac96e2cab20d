//go:build sim

package hotspot

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// Callers of two values, in a table with room for one or both, arrive while questions about them run,
// another rule follows, and the engine is closed. One question runs at a time for a value; no value
// gets more than the largest of its limits; and at the end no value waits for an answer, unless its
// question never ran.
func TestSimLimitsFromCode(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		now := int64(time.Hour)
		running := map[argument.Value]int{}
		most := int64(1)
		limits := func(_ context.Context, _ string, v argument.Value) (float64, time.Duration, error) {
			if running[v]++; running[v] > 1 {
				s.Failf("two questions about %v", v)
			}
			shared.Gosched()
			running[v]--
			switch n := s.Rand.IntN(5); n {
			case 0:
				return 0, 0, errors.New("no connection")
			case 1:
				return -1, time.Second, nil
			default:
				most = max(most, int64(n))
				return float64(n), []time.Duration{MinTTL, time.Hour}[s.Rand.IntN(2)], nil
			}
		}
		e, err := engine.NewEngine(engine.Config{Chain: engine.NewChain(), Clock: s.Clock(), Limits: limits, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			s.Failf("%v", err)
		}
		build := func(id string, asks bool) *controller {
			c := simulated(s, Rule{ID: id, Threshold: 1, LimitsFromCode: asks, MaxValues: 1 + s.Rand.IntN(2)})
			c.engine, c.asks, c.moves, c.mixed, c.varies = e, asks, asks, asks, asks
			return c
		}
		rule := build("first", true)
		var waiting []func(context.Context)
		closed, over := false, 0
		rule.values.questions.background = func(f func(context.Context)) bool {
			if closed || len(waiting) > 1 {
				return false
			}
			waiting = append(waiting, f)
			return true
		}
		callers := 2 + s.Rand.IntN(2)
		var passed [2]int64
		for range callers {
			v, n := s.Rand.IntN(2), 1+s.Rand.IntN(4)
			plain, late := s.Rand.IntN(2) == 0, s.Rand.Int64N(2)*int64(MinTTL)
			s.Go(func() {
				for range n {
					c, value := rule, argument.Of(v)
					if plain {
						if c.takePlain(new(engine.Invocation), 0, now+late, 1, &value) == nil {
							passed[v]++
						}
					} else if c.ask(now+late, value, 1, false, nil) == nil {
						if _, block := c.grant(now+late, value, 1, nil); block == nil {
							passed[v]++
						}
					}
				}
				over++
			})
		}
		for range 2 {
			s.Go(func() {
				for {
					s.Await(func() bool { return len(waiting) > 0 || over == callers })
					if len(waiting) == 0 {
						return
					}
					f := waiting[0]
					waiting = waiting[1:]
					f(context.Background())
				}
			})
		}
		if s.Rand.IntN(2) == 0 {
			old, next := rule, build([]string{"first", "second"}[s.Rand.IntN(2)], s.Rand.IntN(3) > 0)
			next.values = old.values
			s.Go(func() {
				next.values.follow(next, old, now)
				rule = next
			})
		}
		if s.Rand.IntN(3) == 0 {
			s.Go(func() { closed = true })
		}
		s.Check(func() {
			for v, n := range passed {
				if n > most {
					s.Failf("%d of %d pass of value %d", n, most, v)
				}
			}
			for i := range rule.values.shards {
				sh := &rule.values.shards[i]
				if len(sh.asking) > 0 {
					s.Failf("questions about %v never end", sh.asking)
				}
				sh.cells.all(func(x *cell) {
					if rule.asks && x.extras != nil && x.extras.due == asked {
						s.Failf("%v waits, but no question runs", x.value)
					}
					if x.plan.isAnswer() && x.plan.rule != rule {
						s.Failf("%v has an answer of another rule", x.value)
					}
				})
			}
		})
	})
}
