package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// Calls of more units than the limit run one at a time. If they never ran, and there were no
// others, the limit would never change again.
func TestLargeCallsRunAlone(t *testing.T) {
	g := newGuard(t, adaptive.Rule{Resource: "orders", Floor: 1, Start: 5, Ceiling: 20, Window: 100 * ms})
	enter := func(units int) (engine.Entry, bool) {
		e, err := g.Enter(t.Context(), "orders", []engine.Option{engine.Units(units)})
		return e, err == nil
	}
	large, ok := enter(12)
	require.True(t, ok, "nothing else is in flight")
	_, ok = enter(1)
	assert.False(t, ok, "it runs alone")
	large.Exit()
	small, ok := enter(1)
	require.True(t, ok)
	_, ok = enter(12)
	assert.False(t, ok, "another runs")
	small.Exit()
	_, ok = enter(21)
	assert.False(t, ok, "more than the ceiling never runs")

	var in []engine.Entry
	refused := 0 // in a row
	for i := range 5000 {
		if e, ok := enter(5); ok {
			in, refused = append(in, e), 0
		} else {
			refused++
		}
		require.Less(t, refused, 100, "call %d", i)
		g.clock.Advance(10 * ms)
		if len(in) == 2 || i%3 == 0 && len(in) > 0 {
			in[0].Exit()
			in = in[1:]
		}
	}
	for _, e := range in {
		e.Exit()
	}
}

// A resource that was evicted and returns has a semaphore that obeyed the limits of a removed rule.
// It obeys the limits of the next rule.
func TestSemaphoreOfARuleThatIsGone(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 10}},
		adaptive.Rule{ID: "a", Resource: "or.*", Match: spec.MatchRegex, Start: 3, Ceiling: 5, Window: 100 * ms})
	orders := engine.NewHandle("orders")
	many := func(n int) (in []engine.Entry) {
		for range n {
			if e, err := g.EnterBy(t.Context(), orders, nil); err == nil {
				in = append(in, e)
			}
		}
		return in
	}
	leave := func(in []engine.Entry) {
		for _, e := range in {
			e.Exit()
		}
	}
	for range 400 { // the limit changes a few times
		in := many(5)
		g.clock.Advance(10 * ms)
		leave(in)
	}
	g.clock.Advance(5 * time.Minute)
	require.Positive(t, g.Tree().Evict(g.Now()))
	g.load()
	leave(many(1)) // the resource is back
	g.load(adaptive.Rule{ID: "a", Resource: "or.*", Match: spec.MatchRegex, Start: 50, Ceiling: 1000, Window: 100 * ms})
	in := many(200)
	assert.Equal(t, int(trial.Details[adaptive.Stats](t, g.Engine, "a").Limits[0].InForce), len(in))
	leave(in)
}
