package reload

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/proof/figure"
	"github.com/penstock-go/penstock/rules"
)

// Eight callers at one instant while rules are loaded as fast as they can be: never
// more than the limit, and all of it. With the race detector this is the storm of
// loads against calls.
// known bug 66, 69, 72
func TestLoadsUnderEightCallers(t *testing.T) {
	const callers, calls = 8, 12
	rounds := figure.Size(1, 2, 40, 200)
	var extra atomic.Int64
	n := 0
	for _, k := range kinds {
		for _, c := range changes {
			if c.rests {
				continue // then calls pass without the rule as well
			}
			t.Run(k.name+"/"+c.name, func(t *testing.T) {
				k.rule.Resource = "orders"
				for range rounds {
					passed, loads := hammer(t, k, c, callers, calls)
					n += loads
					most := int64(k.most)
					if k.rule.Relation == flow.Associated {
						most += callers - 1 // it looks and takes nothing
					}
					if over := passed - most; over > 0 {
						extra.Add(over)
						assert.Zero(t, over, "over")
					}
				}
			})
		}
	}
	figure.Report(t, figure.Figure{Name: "over-admissions, loads under 8 callers", Value: float64(extra.Load()), N: int64(n)})
}

// hammer makes calls of one kind from several goroutines in one instant, while rules
// are loaded until the last caller is done. It returns how many calls passed and how
// often rules were loaded.
func hammer(t *testing.T, k kind, c change, callers, calls int) (passed int64, loads int) {
	g := newGuard(t, c.set(k.rule, 0)...)
	ctx := from(t.Context(), "web", "app")
	var running sync.WaitGroup
	var total atomic.Int64
	var done atomic.Bool
	begun := make(chan struct{})
	open := make([][]core.Entry, callers)
	for i := range callers {
		running.Go(func() {
			<-begun
			for range calls {
				if e, err := g.Entry(ctx, "orders"); err == nil {
					total.Add(1)
					if open[i] = append(open[i], e); !k.open {
						e.Exit()
					}
				}
			}
		})
	}
	var loader sync.WaitGroup
	loader.Go(func() {
		close(begun)
		for loads = 1; !done.Load(); loads++ {
			if err := g.LoadRules(rules.Set{Flow: c.set(k.rule, loads)}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	running.Wait()
	done.Store(true)
	loader.Wait()
	for _, entries := range open {
		for _, e := range entries {
			e.Exit()
		}
	}
	return total.Load(), loads
}
