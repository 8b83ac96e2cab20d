package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// paths lists the tree, a line for each call node: context, then names from the entrance down.
func paths(e *engine.Engine) []string {
	var all []string
	var walk func(prefix string, children []*node.DefaultNode)
	walk = func(prefix string, children []*node.DefaultNode) {
		for _, n := range children {
			all = append(all, prefix+"/"+n.Name())
			walk(prefix+"/"+n.Name(), n.Children())
		}
	}
	for name, entrance := range e.Tree().Entrances().All() {
		walk(name, entrance.Children())
	}
	slices.Sort(all)
	return all
}

func call(t *testing.T, e *engine.Engine, ctx context.Context, name string) engine.Entry {
	t.Helper()
	entry, err := e.Enter(ctx, name, nil)
	require.NoError(t, err)
	return entry
}

func TestContextValues(t *testing.T) {
	assert.Nil(t, engine.ContextOf(context.Background()))
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "user's own")
	outer := engine.WithOrigin(engine.WithContext(ctx, "web"), "app")
	again := engine.WithContext(outer, "job")
	inner := engine.WithOrigin(engine.WithContext(outer, ""), "")
	assert.Equal(t, "web", engine.ContextOf(outer).Name())
	assert.Equal(t, "app", engine.ContextOf(outer).Origin())
	assert.Equal(t, "job", engine.ContextOf(again).Name())
	assert.Equal(t, "app", engine.ContextOf(again).Origin(), "another context has the same origin")
	assert.Equal(t, "", engine.ContextOf(inner).Name())
	assert.Equal(t, "", engine.ContextOf(inner).Origin())
	assert.Equal(t, "user's own", inner.Value(key{}))
}

func TestNestedCalls(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	web := engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app")
	orders := call(t, e, web, "orders")
	sql := call(t, e, orders.Context(), "sql")
	call(t, e, sql.Context(), "dial").Exit()
	call(t, e, sql.Context(), "dial").Exit()
	call(t, e, orders.Context(), "cache").Exit()
	call(t, e, web, "health").Exit()
	call(t, e, t.Context(), "orders").Exit()
	sql.Exit()
	orders.Exit()
	assert.Equal(t, []string{
		"default/orders",
		"web/health",
		"web/orders",
		"web/orders/cache",
		"web/orders/sql",
		"web/orders/sql/dial",
	}, paths(e))
	from := func(name string) *node.OriginNode {
		o, _ := resource(t, e, name).Origins().Find("app")
		return o
	}
	for _, name := range []string{"orders", "sql", "dial", "cache", "health"} {
		assert.NotNil(t, from(name), "%s inherits the origin", name)
	}
}

// Naming the caller of a nested call leaves it nested; naming another context moves it there.
func TestNestedCallsOfAnotherOriginOrContext(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	orders := call(t, e, engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app"), "orders")
	call(t, e, engine.WithOrigin(orders.Context(), "agent"), "sql").Exit()
	call(t, e, engine.WithContext(orders.Context(), "job"), "mail").Exit()
	orders.Exit()
	assert.Equal(t, []string{"job/mail", "web/orders", "web/orders/sql"}, paths(e))
	for name, from := range map[string]string{"orders": "app", "sql": "agent", "mail": "app"} {
		origins := 0
		for origin := range resource(t, e, name).Origins().All() {
			assert.Equal(t, from, origin)
			origins++
		}
		assert.Equal(t, 1, origins, name)
	}
}

// A child context stays valid when its parent's entry has exited, and when the parent's node has
// left the tree.
func TestChildOutlivesItsParent(t *testing.T) {
	e, clock := newEngine(t, engine.Config{})
	parent := call(t, e, engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app"), "orders")
	ctx := parent.Context()
	parent.Exit()
	call(t, e, t.Context(), "something else").Exit() // perhaps with the parent's state
	call(t, e, ctx, "late").Exit()
	assert.Contains(t, paths(e), "web/orders/late")

	clock.Advance(2 * time.Minute)
	assert.Positive(t, e.Tree().Evict(clock.Now()))
	assert.Empty(t, paths(e))
	call(t, e, ctx, "later").Exit()
	assert.Equal(t, []string{"web/later"}, paths(e), "below the entrance, since the parent has gone")
	assert.Equal(t, "app", engine.ContextOf(ctx).Origin())
}

func TestContextOfAnEntryThatIsOver(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	entry := call(t, e, engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app"), "orders")
	entry.Exit()
	assert.Equal(t, context.Background(), entry.Context())
}

// The context of an entry has the values of the caller's own context.
func TestEntryContextEndsWithTheCallers(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	entry := call(t, e, ctx, "orders")
	child := entry.Context()
	entry.Exit()
	require.NoError(t, child.Err())
	cancel()
	assert.ErrorIs(t, child.Err(), context.Canceled)
}

// A call nested in another engine's call is placed below this engine's entrance.
func TestTwoEngines(t *testing.T) {
	first, _ := newEngine(t, engine.Config{})
	second, _ := newEngine(t, engine.Config{})
	web := engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app")
	for range 2 {
		outer := call(t, first, web, "orders")
		inner := call(t, second, outer.Context(), "sql")
		call(t, first, inner.Context(), "dial").Exit()
		call(t, first, outer.Context(), "cache").Exit()
		inner.Exit()
		outer.Exit()
	}
	assert.Equal(t, []string{"web/dial", "web/orders", "web/orders/cache"}, paths(first))
	assert.Equal(t, []string{"web/sql"}, paths(second))
}

// One context serves many goroutines.
func TestContextIsShared(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	parent := call(t, e, engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app"), "orders")
	ctx := parent.Context()
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 200 {
				entry, err := e.Enter(ctx, "sql", nil)
				if err != nil {
					t.Error(err)
					return
				}
				inner, err := e.Enter(entry.Context(), "dial", nil)
				if err != nil {
					t.Error(err)
				}
				inner.Exit()
				entry.Exit()
			}
		})
	}
	done.Wait()
	parent.Exit()
	assert.Equal(t, []string{"web/orders", "web/orders/sql", "web/orders/sql/dial"}, paths(e))
	totals := resource(t, e, "dial").Totals()
	assert.Equal(t, int64(1600), totals.Pass)
}

func TestNamesWithAMeaning(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	for _, name := range []string{node.DefaultContext, node.OverflowName, node.RootName, node.InboundName} {
		ctx := engine.WithOrigin(engine.WithContext(t.Context(), name), name)
		for range 2 {
			call(t, e, ctx, name).Exit()
		}
		totals := resource(t, e, name).Totals()
		assert.Equal(t, int64(2), totals.Pass, name)
	}
}
