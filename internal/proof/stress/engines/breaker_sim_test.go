//go:build sim

package engines

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

var errDown = errors.New("down")

// known bug 78, 81, 84: calls arrive at once, or queue at a throttle, at two breakers that are due
// for a probe and have one permit each, and some give up while they wait. No more calls run than
// there are probes; a probe of one breaker that the other refuses is not lost, and when all calls
// have ended, successful calls close both breakers.
func TestSimBreakerBehindAQueue(t *testing.T) {
	all := []flow.Rule{
		{ID: "at once", Resource: "a", Threshold: 2, Metric: flow.Concurrency},
		{ID: "spaced", Resource: "a", Threshold: 10, Behavior: flow.Throttle, MaxWait: 200 * time.Millisecond},
	}
	rules := []breaker.Rule{
		{ID: "two", Resource: "a", MinCalls: 1, Recovery: time.Second, ProbeTimeout: time.Hour, Probes: 2},
		{ID: "one", Resource: "a", MinCalls: 1, Recovery: time.Second, ProbeTimeout: time.Hour},
	}
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{})
		flows := all[:1+s.Rand.IntN(2)] // with the throttle, or all at the same instant
		state := make(map[string]breaker.State)
		update := func() {
			if err := e.Update(func(b *engine.SnapshotBuilder) error {
				return errors.Join(flow.Compile(b, flows), breaker.Compile(b, rules))
			}); err != nil {
				s.Failf("loading rules: %v", err)
			}
		}
		update()
		e.Rules().Family(core.KindBreaker).(interface {
			Listen(func(breaker.Change)) func()
		}).Listen(func(c breaker.Change) {
			if !breaker.Legal(c.From, c.To) {
				s.Failf("a change from %v to %v", c.From, c.To)
			}
			state[c.Rule] = c.To
		})
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
				if state["one"] == breaker.HalfOpen {
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
			for range 2 {
				entry, ok := enter(e, "a")
				if !ok {
					s.Failf("no call is admitted: %v", e.Rules().Family(core.KindBreaker).(interface{ Status() []breaker.Status }).Status())
				}
				entry.Exit()
				s.Clock().Advance(time.Second)
			}
			if state["one"] != breaker.Closed || state["two"] != breaker.Closed {
				s.Failf("%v after two successful calls", state)
			}
		})
	})
}
