package slots_test

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
)

// chains returns chains that find the nodes of a call in every possible way.
func chains(then ...engine.Slot) map[string]*engine.Chain {
	all := make(map[string]*engine.Chain)
	for name, first := range map[string][]engine.Slot{
		"usual":          {trial.Slot("nodeSelector"), trial.Slot("clusterBuilder")},
		"builder first":  {trial.Slot("clusterBuilder"), trial.Slot("nodeSelector")},
		"no builder":     {trial.Slot("nodeSelector")},
		"builder panics": {trial.Slot("nodeSelector"), trial.Lost{}},
	} {
		all[name] = engine.NewChain(append(first, then...)...)
	}
	return all
}

func ofChain(t *testing.T, chain *engine.Chain) *engine.Engine {
	e, err := engine.NewEngine(engine.Config{Clock: clocks.NewManual(start), Chain: chain, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	books.Keep(t, e)
	return e
}

// A call is counted once on its resource, and a rule added later finds it once, regardless of how
// the chain finds its nodes.
func TestResourceCountsOnce(t *testing.T) {
	for name, chain := range chains(trial.Slot("statistic"), engine.FamilySlot(core.KindFlow)) {
		t.Run(name, func(t *testing.T) {
			e := ofChain(t, chain)
			for range 3 {
				entry, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Inbound()})
				require.NoError(t, err)
				entry.Exit()
			}
			r, _ := e.FindResource("orders")
			assert.EqualValues(t, 3, r.Totals().Pass)
			for _, n := range r.Calls().All() {
				assert.EqualValues(t, 3, n.Totals().Pass)
			}
			require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
				return flow.Compile(b, []flow.Rule{{Resource: "orders", Threshold: 5}})
			}))
			for i := range 4 {
				entry, err := e.Enter(t.Context(), "orders", nil)
				assert.Equal(t, i < 2, err == nil, "call %d of a limit of 5", 4+i)
				entry.Exit()
			}
		})
	}
}

// A semaphore that is made while calls are in flight releases their units as they end, regardless
// of how the chain finds the nodes: the limit holds while calls overlap.
func TestSemaphoreForCallsInFlight(t *testing.T) {
	for name, chain := range chains(trial.Slot("statistic"), engine.FamilySlot(core.KindIsolation)) {
		t.Run(name, func(t *testing.T) {
			e := ofChain(t, chain)
			enter := func() engine.Entry {
				entry, err := e.Enter(t.Context(), "orders", nil)
				assert.NoError(t, err)
				return entry
			}
			running := enter() // before there is a rule
			require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
				return isolation.Compile(b, []isolation.Rule{{Resource: "orders", Threshold: 2}})
			}))
			next := enter()
			running.Exit()
			for range 10 { // one runs, a second is allowed
				running, next = next, enter()
				_, err := e.Enter(t.Context(), "orders", nil)
				assert.ErrorIs(t, err, core.ErrBlocked)
				running.Exit()
			}
			next.Exit()
		})
	}
}

// A rule meters a call node that the resource includes. The node is evicted, the rule is removed,
// and the node is brought back: nothing meters it.
func TestMetersOfANodeThatLeft(t *testing.T) {
	e, clock, _ := newGuard(t)
	r := e.PinResource("orders")
	load := func(rules ...flow.Rule) {
		require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, rules) }))
	}
	keep := flow.Rule{ID: "keep", Resource: "orders", Threshold: 1000}
	load(keep, flow.Rule{ID: "chain", Resource: "or.*", Match: spec.MatchRegex, Relation: flow.Chain, Ref: "web", Threshold: 100})
	metered := func() bool {
		entry, err := e.Enter(engine.WithContext(t.Context(), "web"), "orders", nil)
		require.NoError(t, err)
		entry.Exit()
		n, _ := r.Calls().Find("web")
		return n.Metered()
	}
	require.True(t, metered())
	clock.Advance(3 * time.Minute)
	require.Positive(t, e.Tree().Evict(clock.Now()))
	runtime.GC()
	load(keep)
	assert.False(t, metered(), "no rule uses it")
}
