//go:build sim

package engines

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// A rule looks at another resource, and is loaded in another shape during calls of that resource.
// At the end its window has counted each of them; none was lost between the old window and the new.
func TestSimReloadOfALook(t *testing.T) {
	schedules.Sample(t, func(s *schedules.Schedule) {
		look := func(buckets int) flow.Rule {
			return flow.Rule{ID: "r", Resource: "b", Threshold: 10, Buckets: buckets, Interval: time.Second, Relation: flow.Associated, Ref: "a"}
		}
		e := newEngine(s, trial.Chain(), node.Caps{}, look(2))
		calls := 2 + s.Rand.IntN(2)
		for range calls {
			s.Go(func() {
				entry, _ := enter(e, "a")
				entry.Exit()
			})
		}
		s.Named("loader", func() { load(s, e, look(5)) })
		s.Check(func() {
			r, _ := e.FindResource("a")
			for _, w := range r.Meters().Windows() {
				if n := w.Sum(s.Clock().Now()); n < int64(calls) {
					s.Failf("%d of %d calls in the window", n, calls)
				}
			}
		})
	})
}
