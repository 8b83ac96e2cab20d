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

// known bug 105, 107: calls enter a full or nearly full tree while idle nodes are evicted, and
// sometimes the clock leaps so that everything is idle. A limit set by a pattern holds for every
// name, a running call never disappears from the tree, and no count is lost.
func TestSimEviction(t *testing.T) {
	rule := flow.Rule{ID: "each", Resource: "[ab]", Match: spec.MatchRegex, Metric: flow.Concurrency, Threshold: 1}
	schedules.Sample(t, func(s *schedules.Schedule) {
		places := 1 + s.Rand.IntN(2)
		e := newEngine(s, trial.Chain(), node.Caps{Resources: places, Contexts: 2, Calls: 2, Origins: 1}, rule)
		running := make(map[string]int)
		for range 2 + s.Rand.IntN(2) {
			name := []string{"a", "a", "b"}[s.Rand.IntN(3)]
			ctx := engine.WithContext(context.Background(), []string{"", "web"}[s.Rand.IntN(2)])
			ctx = engine.WithOrigin(ctx, []string{"", "app"}[s.Rand.IntN(2)])
			s.Named("caller of "+name, func() {
				for range 2 {
					entry, err := e.Enter(ctx, name, nil)
					if err != nil {
						continue
					}
					if running[name]++; running[name] > 1 && places == 2 {
						s.Failf("%d calls of %s at the same time, the limit is 1", running[name], name)
					}
					// With room for one of two names, the call may be counted on the overflow.
					if r, ok := e.FindResource(name); places == 2 && (!ok || r.InFlight() == 0) {
						s.Failf("%s is in the tree but shows nothing in flight", name)
					}
					running[name]--
					entry.Exit()
				}
			})
		}
		leaps := s.Rand.IntN(2) == 0
		s.Named("evicter", func() {
			for range 2 {
				if leaps {
					s.Clock().Advance(2 * time.Minute)
				}
				e.Tree().Evict(s.Clock().Now())
			}
		})
	})
}

// Two rules apply to one resource, and calls want more than one of them has. Neither limit is ever
// exceeded, and a call refused by one rule leaves nothing behind at the other: as soon as no call
// is being decided, all of its units are available again.
func TestSimTwoRules(t *testing.T) { // known bug 18, 19
	rules := []flow.Rule{
		{ID: "many", Resource: "a", Threshold: 3, Buckets: 1},
		{ID: "few", Resource: "a", Threshold: 2, Interval: 2 * time.Second, Origin: "app"},
		{ID: "at once", Resource: "a", Threshold: 2, Metric: flow.Concurrency},
	}
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{}, rules...)
		app := engine.WithOrigin(context.Background(), "app")
		var admitted, admittedApp, inside int64
		for range 3 {
			units := 1 + s.Rand.Int64N(2)
			ctx := context.Background()
			if s.Rand.IntN(2) == 0 {
				ctx = app
			}
			s.Go(func() {
				entry, err := e.Enter(ctx, "a", []engine.Option{engine.Units(int(units))})
				if err != nil {
					return
				}
				admitted += units
				if ctx == app {
					admittedApp += units
				}
				if inside += units; admitted > 3 || admittedApp > 2 || inside > 2 {
					s.Failf("%d admitted of 3, %d of 2 from app, %d of 2 at once", admitted, admittedApp, inside)
				}
				inside -= units
				entry.Exit()
			})
		}
		s.Check(func() {
			left := int64(0)
			for range 4 {
				if entry, ok := enter(e, "a"); ok {
					left++
					entry.Exit()
				}
			}
			if admitted+left != 3 {
				s.Failf("%d admitted, and then %d more, of 3", admitted, left)
			}
		})
	})
}

// known bug 58, 61: callers acquire a permit each and then queue at a throttle, and contexts end at
// the instant of the grant. A call runs or is refused, never both; no permit and no turn is lost,
// and running calls keep their distance.
func TestSimCancelledWait(t *testing.T) {
	rules := []flow.Rule{
		{ID: "spaced", Resource: "a", Threshold: 10, Behavior: flow.Throttle, MaxWait: time.Second},
		{ID: "at once", Resource: "a", Threshold: 3, Metric: flow.Concurrency},
	}
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{}, rules...)
		var ran []int64
		refused := 0
		for range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			s.Go(func() {
				entry, err := e.Enter(ctx, "a", nil)
				if (err == nil) != (entry != engine.Entry{}) {
					s.Failf("an entry of %v with %v", entry, err)
				}
				if err != nil {
					refused++
					return
				}
				ran = append(ran, s.Clock().Now())
				entry.Exit()
			})
			if s.Rand.IntN(2) == 0 {
				wait := time.Duration(s.Rand.IntN(3)) * 100 * time.Millisecond
				s.Named("canceller", func() {
					_ = s.Clock().Sleep(context.Background(), wait)
					cancel()
				})
			} else {
				s.Check(func() { cancel() })
			}
		}
		s.Check(func() {
			if len(ran)+refused != 3 {
				s.Failf("%d ran and %d were refused, of 3", len(ran), refused)
			}
			for i := 1; i < len(ran); i++ {
				if gap := ran[i] - ran[i-1]; gap < int64(100*time.Millisecond) {
					s.Failf("two ran %v apart", time.Duration(gap))
				}
			}
		})
	})
}
