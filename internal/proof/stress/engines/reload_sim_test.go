//go:build sim

package engines

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// known bug 72: rules are loaded in other shapes, and back, while calls are decided under the old
// rules or the new ones, on nodes, or even a resource, that may not have existed when the rules
// were compiled. Another rule applies to the same calls. It all happens in one instant, in which
// no more calls may pass than the limit allows.
func TestSimReloadOfAShape(t *testing.T) {
	kinds := []flow.Rule{
		{},
		{Origin: flow.OriginOther},
		{Origin: "app"},
		{Relation: flow.Chain, Ref: "web"},
	}
	shapes := []flow.Rule{
		{Interval: time.Second, Buckets: 2, Window: flow.Ring},
		{Interval: 2 * time.Second, Buckets: 4, Window: flow.Ring},
		{Interval: time.Second, Buckets: 10},
	}
	ctx := engine.WithOrigin(engine.WithContext(context.Background(), "web"), "app")
	schedules.Sample(t, func(s *schedules.Schedule) {
		kind := kinds[s.Rand.IntN(len(kinds))]
		late := s.Rand.IntN(2) == 0 // the resource is not known before it is called
		rule := func(i int) flow.Rule {
			r := kind
			r.ID, r.Resource, r.Threshold = "r", "a", 2
			if late {
				r.Match = spec.MatchRegex
			}
			r.Interval, r.Buckets, r.Window = shapes[i].Interval, shapes[i].Buckets, shapes[i].Window
			return r
		}
		// Another rule keeps one of the shapes throughout, or always has the same shape as this rule,
		// or always a different one; or there is no other rule.
		beside := s.Rand.IntN(6)
		set := func(i int) []flow.Rule {
			other := rule([]int{0, 1, 2, i, (i + 1) % 3, 0}[beside])
			other.ID, other.Threshold = "other", 5
			return []flow.Rule{rule(i), other}[:min(2, 6-beside)]
		}
		first := s.Rand.IntN(3)
		e := newEngine(s, trial.Chain(), node.Caps{}, set(first)...)
		admitted := 0
		loads := []int{s.Rand.IntN(3), s.Rand.IntN(3)}
		for range 3 {
			s.Go(func() {
				for range 2 {
					entry, err := e.Enter(ctx, "a", nil)
					if err != nil {
						continue
					}
					if admitted++; admitted > 2 {
						s.Failf("%d calls admitted, 2 allowed, by a rule for %v %q: shape %d, then %v; other rule: case %d", admitted, kind.Relation, kind.Origin, first, loads, beside)
					}
					entry.Exit()
				}
			})
		}
		s.Named("loader", func() {
			for _, i := range loads {
				load(s, e, set(i)...)
			}
		})
	})
}

// known bug 72: a caller's first call arrives as the rule for other callers changes its shape. Its
// node may be created before, during or after the handover of the units.
func TestSimReloadOfAShapeAsACallerComes(t *testing.T) {
	ctx := engine.WithOrigin(context.Background(), "app")
	schedules.Sample(t, func(s *schedules.Schedule) {
		rule := flow.Rule{ID: "r", Resource: "a", Origin: flow.OriginOther, Threshold: 1}
		e := newEngine(s, trial.Chain(), node.Caps{}, rule)
		admitted := 0
		for range 2 {
			s.Go(func() {
				entry, err := e.Enter(ctx, "a", nil)
				if err != nil {
					return
				}
				if admitted++; admitted > 1 {
					s.Failf("%d calls admitted, 1 allowed", admitted)
				}
				entry.Exit()
			})
		}
		rule.Interval, rule.Buckets = 2*time.Second, 4
		s.Named("loader", func() { load(s, e, rule) })
	})
}
