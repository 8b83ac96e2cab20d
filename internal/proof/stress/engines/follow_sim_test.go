//go:build sim

package engines

import (
	"context"
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

// quitter is a context that ends on demand.
type quitter struct {
	context.Context
	ended bool
}

func (q *quitter) Err() error {
	if q.ended {
		return context.Canceled
	}
	return nil
}

// known bug 123: calls take units from a rule's window and queue at another rule, give up, are
// refused or run, while the first rule changes its shape, once or twice, and a third one may keep
// the old window in use. At the end each window counts each call that ran once, and nothing else.
func TestSimWhatWaitsFollowsItsWindow(t *testing.T) {
	shapes := []flow.Rule{
		{Interval: time.Second, Buckets: 2, Window: flow.Ring},
		{Interval: time.Second, Buckets: 10, Window: flow.Ring},
		{Interval: 2 * time.Second, Buckets: 10},
	}
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{})
		inbound, stays := s.Rand.IntN(2) == 0, s.Rand.IntN(2) == 0
		loaded := func(i int) {
			r, beside := shapes[i], shapes[0]
			r.ID, r.Resource, r.Threshold = "r", "a", 100
			beside.ID, beside.Resource, beside.Threshold = "stays", "a", 200
			if err := e.Update(func(b *engine.SnapshotBuilder) error {
				err := isolation.Compile(b, []isolation.Rule{{ID: "line", Resource: "a", Threshold: 1, MaxQueue: 1, MaxWait: time.Millisecond}})
				flows := []flow.Rule{r, beside}
				if !stays {
					flows = flows[:1]
				}
				if inbound {
					gate := system.Rule{ID: "gate", Metric: system.QPS, Threshold: 100, Interval: r.Interval, Buckets: r.Buckets, Strict: r.Window == flow.Strict}
					err = errors.Join(err, system.Compile(b, []system.Rule{gate}))
				}
				return errors.Join(err, flow.Compile(b, flows))
			}); err != nil {
				s.Failf("loading rules: %v", err)
			}
		}
		first := s.Rand.IntN(len(shapes))
		loaded(first)
		entry, _ := enter(e, "a", engine.Inbound())
		entry.Exit()
		ran := int64(1)
		quits := &quitter{Context: context.Background()}
		for caller := range 2 + s.Rand.IntN(2) {
			ctx := context.Background()
			if caller == 0 {
				ctx = quits
			}
			s.Go(func() {
				entry, err := e.Enter(ctx, "a", []engine.Option{engine.Inbound(), engine.Units(caller + 1)})
				if err != nil {
					return
				}
				ran += int64(caller + 1)
				s.Clock().Now() // some work
				entry.Exit()
			})
		}
		s.Named("quitter", func() {
			s.Clock().Now()
			quits.ended = true
		})
		loads := []int{(first + 1 + s.Rand.IntN(2)) % 3, s.Rand.IntN(3)}[:1+s.Rand.IntN(2)]
		s.Named("loader", func() {
			for _, i := range loads {
				loaded(i)
			}
		})
		s.Check(func() {
			now := s.Clock().Now()
			r, _ := e.FindResource("a")
			for _, n := range []*node.StatisticNode{&r.StatisticNode, &e.Tree().Inbound().StatisticNode} {
				for _, w := range n.Meters().Windows() {
					if sum := w.Sum(now); sum != ran || w.Waiting(now) != 0 {
						s.Failf("shapes %d, %v, inbound %v, one stays %v: %v counts %d units, and %d ran", first, loads, inbound, stays, w.Meter, sum, ran)
					}
				}
			}
		})
	})
}
