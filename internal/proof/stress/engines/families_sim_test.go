//go:build sim

package engines

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/system"
)

// known bug 1, 2, 20: a rule of each of five families checks calls, and some of the rules refuse.
// At first calls take units directly; after a refusal, they ask before they take. No limit is ever
// exceeded, and units of refused calls are returned, so that as many pass as the lowest limit
// allows.
func TestSimFamiliesAtOnce(t *testing.T) {
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{})
		inbound, ofValue, all, running := 1+s.Rand.IntN(4), 1+s.Rand.IntN(4), 1+s.Rand.IntN(4), 1+s.Rand.IntN(3)
		load := func(running int) {
			if err := e.Update(func(b *engine.SnapshotBuilder) error {
				return errors.Join(
					system.Compile(b, []system.Rule{{Metric: system.QPS, Threshold: float64(inbound)}}),
					hotspot.Compile(b, []hotspot.Rule{{Resource: "a", Param: "user", Threshold: float64(ofValue)}}),
					flow.Compile(b, []flow.Rule{{Resource: "a", Threshold: float64(all)}}),
					isolation.Compile(b, []isolation.Rule{{ID: "i", Resource: "a", Threshold: running}}),
					breaker.Compile(b, []breaker.Rule{{Resource: "a", Threshold: 0.5}}))
			}); err != nil {
				s.Failf("loading rules: %v", err)
			}
		}
		load(running)
		passed, inFlight, most := 0, 0, min(inbound, ofValue, all)
		highest := running
		for range 2 + s.Rand.IntN(2) {
			s.Go(func() {
				for range 2 {
					entry, err := e.Enter(context.Background(), "a", []engine.Option{engine.Inbound(), engine.Param("user", "ann")})
					if err != nil {
						continue
					}
					if passed++; passed > most {
						s.Failf("%d passed, the lowest limit is %d", passed, most)
					}
					if inFlight++; inFlight > highest {
						s.Failf("%d run side by side, the limit is %d", inFlight, highest)
					}
					s.Clock().Now() // some work
					inFlight--
					entry.Exit()
				}
			})
		}
		if s.Rand.IntN(2) == 0 {
			next := 1 + s.Rand.IntN(3)
			highest = max(running, next)
			s.Named("rules", func() { load(next) })
		}
		s.Check(func() {
			if passed == 0 {
				s.Failf("nobody passed")
			}
			// The remaining units are available to calls that arrive now, one after the other.
			for ; passed < most; passed++ {
				entry, err := e.Enter(context.Background(), "a", []engine.Option{engine.Inbound(), engine.Param("user", "ann")})
				if err != nil {
					s.Failf("after %d of %d: %v", passed, most, err)
					return
				}
				entry.Exit()
			}
			if _, err := e.Enter(context.Background(), "a", []engine.Option{engine.Inbound(), engine.Param("user", "ann")}); err == nil {
				s.Failf("more than %d passed", most)
			}
			s.Clock().Set(start + int64(time.Hour))
		})
	})
}
