//go:build sim

package engines

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
)

// Calls arrive at a throttle and a queue, at once or later, and at some point the engine drains:
// afterwards no call waits. A waiting call is either admitted before that, or refused when the
// engine drains.
func TestSimDrain(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		clock := s.Clock()
		clock.Set(start)
		e, err := engine.NewEngine(engine.Config{Clock: clock, Chain: trial.Chain()})
		if err != nil {
			t.Fatal(err)
		}
		err = e.Update(func(b *engine.SnapshotBuilder) error {
			return errors.Join(
				flow.Compile(b, []flow.Rule{{Resource: "turns|both", Match: spec.MatchRegex, Threshold: 100, Behavior: flow.Throttle, MaxWait: time.Second}}),
				isolation.Compile(b, []isolation.Rule{{Resource: "queue|both", Match: spec.MatchRegex, Threshold: 1, MaxQueue: 10, MaxWait: time.Second}}))
		})
		if err != nil {
			t.Fatal(err)
		}
		drained := int64(-1)
		for range 3 + s.Rand.IntN(3) {
			name := []string{"turns", "queue", "both"}[s.Rand.IntN(3)]
			after := []time.Duration{0, 0, turn, 2 * turn}[s.Rand.IntN(4)]
			holds := time.Duration(s.Rand.Int64N(3)) * turn
			ctx := context.Background()
			if s.Rand.IntN(2) == 0 {
				ctx = newClient()
			}
			s.Go(func() {
				if after > 0 {
					_ = clock.Sleep(context.Background(), after)
				}
				came := clock.Now()
				entry, err := e.Enter(ctx, name, nil)
				switch now := clock.Now(); {
				case drained >= 0 && now > max(came, drained):
					s.Failf("a call that arrived at %v waits until %v, but the engine has been draining since %v", came-start, now-start, drained-start)
				case err != nil && !errors.Is(err, core.ErrDraining):
					s.Failf("a call is refused: %v", err)
				case err == nil:
					if holds > 0 {
						_ = clock.Sleep(context.Background(), holds)
					}
					entry.Exit()
				}
			})
		}
		drains := time.Duration(s.Rand.Int64N(4)) * turn
		s.Go(func() {
			if drains > 0 {
				_ = clock.Sleep(context.Background(), drains)
			}
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = e.Drain(ended)
			drained = clock.Now()
		})
		s.Check(func() {
			if n := e.Waiting(); n != 0 {
				s.Failf("%d calls still wait at the end", n)
			}
			if err := e.Drain(context.Background()); err != nil {
				s.Failf("calls still run at the end")
			}
		})
	})
}
