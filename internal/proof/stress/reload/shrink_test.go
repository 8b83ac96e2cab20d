package reload

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Calls of every kind are in flight while the rules that admitted them shrink, change or are
// removed, and end in any order. The books that every Guard here keeps must balance, and a rule
// that is restored counts the calls that are still running. known bug 64
func TestRulesShrinkUnderCallsInFlight(t *testing.T) {
	random := random(t)
	for _, k := range kinds {
		for _, c := range changes {
			t.Run(k.name+"/"+c.name, func(t *testing.T) {
				k.rule.Resource = "orders"
				g := newGuard(t, c.set(k.rule, 0)...)
				ctx := from(t.Context(), "web", "app")
				var open []api.Admitted
				for i := range 60 {
					switch random.IntN(4) {
					case 0:
						g.load(t, c.set(k.rule, i)...)
					case 1:
						g.load(t, []flow.Rule{other}[:random.IntN(2)]...)
					case 2:
						if n := len(open); n > 0 {
							at := random.IntN(n)
							open[at].Exit()
							open[at] = open[n-1]
							open = open[:n-1]
						}
					}
					e, err := g.Entry(ctx, "orders", api.Units(1+random.IntN(2)))
					if err == nil {
						open = append(open, e)
					}
				}
				g.load(t, flow.Rule{Resource: "orders", Metric: flow.Concurrency, Threshold: 1000})
				units := int64(0)
				n, ok := g.Engine().FindResource("orders")
				require.True(t, ok)
				for _, semaphore := range n.Meters().Semaphores() {
					units += semaphore.InUse()
				}
				assert.Equal(t, n.UnitsInFlight(), units)
				for _, e := range open {
					e.Exit()
				}
			})
		}
	}
}

// Calls wait in a queue, or for borrowed units, while the rule that made them wait shrinks or is
// removed. Each runs at the promised time or gives up, and nothing is left. known bug 64
func TestRulesShrinkUnderWaitingCalls(t *testing.T) {
	queue := flow.Rule{ID: "r", Resource: "orders", Threshold: 10, Behavior: flow.Throttle, MaxWait: 10 * time.Second}
	borrow := flow.Rule{ID: "r", Resource: "orders", Threshold: 5}
	for _, before := range []flow.Rule{queue, borrow} {
		for name, after := range map[string][]flow.Rule{
			"gone":      nil,
			"lower":     {{ID: "r", Resource: "orders", Threshold: 1, Behavior: before.Behavior}},
			"nothing":   {{ID: "r", Resource: "orders"}},
			"off":       {{ID: "r", Resource: "orders", Threshold: 10, Mode: spec.Off}},
			"shadow":    {{ID: "r", Resource: "orders", Threshold: 10, Mode: spec.Shadow, Behavior: before.Behavior}},
			"otherwise": {{ID: "r", Resource: "orders", Threshold: 3, Metric: flow.Concurrency}},
			"longer":    {{ID: "r", Resource: "orders", Threshold: 5, Interval: time.Minute}},
		} {
			t.Run(fmt.Sprint(before.Behavior, "/", name), func(t *testing.T) {
				clock := clocks.NewManual(start)
				g := newGuardOn(t, clock)
				require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{before}}))
				// Now the next call has to queue, or to borrow.
				for range map[flow.Behavior]int{flow.Throttle: 1, flow.Reject: 5}[before.Behavior] {
					e, err := g.Entry(t.Context(), "orders")
					require.NoError(t, err)
					e.Exit()
				}
				if before.Behavior == flow.Reject {
					clock.Advance(600 * ms)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var waiting sync.WaitGroup
				for i := range 4 {
					callers := t.Context()
					if i%2 == 1 {
						callers = ctx
					}
					waiting.Go(func() {
						if e, err := g.Entry(callers, "orders", api.Prioritized()); err == nil {
							e.Exit()
						}
					})
				}
				for g.Engine().Waiting() < 4 {
					runtime.Gosched()
				}
				require.NoError(t, g.LoadRules(rules.Set{Flow: after}))
				cancel()
				for g.Engine().Waiting() > 0 {
					clock.Advance(100 * ms)
					runtime.Gosched()
				}
				waiting.Wait()
			})
		}
	}
}
