//go:build sim

package engine

import (
	"testing"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// Calls are rejected while the last caller of KeepRefusals releases. Afterwards none of them is
// kept: the next caller finds no earlier rejections, and the memory is free. known bug 170
func TestSimRefusalsAreLetGo(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		e, err := NewEngine(Config{Chain: NewChain()})
		if err != nil {
			s.Failf("%v", err)
		}
		r := e.PinResource("orders")
		release := e.KeepRefusals()
		b := NewCounted(core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: "none"}, nil, nil, nil)
		for lane := range uint32(2) {
			s.Go(func() {
				for range 2 {
					inv := Invocation{engine: e, lane: lane}
					inv.resource = r
					inv.NoteRefusal(b)
				}
			})
		}
		s.Go(release)
		s.Go(func() {
			for _, kept := range e.Refusals("orders") {
				if kept.Count < 1 || kept.Count > 4 {
					s.Failf("%d rejections of 4 are kept", kept.Count)
				}
			}
		})
		s.Check(func() {
			if r.recent.Load() != nil {
				s.Failf("refusals are kept for nobody")
			}
		})
	})
}
