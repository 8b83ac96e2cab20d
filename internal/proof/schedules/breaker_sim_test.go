//go:build sim

package schedules

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/sim"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/slots"
)

var errDown = errors.New("down")

// museum 78, 81: callers queue at a throttle in front of a breaker that is due, have a
// permit each, and some give up while they wait. Never do more run than there are
// probes, whoever is refused by whom; a probe that does not run is not lost, and when
// all are gone the next call is a probe or finds the breaker closed.
func TestSimBreakerBehindAQueue(t *testing.T) {
	flows := []flow.Rule{
		{ID: "spaced", Resource: "a", Threshold: 10, Behavior: flow.Throttle, MaxWait: 200 * time.Millisecond},
		{ID: "at once", Resource: "a", Threshold: 2, Metric: flow.Concurrency},
	}
	rule := breaker.Rule{ID: "b", Resource: "a", MinCalls: 1, Recovery: time.Second, ProbeTimeout: time.Hour}
	sim.Sample(t, func(s *sim.Schedule) {
		e := newEngine(s, slots.Default(), node.Caps{})
		var listeners breaker.Listeners
		state := breaker.Closed
		listeners.Add(func(c breaker.Change) {
			if !breaker.Legal(c.From, c.To) {
				s.Failf("a change from %v to %v", c.From, c.To)
			}
			state = c.To
		})
		update := func() {
			if err := e.Update(func(b *core.RulesetBuilder) error {
				return errors.Join(flow.Compile(b, flows), breaker.Compile(b, []breaker.Rule{rule}, &listeners))
			}); err != nil {
				s.Failf("loading rules: %v", err)
			}
		}
		update()
		if entry, ok := enter(e, "a"); ok {
			entry.Fail(errDown)
			entry.Exit()
		}
		s.Clock().Set(start + int64(2*time.Second))
		probes := 0
		for range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			bad := s.Rand.IntN(3) == 0
			s.Go(func() {
				entry, err := e.Enter(ctx, "a", nil)
				if err != nil {
					return
				}
				if state == breaker.HalfOpen {
					if probes++; probes > 1 {
						s.Failf("%d probes run", probes)
					}
					s.Clock().Now() // some work
					probes--
				}
				if bad {
					entry.Fail(errDown)
				}
				entry.Exit()
			})
			if s.Rand.IntN(3) == 0 {
				s.Named("canceller", func() { cancel() })
			} else {
				s.Check(func() { cancel() })
			}
		}
		if s.Rand.IntN(2) == 0 {
			s.Named("rules", update)
		}
		s.Check(func() {
			s.Clock().Set(start + int64(10*time.Second))
			entry, ok := enter(e, "a")
			if !ok {
				s.Failf("nobody is let in: %v", e.Rules().Family(core.KindBreaker).(*breaker.Table).Status())
			}
			entry.Exit()
			if state != breaker.Closed {
				s.Failf("%v after a call that went well", state)
			}
		})
	})
}
