package memory

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// shape makes a tree with nodes of every kind: a call below a call in a context, and callers of
// both resources.
func (g *guard) shape() {
	outer, _ := g.enter("in", "from", "outer")
	inner, _ := g.Entry(outer.Context(), "inner")
	inner.Exit()
	outer.Exit()
}

// there lists the existing nodes of shape.
func (g *guard) there() (nodes []string) {
	if _, ok := g.tree.Entrances().Find("in"); ok {
		nodes = append(nodes, "entrance")
	}
	for _, name := range []string{"outer", "inner"} {
		r, ok := g.Engine().FindResource(name)
		if !ok {
			continue
		}
		nodes = append(nodes, name)
		if _, ok := r.Calls().Find("in"); ok {
			nodes = append(nodes, name+" call")
		}
		if _, ok := r.Origins().Find("from"); ok {
			nodes = append(nodes, name+" origin")
		}
	}
	return nodes
}

// Without any timer or reader, a new name replaces an idle one once the cap is reached.
func TestNewNamesTakeThePlaceOfIdleOnes(t *testing.T) {
	for name, c := range map[string]struct {
		caps node.Caps
		call func(g *guard, name string)
		find func(g *guard, name string) bool
		over func(g *guard) int64
	}{
		"resource": {node.Caps{Resources: 1},
			func(g *guard, name string) { g.call("", "", name) },
			func(g *guard, name string) bool { _, ok := g.Engine().FindResource(name); return ok },
			func(g *guard) int64 { return g.tree.Resources().Overflows() }},
		"context": {node.Caps{Contexts: 1},
			func(g *guard, name string) { g.call(name, "", "r") },
			func(g *guard, name string) bool { _, ok := g.tree.Entrances().Find(name); return ok },
			func(g *guard) int64 { return g.tree.Contexts().Overflows() }},
		"call": {node.Caps{Calls: 1},
			func(g *guard, name string) { g.call("", "", name) },
			func(g *guard, name string) bool {
				r, _ := g.Engine().FindResource(name)
				_, ok := r.Calls().Find(node.DefaultContext)
				return ok
			},
			func(g *guard) int64 { return g.tree.Calls().Overflows() }},
		"origin": {node.Caps{Origins: 1},
			func(g *guard, name string) { g.call("", name, "r") },
			func(g *guard, name string) bool {
				r, _ := g.Engine().FindResource("r")
				_, ok := r.Origins().Find(name)
				return ok
			},
			func(g *guard) int64 { return g.tree.Origins().Overflows() }},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, api.Config{Caps: c.caps})
			c.call(g, "first")
			g.clock.Advance(59 * time.Second)
			c.call(g, "second")
			assert.False(t, c.find(g, "second"), "the cap should be full")
			assert.EqualValues(t, 1, c.over(g))
			g.clock.Advance(time.Second)
			c.call(g, "third")
			assert.True(t, c.find(g, "third"))
			assert.EqualValues(t, 1, c.over(g))
		})
	}
}

// known bug 87: a node stays as long as it holds state that matters.
func TestNodesInUseStay(t *testing.T) {
	inner := func(r flow.Rule) flow.Rule { r.Resource, r.Interval = "inner", 10*time.Minute; return r }
	for _, c := range []struct {
		name string
		rule flow.Rule
		// use puts shape's nodes in use, and returns a function that ends the use.
		use   func(g *guard) (end func())
		stays []string
		// until is the time when even those may be evicted, if nothing ends it.
		until time.Duration
	}{
		{"a call in flight", flow.Rule{}, func(g *guard) func() {
			e, _ := g.enter("in", "from", "outer")
			return e.Exit
		}, []string{"entrance", "outer", "outer call", "outer origin"}, 0},
		{"a nested call in flight, its caller gone", flow.Rule{}, func(g *guard) func() {
			outer, _ := g.enter("in", "", "outer")
			e, _ := g.Entry(outer.Context(), "inner")
			outer.Exit()
			return e.Exit
		}, []string{"entrance", "outer", "outer call", "inner", "inner call"}, 0},
		{"permits", flow.Rule{Resource: "inner", Threshold: 1, Metric: flow.Concurrency}, func(g *guard) func() {
			e, _ := g.enter("in", "from", "inner")
			return e.Exit
		}, []string{"entrance", "outer", "outer call", "inner", "inner call", "inner origin"}, 0},
		{"a window of the resource", inner(flow.Rule{Threshold: 5}), func(*guard) func() { return func() {} },
			[]string{"inner"}, 11 * time.Minute},
		{"a window of a caller", inner(flow.Rule{Threshold: 5, Origin: flow.OriginOther}), func(*guard) func() { return func() {} },
			[]string{"inner", "inner origin"}, 11 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			var set []flow.Rule
			if c.rule.Resource != "" {
				c.rule.Resource, c.rule.Match = "inn.r", spec.MatchRegex // or the node would stay for its name
				set = append(set, c.rule)
			}
			g := newGuard(t, api.Config{}, set...)
			g.shape()
			end := c.use(g)
			for range 9 {
				g.clock.Advance(time.Minute)
				g.evict()
				require.Subset(t, g.there(), c.stays)
			}
			end()
			g.clock.Advance(max(c.until, 2*time.Minute))
			g.evict()
			require.Empty(t, g.there())
		})
	}
}

// A sleeping borrower is not in flight yet: only its window knows of it.
func TestBorrowedUnitsKeepTheirNode(t *testing.T) {
	g := newGuard(t, api.Config{OccupyTimeout: time.Hour},
		flow.Rule{Resource: "inn.r", Match: spec.MatchRegex, Threshold: 1, Interval: 20 * time.Minute, Buckets: 2, Window: flow.Ring})
	g.clock.SetSleep(clocks.SleepPark)
	require.True(t, g.call("in", "from", "inner"))
	done := make(chan error)
	go func() {
		e, err := g.Entry(engine.WithOrigin(engine.WithContext(context.Background(), "in"), "from"), "inner", api.Prioritized())
		e.Exit()
		done <- err
	}()
	g.clock.AwaitParked(1)
	r := g.find(t, "inner")
	for range 10 {
		g.evict()
		require.Same(t, r, g.find(t, "inner"))
		g.clock.Advance(time.Minute)
	}
	g.clock.Advance(time.Hour)
	require.NoError(t, <-done)
	require.Same(t, r, g.find(t, "inner"))
}
