package api_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// A concurrency rule that is loaded under traffic is seeded with what is in flight,
// read while calls come and go. What is too much there must not stay: when the
// traffic is over, the whole limit is free again.
func TestConcurrencyRuleLoadedUnderTraffic(t *testing.T) {
	const limit = 4
	for range 1 + hammerRounds()/500 {
		g := newGuard(t, api.Config{})
		var over atomic.Bool
		var callers, started sync.WaitGroup
		for range 8 {
			started.Add(1)
			callers.Go(func() {
				for i := 0; !over.Load(); i++ {
					e, err := g.Entry(t.Context(), "r")
					if i == 0 {
						started.Done()
					}
					if err == nil {
						e.Exit()
					}
				}
			})
		}
		started.Wait()
		require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{
			{Resource: "r", Threshold: limit, Metric: flow.Concurrency},
		}}))
		over.Store(true)
		callers.Wait()

		var open []core.Entry
		for range limit {
			e, err := g.Entry(t.Context(), "r")
			require.NoError(t, err)
			open = append(open, e)
		}
		_, err := g.Entry(t.Context(), "r")
		require.ErrorIs(t, err, core.ErrBlocked)
		for _, e := range open {
			e.Exit()
		}
		r, _ := g.Engine().FindResource("r")
		assert.Zero(t, r.Semaphore(nil).InUse())
	}
}

// Calls in flight when the rule comes count, and leave when they end.
func TestConcurrencyRuleSeesCallsInFlight(t *testing.T) {
	g := newGuard(t, api.Config{})
	early, err := g.Entry(t.Context(), "r", api.Units(3))
	require.NoError(t, err)
	require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{{Resource: "r", Threshold: 4, Metric: flow.Concurrency}}}))

	_, err = g.Entry(t.Context(), "r", api.Units(2))
	assert.ErrorIs(t, err, core.ErrBlocked, "3 of 4 are in flight")
	late, err := g.Entry(t.Context(), "r")
	require.NoError(t, err)
	early.Exit()
	next, err := g.Entry(t.Context(), "r", api.Units(3))
	require.NoError(t, err)
	late.Exit()
	next.Exit()
}
