package inspect_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/observe/inspect"
)

func TestAnEngineThatWasNeverUsed(t *testing.T) {
	tree := newLab(t, engine.Config{}).tree()

	require.Equal(t, start, tree.At)
	require.Equal(t, "machine-root(default)", names(&tree.Root))
	require.Equal(t, inspect.NodeRoot, tree.Root.Kind)
	require.Equal(t, inspect.NodeEntrance, tree.Root.Children[0].Kind)
	require.Equal(t, inspect.NodeInbound, tree.Inbound.Kind)
	require.Equal(t, "__total_inbound_traffic__", tree.Inbound.Name)
	require.Empty(t, tree.Resources)
	require.Zero(t, tree.Root.Rates())
	require.Equal(t, inspect.Usage{Cap: 10_000}, tree.Caps.Resources)
	require.Equal(t, inspect.Usage{Cap: 2_000}, tree.Caps.Contexts)
	require.Equal(t, inspect.Usage{Cap: 20_000}, tree.Caps.Calls)
	require.Equal(t, inspect.Usage{Cap: 10_000}, tree.Caps.Origins)
}

func TestNestedCallsStandBelowTheirCallerSortedByName(t *testing.T) {
	l := newLab(t, engine.Config{})
	orders := l.enter(from("web", "app"), "orders")
	l.call(orders.Context(), 1, 0, "sql")
	l.call(orders.Context(), 1, 0, "cache")
	orders.Exit()
	l.call(from("web", ""), 1, 0, "items")
	l.call(from("job", ""), 1, 0, "sql")
	l.call(anywhere, 1, 0, "sql")

	tree := l.tree()
	require.Equal(t, "machine-root(default(sql) job(sql) web(items orders(cache sql)))", names(&tree.Root))

	var walked []string
	for depth, n := range tree.Walk() {
		walked = append(walked, fmt.Sprint(depth, " ", n.Kind, " ", n.Name))
	}
	require.Equal(t, []string{
		"0 root machine-root",
		"1 entrance default", "2 call sql", "1 entrance job", "2 call sql",
		"1 entrance web", "2 call items", "2 call orders", "3 call cache", "3 call sql",
	}, walked)
	for depth := range tree.Walk() { // stopping early is allowed
		if depth == 2 {
			break
		}
	}
}

func TestLookups(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.rules(flow.Rule{Resource: "only-in-rules", Threshold: 1, Origin: "named"})
	orders := l.enter(from("web", "app"), "orders")
	l.call(orders.Context(), 2, 0, "sql")
	orders.Exit()
	l.call(anywhere, 3, 0, "sql")
	tree := l.tree()

	n, ok := tree.Resource("sql")
	require.EqualValues(t, 5, found(t, n, ok).Lifetime.Pass)
	require.Equal(t, inspect.NodeResource, n.Kind)
	n, ok = tree.Origin("sql", "app")
	require.EqualValues(t, 2, found(t, n, ok).Lifetime.Pass, "an origin goes on to nested calls")
	require.Equal(t, inspect.NodeOrigin, n.Kind)
	n, ok = tree.Call("web", "sql")
	require.EqualValues(t, 2, found(t, n, ok).Lifetime.Pass)
	n, ok = tree.Call("", "sql")
	require.EqualValues(t, 3, found(t, n, ok).Lifetime.Pass)
	n, ok = tree.Entrance("web")
	require.EqualValues(t, 1, found(t, n, ok).Lifetime.Pass, "nested calls don't count twice")
	n, ok = tree.Entrance("")
	require.Equal(t, node.DefaultContext, found(t, n, ok).Name)

	for name, ok := range map[string]bool{
		"resource that only a rule names": second(tree.Resource("only-in-rules")),
		"origin of no resource":           second(tree.Origin("none", "app")),
		"origin":                          second(tree.Origin("sql", "none")),
		"context":                         second(tree.Entrance("none")),
		"call in no context":              second(tree.Call("none", "sql")),
		"call":                            second(tree.Call("web", "none")),
	} {
		require.False(t, ok, name)
	}
}

func second(_ *inspect.Node, ok bool) bool { return ok }

func TestOverflowIsShown(t *testing.T) {
	l := newLab(t, engine.Config{Caps: small})
	l.call(from("web", "app"), 1, 0, "a")
	l.call(from("web", "other"), 2, 0, "a")
	l.call(from("job", ""), 3, 0, "b")
	l.call(from("web", ""), 4, 0, "c")
	l.call(from("web", ""), 5, 0, "d")

	tree := l.tree()
	require.Equal(t, "machine-root((overflow)(b) default web((overflow) a))", names(&tree.Root))
	require.True(t, tree.Root.Children[0].Overflow)
	require.Equal(t, inspect.Usage{Used: 2, Cap: 2, Overflows: 9}, tree.Caps.Resources)
	require.EqualValues(t, 3, tree.Caps.Contexts.Overflows)
	require.EqualValues(t, 2, tree.Caps.Origins.Overflows)

	n, ok := tree.Resource(node.OverflowName)
	require.EqualValues(t, 9, found(t, n, ok).Lifetime.Pass)
	require.True(t, n.Overflow)
	n, ok = tree.Call("web", node.OverflowName)
	require.True(t, found(t, n, ok).Overflow)
	n, ok = tree.Origin("a", node.OverflowName)
	require.EqualValues(t, 2, found(t, n, ok).Lifetime.Pass)
	require.True(t, n.Overflow)
	require.Contains(t, text(t, tree), "\nresources: 2 of 2; 9 times a name found no place and went to (overflow)\n")
}

func TestVeryDeepNestingIsShownFlat(t *testing.T) {
	l := newLab(t, engine.Config{})
	ctx := from("web", "")
	for i := range 300 {
		e := l.enter(ctx, fmt.Sprintf("%03d", i))
		defer e.Exit()
		ctx = e.Context()
	}
	deepest, nodes := 0, 0
	tree := l.tree()
	for depth := range tree.Walk() {
		deepest = max(deepest, depth)
		nodes++
	}
	require.Equal(t, 100, deepest)
	require.Equal(t, 303, nodes, "root, two entrances, every call")
	_, ok := tree.Call("web", "299")
	require.True(t, ok)
}

func TestACopyDoesNotChange(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.call(from("web", "app"), 1, 0, "orders")
	tree := l.tree()
	before := text(t, tree)
	l.call(from("web", "app"), 9, time.Second, "orders")
	require.Equal(t, before, text(t, tree))
}

func TestNothingIsLostWhileCallsGoOn(t *testing.T) {
	l := newLab(t, engine.Config{})
	const callers, each = 4, 2000
	var calls sync.WaitGroup
	for range callers {
		calls.Go(func() {
			for i := range each {
				e, err := l.Enter(from("web", "app"), "orders", nil)
				if err == nil {
					e.Exit()
				}
				if i%100 == 0 {
					l.clock.Advance(50 * time.Millisecond)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { calls.Wait(); close(done) }()
	var last int64
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		tree := l.tree()
		require.GreaterOrEqual(t, tree.Root.Lifetime.Entered, last, "a total never decreases")
		require.GreaterOrEqual(t, tree.Root.InFlight, int64(0))
		last = tree.Root.Lifetime.Entered
	}
	tree := l.tree()
	require.EqualValues(t, callers*each, tree.Root.Lifetime.Exited)
	n, ok := tree.Origin("orders", "app")
	require.EqualValues(t, callers*each, found(t, n, ok).Lifetime.Entered)
}
