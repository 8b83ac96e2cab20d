package inspect_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/stat"
)

func TestFiguresOfANode(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.call(anywhere, 3, 100*time.Millisecond, "orders", engine.Inbound()) // until 12:00:00.3
	l.clock.AdvanceTo(start.Add(1200 * time.Millisecond).UnixNano())
	l.call(anywhere, 2, 150*time.Millisecond, "orders", engine.Units(2)) // at 1.2 and 1.35, until 1.5
	failed := l.enter(anywhere, "orders")
	l.clock.Advance(50 * time.Millisecond)
	failed.Fail(errors.New("no"))
	failed.Exit()
	open := l.enter(anywhere, "orders", engine.Units(5)) // at 1.55
	defer open.Exit()
	l.rules(flow.Rule{Resource: "orders", Threshold: 1})
	l.blocked(anywhere, 4, "orders")

	tree := l.tree()
	n, ok := tree.Resource("orders")
	found(t, n, ok)
	require.Equal(t, time.Second, n.Interval)
	require.Equal(t, stat.Rates{Pass: 10, Block: 4, Complete: 5, Exception: 1}, n.Rates(), "since 1.0")
	require.Equal(t, 14.0, n.TotalRate())
	require.EqualValues(t, 10, n.Second.Pass)
	require.EqualValues(t, 4, n.Second.Entered)
	require.EqualValues(t, 3, n.Second.Exited)
	require.Equal(t, 350*time.Millisecond/3, n.AvgRT(), "over calls, not units")
	least, ok := n.MinRT()
	require.True(t, ok)
	require.Equal(t, 50*time.Millisecond, least)
	require.Len(t, n.Buckets, 2)
	require.EqualValues(t, 3, n.MaxComplete(), "2 by 1.5, 2+1 from then on")
	require.Equal(t, 6.0, n.MaxCompleteRate())
	require.EqualValues(t, 1, n.InFlight)
	require.Zero(t, n.Waiting)
	require.EqualValues(t, 3, n.LastSecond.Pass)
	require.EqualValues(t, 13, n.Minute.Pass)
	require.EqualValues(t, 17, n.Minute.Total())
	require.EqualValues(t, 13, n.Lifetime.Pass)
	require.Len(t, n.History, 2)
	require.Equal(t, start.UnixNano(), n.History[0].Start)
	require.EqualValues(t, 3, n.History[0].Value.Complete)
	require.EqualValues(t, 3, tree.Inbound.Lifetime.Pass)

	l.clock.Advance(2 * time.Minute)
	tree = l.tree()
	n, ok = tree.Resource("orders")
	require.Zero(t, found(t, n, ok).Rates())
	require.Zero(t, n.Minute)
	require.Zero(t, n.LastSecond)
	require.Empty(t, n.History)
	_, ok = n.MinRT()
	require.False(t, ok, "there is no least of nothing")
	require.EqualValues(t, 13, n.Lifetime.Pass)
	require.EqualValues(t, 1, n.InFlight)
}

func TestRatesAreOverTheIntervalThatIsConfigured(t *testing.T) {
	l := newLab(t, engine.Config{Interval: 2 * time.Second, Buckets: 4})
	l.call(anywhere, 3, 0, "orders")
	tree := l.tree()
	n, ok := tree.Resource("orders")
	require.Equal(t, 1.5, found(t, n, ok).Rates().Pass)
	require.Equal(t, 6.0, n.MaxCompleteRate(), "4 buckets in 2 seconds")
}

func TestSumsOfEntrancesAndRoot(t *testing.T) {
	l := newLab(t, engine.Config{})
	orders := l.enter(from("web", ""), "orders")
	l.call(orders.Context(), 7, 0, "sql")
	l.clock.Advance(100 * time.Millisecond)
	orders.Exit()                                            // bucket 0: one of 100 ms
	l.call(from("web", ""), 3, 20*time.Millisecond, "items") // bucket 0: three of 20 ms
	l.clock.AdvanceTo(start.Add(700 * time.Millisecond).UnixNano())
	l.call(from("web", ""), 2, 0, "orders") // bucket 1: two of 0 ms
	l.call(from("job", ""), 4, 0, "sql")    // bucket 1: four of 0 ms
	open := l.enter(from("job", ""), "sql")
	defer open.Exit()

	tree := l.tree()
	n, ok := tree.Entrance("web")
	web := found(t, n, ok)
	require.Equal(t, stat.Rates{Pass: 6, Complete: 6}, web.Rates(), "of direct children only")
	require.Equal(t, 160*time.Millisecond/6, web.AvgRT(), "weighted by completed calls")
	least, ok := web.MinRT()
	require.True(t, ok)
	require.Zero(t, least)
	require.EqualValues(t, 4, web.MaxComplete(), "1+3 in one bucket; the best of each would be 2+3")
	require.EqualValues(t, 6, web.Minute.Complete)
	require.EqualValues(t, 6, web.Lifetime.Entered)

	root := tree.Root
	require.Equal(t, stat.Rates{Pass: 11, Complete: 10}, root.Rates())
	require.EqualValues(t, 6, root.MaxComplete(), "2+4 in the second bucket")
	require.EqualValues(t, 1, root.InFlight)
	require.Len(t, root.History, 1)
	require.EqualValues(t, 11, root.History[0].Value.Pass)

	l.clock.Advance(time.Second)
	l.call(from("web", ""), 1, 0, "items")
	tree = l.tree()
	require.EqualValues(t, 11, tree.Root.LastSecond.Pass)
	require.Len(t, tree.Root.History, 2)
	require.EqualValues(t, 1, tree.Root.History[1].Value.Pass)
}

func TestWaiting(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.rules(flow.Rule{Resource: "orders", Threshold: 2, Relation: flow.Chain, Ref: "web"})
	l.call(from("web", ""), 2, 0, "orders")
	l.clock.Advance(900 * time.Millisecond)
	var calls sync.WaitGroup
	calls.Go(func() {
		e, err := l.Enter(from("web", ""), "orders", []engine.Option{engine.Prioritized()})
		if err == nil {
			e.Exit()
		}
	})
	l.clock.AwaitParked(1)

	tree := l.tree()
	require.EqualValues(t, 1, tree.Waiting)
	n, ok := tree.Call("web", "orders")
	require.EqualValues(t, 1, found(t, n, ok).Waiting)
	require.EqualValues(t, 1, tree.Root.Waiting)
	require.Contains(t, text(t, tree), " 0  waiting 1\n")

	l.clock.Advance(time.Second)
	calls.Wait()
	tree = l.tree()
	require.Zero(t, tree.Waiting)
	n, ok = tree.Call("web", "orders")
	require.Zero(t, found(t, n, ok).Waiting)
	require.EqualValues(t, 1, n.Lifetime.Occupied)
	require.NotContains(t, text(t, tree), "waiting")
}
