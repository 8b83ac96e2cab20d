//go:build sim

package engines

import (
	"errors"
	"testing"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/system"
)

// known bug 72: a rule is loaded in another shape while time advances and another family refuses
// calls that have taken the rule's units. The calls return them: to the old rule's window, to the
// new one's, or to both. When the old units have expired, exactly as many calls pass as the limit
// allows.
func TestSimReloadOfAShapeWhileCallsGiveBack(t *testing.T) {
	const limit = 2
	shapes := []flow.Rule{
		{Interval: time.Second, Buckets: 2, Window: flow.Ring},
		{Interval: time.Second, Buckets: 10, Window: flow.Ring},
		{Interval: 2 * time.Second, Buckets: 10},
	}
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{})
		inbound := s.Rand.IntN(2) == 0 // the rule is one of package system
		loaded := func(i int) {
			r := shapes[i]
			r.ID, r.Resource, r.Threshold = "r", "a", limit
			all := system.Rule{ID: "r", Metric: system.QPS, Threshold: limit, Interval: r.Interval, Buckets: r.Buckets, Strict: r.Window == flow.Strict}
			if err := e.Update(func(b *engine.SnapshotBuilder) error {
				err := isolation.Compile(b, []isolation.Rule{{ID: "i", Resource: "a", Threshold: 1}})
				if inbound {
					return errors.Join(err, system.Compile(b, []system.Rule{all}))
				}
				return errors.Join(err, flow.Compile(b, []flow.Rule{r}))
			}); err != nil {
				s.Failf("loading rules: %v", err)
			}
		}
		first := s.Rand.IntN(len(shapes))
		next := (first + 1 + s.Rand.IntN(len(shapes)-1)) % len(shapes)
		loaded(first)
		holds, ok := enter(e, "a", engine.Inbound())
		if !ok {
			s.Failf("the first call is refused")
		}
		width := int64(shapes[next].Interval) / int64(shapes[next].Buckets)
		s.Go(func() {
			s.Clock().Advance(time.Duration(width))
			if _, ok := enter(e, "a", engine.Inbound()); ok {
				s.Failf("two run side by side")
			}
		})
		s.Named("rules", func() { loaded(next) })
		s.Check(func() {
			holds.Exit()
			var passed []int64 // when
			for at := start + int64(shapes[next].Interval); at < start+int64(shapes[next].Interval)+3*width; at += width {
				s.Clock().Set(at)
				for {
					entry, ok := enter(e, "a", engine.Inbound())
					if !ok {
						break
					}
					entry.Exit()
					passed = append(passed, at)
				}
				within := 0
				for _, p := range passed {
					if p/width > at/width-int64(shapes[next].Buckets) {
						within++
					}
				}
				if within > limit {
					s.Failf("shape %d after %d, inbound %v: %d passed in the buckets up to %v, the limit is %d", next, first, inbound, within, time.Duration(at-start), limit)
					return
				}
			}
		})
	})
}
