package slots_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// counted returns the nodes that counted something, with their counts.
func counted(e *engine.Engine) map[string]stat.Counts {
	all := make(map[string]stat.Counts)
	books.EachNode(e, func(name string, n *node.StatisticNode) {
		if t := n.Totals(); t != (stat.Counts{}) {
			all[name] = t
		}
	})
	return all
}

func fromApp(ctx context.Context) context.Context {
	return engine.WithOrigin(engine.WithContext(ctx, "web"), "app")
}

// Every outcome is counted once on every node of the call, with all its units.
func TestEveryNodeCounts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ctx     func(context.Context) context.Context
		opts    []engine.Option
		fail    bool
		blocked bool
		nodes   []string
	}{
		{name: "plain", nodes: []string{"orders", "default > orders"}},
		{name: "in a context", ctx: func(ctx context.Context) context.Context { return engine.WithContext(ctx, "web") },
			nodes: []string{"orders", "web > orders"}},
		{name: "from a caller", ctx: func(ctx context.Context) context.Context { return engine.WithOrigin(ctx, "app") },
			nodes: []string{"orders", "default > orders", "orders from app"}},
		{name: "from outside", opts: []engine.Option{engine.Inbound()}, nodes: []string{"orders", "default > orders", node.InboundName}},
		{name: "all of it", ctx: fromApp,
			opts: []engine.Option{engine.Inbound()}, nodes: []string{"orders", "web > orders", "orders from app", node.InboundName}},
		{name: "failed", fail: true, opts: []engine.Option{engine.Inbound()}, nodes: []string{"orders", "default > orders", node.InboundName}},
		{name: "refused", blocked: true, ctx: fromApp,
			opts: []engine.Option{engine.Inbound()}, nodes: []string{"orders", "web > orders", "orders from app", node.InboundName}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rules []flow.Rule
			if tt.blocked {
				rules = []flow.Rule{{Resource: "orders", Threshold: 0}}
			}
			e, clock, _ := newGuard(t, rules...)
			ctx := t.Context()
			if tt.ctx != nil {
				ctx = tt.ctx(ctx)
			}
			entry, err := e.Enter(ctx, "orders", append(tt.opts, engine.Units(3)))
			assert.Equal(t, tt.blocked, err != nil)
			if tt.fail {
				entry.Fail(errors.New("x"))
			}
			clock.Advance(7 * time.Millisecond)
			entry.Exit()
			got := counted(e)
			for _, name := range tt.nodes {
				c := got[name]
				if tt.blocked {
					assert.Equal(t, stat.Counts{Block: 3}, c, name)
					continue
				}
				fastest, _ := c.MinRT()
				assert.Equal(t, 7*time.Millisecond, fastest, name)
				assert.Equal(t, []int64{3, 3, 1, 1, 0}, []int64{c.Pass, c.Complete, c.Entered, c.Exited, c.Block}, name)
				assert.Equal(t, 7*time.Millisecond, c.RT, name)
				assert.Equal(t, tt.fail, c.Exception == 3, name)
			}
			assert.Len(t, got, len(tt.nodes))
		})
	}
}

// The counts of a resource are the sums over its contexts, for every outcome and for borrowed
// units, although it includes the first context and counts the others separately.
func TestResourceIsTheSumOfItsContexts(t *testing.T) {
	e, clock, _ := newGuard(t, flow.Rule{Resource: "orders", Threshold: 40})
	clock.SetSleep(clocks.SleepAdvance)
	for i := range 600 {
		ctx := engine.WithContext(t.Context(), []string{"web", "job", "app"}[i%7%3])
		opts := []engine.Option{engine.Units(1 + i%3)}
		if i%5 == 0 {
			opts = append(opts, engine.Prioritized())
		}
		entry, _ := e.Enter(ctx, "orders", opts)
		clock.Advance(time.Duration(3+i%11) * time.Millisecond)
		if i%4 == 0 {
			entry.Fail(errors.New("x"))
		}
		entry.Exit()
	}
	r, _ := e.FindResource("orders")
	var sum, second stat.Counts
	for _, call := range r.Calls().All() {
		totals, now := call.Totals(), call.Second(clock.Now())
		assert.NotZero(t, totals.Block, call.Context())
		assert.NotZero(t, totals.Occupied, call.Context())
		assert.NotZero(t, totals.Exception, call.Context())
		sum.Add(&totals)
		second.Add(&now)
	}
	assert.Equal(t, sum, r.Totals())
	assert.Equal(t, second, r.Second(clock.Now()))
	assert.NotZero(t, second.Pass)
}

// Calls that have entered and not exited are in flight on every node.
func TestInFlight(t *testing.T) {
	e, _, _ := newGuard(t)
	ctx := engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app")
	first, err := e.Enter(ctx, "orders", []engine.Option{engine.Units(3), engine.Inbound()})
	require.NoError(t, err)
	second, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	calls := make(map[string]int64)
	books.EachNode(e, func(name string, n *node.StatisticNode) {
		if open := n.InFlight(); open != 0 {
			calls[name] = open
		}
	})
	assert.Equal(t, map[string]int64{
		"orders": 2, "web > orders": 1, "orders from app": 1, "default > orders": 1, node.InboundName: 1,
	}, calls)
	r, _ := e.FindResource("orders")
	assert.Equal(t, int64(4), r.UnitsInFlight())
	second.Exit()
	first.Exit()
}

// A call is not metered twice where a rule has reserved it, but is metered in all other windows and
// semaphores: of the same node, of other nodes, and of other resources that use it.
func TestMeteredOnce(t *testing.T) {
	e, clock, _ := newGuard(t,
		flow.Rule{Resource: "orders", Threshold: 100},
		flow.Rule{Resource: "orders", Threshold: 100, Interval: 10 * time.Second, Origin: "app"}, // applies to app only
		flow.Rule{Resource: "orders", Threshold: 100, Metric: flow.Concurrency, Relation: flow.Chain, Ref: "web"},
		flow.Rule{Resource: "carts", Threshold: 100, Interval: 20 * time.Second, Relation: flow.Associated, Ref: "orders"},
		flow.Rule{Resource: "carts", Threshold: 100, Metric: flow.Concurrency, Relation: flow.Associated, Ref: "orders"},
		flow.Rule{ID: "shadow", Resource: "orders", Threshold: 2, Interval: 30 * time.Second, Mode: spec.Shadow})
	var open []engine.Entry
	for _, origin := range []string{"app", "app", "tom"} {
		entry, err := e.Enter(engine.WithOrigin(engine.WithContext(t.Context(), "web"), origin), "orders", nil)
		require.NoError(t, err)
		open = append(open, entry)
	}
	r, _ := e.FindResource("orders")
	sums := func(n *node.StatisticNode) map[time.Duration]int64 {
		all := make(map[time.Duration]int64)
		for _, w := range n.Meters().Windows() {
			all[w.Shape.Interval] = w.Sum(clock.Now())
		}
		return all
	}
	assert.Equal(t, map[time.Duration]int64{time.Second: 3, 20 * time.Second: 3, 30 * time.Second: 2}, sums(&r.StatisticNode))
	app, _ := r.Origins().Find("app")
	assert.Equal(t, map[time.Duration]int64{10 * time.Second: 2}, sums(&app.StatisticNode))
	call, _ := r.Calls().Find("web")
	assert.Equal(t, int64(3), call.Meters().Semaphore(nil).InUse())
	assert.Equal(t, int64(3), r.Meters().Semaphore(nil).InUse())
	for _, entry := range open {
		entry.Exit()
		entry.Exit()
	}
	assert.Zero(t, call.Meters().Semaphore(nil).InUse())
	assert.Zero(t, r.Meters().Semaphore(nil).InUse())
	assert.Equal(t, map[time.Duration]int64{time.Second: 3, 20 * time.Second: 3, 30 * time.Second: 2}, sums(&r.StatisticNode), "windows keep admitted units")
}

// A call that borrows is counted when it is released, in the bucket in which it runs, and as
// occupied.
func TestBorrowerIsCountedWhenItRuns(t *testing.T) {
	e, clock, _ := newGuard(t, flow.Rule{Resource: "orders", Threshold: 2, Window: flow.Ring}, flow.Rule{Resource: "carts", Threshold: 9, Interval: 2 * time.Second, Relation: flow.Associated, Ref: "orders", Window: flow.Ring})
	clock.Advance(100 * time.Millisecond)
	for range 2 {
		entry, err := e.Enter(t.Context(), "orders", nil)
		require.NoError(t, err)
		entry.Exit()
	}
	clock.Advance(500 * time.Millisecond)
	clock.SetSleep(clocks.SleepPark)
	done := make(chan engine.Entry)
	go func() {
		entry, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Prioritized()})
		assert.NoError(t, err)
		done <- entry
	}()
	clock.AwaitParked(1)
	r, _ := e.FindResource("orders")
	totals := r.Totals()
	assert.Equal(t, int64(2), totals.Pass, "not before the call is released")
	assert.Zero(t, totals.Occupied)
	clock.Advance(400 * time.Millisecond)
	entry := <-done
	clock.Advance(30 * time.Millisecond)
	entry.Exit()
	buckets := r.SecondBuckets(clock.Now())
	last := buckets[len(buckets)-1]
	assert.Equal(t, start.Add(time.Second).UnixNano(), last.Start)
	assert.Equal(t, int64(1), last.Value.Pass)
	assert.Equal(t, int64(1), last.Value.Occupied)
	assert.Equal(t, 430*time.Millisecond, last.Value.RT, "the wait is part of the response time")
	for _, w := range r.Meters().Windows() {
		assert.Equal(t, map[time.Duration]int64{time.Second: 1, 2 * time.Second: 3}[w.Shape.Interval], w.Sum(clock.Now()), "%v", w.Shape)
	}
}
