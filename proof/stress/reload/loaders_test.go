package reload

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/proof/figure"
	"github.com/penstock-go/penstock/rules"
)

// setOf makes the i-th set of a loader. Its rules say whose they are and which, and
// there is one for each resource that a reader asks for.
func setOf(loader string, i int) rules.Set {
	var set rules.Set
	for _, resource := range []string{"orders", "carts", "users"}[:2+i%2] {
		set.Flow = append(set.Flow, flow.Rule{ID: fmt.Sprint(resource, " ", loader, " ", i), Resource: resource})
	}
	return set
}

// Two loaders at once, and one that always fails: what is in force is one of the sets,
// whole, at every moment and in the end, and what is shown is what decides.
// known bug 69, 70
func TestTwoLoaders(t *testing.T) {
	loads := figure.Size(200, 500, 10_000, 10_000)
	g := newGuardOn(t, nil)
	before := g.Engine().Rules().Revision
	require.NoError(t, g.LoadRules(setOf("a", 0)))
	var loaders, readers sync.WaitGroup
	var done atomic.Bool
	var torn, reads atomic.Int64
	for _, name := range []string{"a", "b"} {
		loaders.Go(func() {
			for i := range loads {
				if err := g.LoadRules(setOf(name, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	loaders.Go(func() {
		for i := range loads {
			set := setOf("bad", i)
			set.Flow[1].Threshold = -1
			if g.LoadRules(set) == nil {
				t.Error("a bad set was loaded")
			}
		}
	})
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				reads.Add(1)
				if !isWhole(g.Rules()) {
					torn.Add(1)
				}
				e, err := g.Entry(t.Context(), "orders")
				e.Exit()
				if err == nil {
					torn.Add(1) // there is a rule for it in every set
				}
			}
		})
	}
	loaders.Wait()
	done.Store(true)
	readers.Wait()
	assert.True(t, isWhole(g.Rules()))
	assert.Equal(t, uint64(1+2*loads), g.Engine().Rules().Revision-before, "loads run one after the other")
	for _, r := range g.Rules().Flow {
		_, err := g.Entry(t.Context(), r.Resource)
		b, ok := errors.AsType[*core.BlockError](err)
		require.True(t, ok)
		assert.Equal(t, r.ID, b.Rule, "what is shown is what decides")
	}
	figure.Report(t, figure.Figure{Name: "rule sets that are no loader's, two loaders", Value: float64(torn.Load()), N: reads.Load()})
}

// isWhole reports whether a set is one that setOf makes.
func isWhole(set rules.Set) bool {
	var resource, loader string
	var i int
	if len(set.Flow) == 0 {
		return false
	}
	if _, err := fmt.Sscan(set.Flow[0].ID, &resource, &loader, &i); err != nil {
		return false
	}
	want := setOf(loader, i).Flow
	if loader == "bad" || len(want) != len(set.Flow) {
		return false
	}
	for k := range want {
		if want[k].ID != set.Flow[k].ID || want[k].Resource != set.Flow[k].Resource {
			return false
		}
	}
	return true
}

// A family that panics half-way through loading leaves the old set, and no lock.
// known bug 70
func TestPanicHalfWayThroughLoading(t *testing.T) {
	g := newGuard(t, flow.Rule{ID: "r", Resource: "orders"})
	rs := g.Engine().Rules()
	assert.Panics(t, func() {
		_ = g.Engine().Update(func(b *core.RulesetBuilder) error {
			if err := flow.Compile(b, []flow.Rule{{Resource: "carts"}}); err != nil {
				return err
			}
			panic("a family failed")
		})
	})
	assert.Same(t, rs, g.Engine().Rules())
	_, err := g.Entry(t.Context(), "orders")
	require.ErrorIs(t, err, core.ErrBlocked)
	g.load(t)
	e, err := g.Entry(t.Context(), "orders")
	require.NoError(t, err)
	e.Exit()
}

// A load that fails late, as it would in a later family, has changed nothing: neither
// what is decided nor what is kept.
func TestLoadThatFailsLate(t *testing.T) {
	r := flow.Rule{ID: "r", Resource: "orders", Threshold: 5}
	g := newGuard(t, r)
	passed := 0
	late := errors.New("a later family failed")
	for i := range 100 {
		err := g.Engine().Update(func(b *core.RulesetBuilder) error {
			next := r
			next.Interval = time.Duration(1+i%7) * time.Second
			if err := flow.Compile(b, []flow.Rule{next, {ID: "s", Resource: "orders", Threshold: 100}}); err != nil {
				return err
			}
			return late
		})
		require.ErrorIs(t, err, late)
		if e, err := g.Entry(t.Context(), "orders"); err == nil {
			passed++
			e.Exit()
		}
	}
	assert.Equal(t, 5, passed)
	g.load(t, r)
	assertFewMeters(t, g, 1)
}
