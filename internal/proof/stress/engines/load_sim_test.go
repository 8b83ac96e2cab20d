//go:build sim

package engines

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// known bug 72: rules are loaded, for a name or for an expression that must match the name, in
// various shapes, while the first calls to the name find their rules and idle resources are
// evicted. Even if state is prepared for a new set, rebuilt, handed over or matched late, no more
// calls pass than the limit allows, and each decision uses one set.
func TestSimLoads(t *testing.T) {
	shapes := []flow.Rule{
		{Interval: time.Second, Buckets: 2},
		{Interval: 2 * time.Second, Buckets: 4},
	}
	schedules.Sample(t, func(s *schedules.Schedule) {
		draw := func() []flow.Rule {
			r := shapes[s.Rand.IntN(2)]
			r.ID, r.Threshold, r.Resource = "r", 2, "a"
			switch s.Rand.IntN(4) {
			case 0:
				r.Match = spec.MatchRegex
			case 1:
				r.Resource, r.Match = "a|b", spec.MatchRegex
			}
			if s.Rand.IntN(2) == 0 {
				return []flow.Rule{r}
			}
			return []flow.Rule{r, {ID: "other", Resource: "[ab]", Match: spec.MatchRegex, Threshold: 5}}
		}
		e := newEngine(s, trial.Chain(), node.Caps{}, draw()...)
		loads := [][]flow.Rule{draw(), draw()}
		admitted := 0
		for range 2 {
			s.Go(func() {
				for range 2 {
					entry, err := e.Enter(context.Background(), "a", nil)
					if err != nil {
						continue
					}
					if admitted++; admitted > 2 {
						s.Failf("%d calls admitted, 2 allowed, loads %+v", admitted, loads)
					}
					entry.Exit()
				}
			})
		}
		s.Named("loader", func() {
			for _, rules := range loads {
				load(s, e, rules...)
			}
		})
		if s.Rand.IntN(2) == 0 {
			s.Named("sweep", func() { e.Tree().Evict(e.Now()) })
		}
	})
}
