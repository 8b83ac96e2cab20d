//go:build sim

package engine

import (
	"testing"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// Calls are rejected while earlier rejections are delivered, and at the end the engine is closed:
// every rejection is delivered once, by itself or in the number of rejections that didn't fit.
func TestSimRefusalsAreTold(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		e, err := NewEngine(Config{Chain: NewChain()})
		if err != nil {
			s.Failf("%v", err)
		}
		r := e.PinResource("orders")
		b := NewCounted(core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: "none"}, nil, nil, nil)
		var calls shared.Int64
		f := func(r core.Refusal) { calls.Add(r.Count) }
		e.feed.listeners = []*func(core.Refusal){&f} // without a timer
		e.keepers.Add(listener)
		const lanes, each = 3, 2
		for lane := range uint32(lanes) {
			s.Go(func() {
				for range each {
					inv := Invocation{engine: e, lane: lane % 2}
					inv.resource = r
					inv.NoteRefusal(b)
				}
			})
		}
		s.Go(func() { e.feed.deliver(1) })
		s.Check(func() {
			e.feed.close()
			e.feed.close()
			if n := calls.Load(); n != lanes*each {
				s.Failf("%d refusals were delivered, should be %d", n, lanes*each)
			}
			if n := e.keepers.Load(); n != 0 {
				s.Failf("somebody still listens: %x", n)
			}
		})
	})
}
