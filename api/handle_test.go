package api_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

func ExampleResource() {
	guard, err := api.New(api.Config{})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	defer api.SetDefault(guard)()

	orders := api.Resource("GET /orders") // usually a package variable
	err = api.LoadRules(rules.Set{Flow: []flow.Rule{
		{ID: "orders", Resource: "GET /orders", Threshold: 1, Interval: time.Hour},
	}})
	if err != nil {
		panic(err)
	}
	for range 2 {
		e, err := orders.Entry(context.Background())
		if errors.Is(err, core.ErrBlocked) {
			fmt.Println(err)
			continue
		}
		fmt.Println("passed")
		e.Exit()
	}
	// Output:
	// passed
	// penstock: flow rule "orders" blocked "GET /orders"
}

// passes returns how many units the tree shows as passed for a resource.
func passes(g *api.Guard, name string) int64 {
	r, ok := g.Tree().Resource(name)
	if !ok {
		return 0
	}
	return r.Lifetime.Pass
}

func TestHandleOutlivesItsNode(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g := newGuard(t, api.Config{Clock: clock})
	h := g.Resource("GET /orders")
	call := func() error {
		e, err := h.Entry(t.Context())
		e.Exit()
		return err
	}
	require.NoError(t, call())
	for range 3 {
		clock.Advance(2 * time.Minute)
		require.Positive(t, g.Engine().Tree().Evict(clock.Now()))
		_, there := g.Engine().FindResource("GET /orders")
		require.False(t, there, "a handle keeps no node")

		require.NoError(t, call())
		found, there := g.Engine().FindResource("GET /orders")
		require.True(t, there)
		assert.False(t, found.Retired())
		e, err := g.Entry(t.Context(), "GET /orders") // the same by name
		require.NoError(t, err)
		e.Exit()
	}
	assert.EqualValues(t, 7, passes(g, "GET /orders"))
}

func TestHandleSeesEachReload(t *testing.T) {
	g := newGuard(t, api.Config{Clock: clocks.NewManual(time.Unix(1_700_000_000, 0))})
	h := g.Resource("GET /orders")
	for limit := range 5 {
		require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{{ID: "r", Resource: "GET /orders", Threshold: float64(limit)}}}))
		e, err := h.Entry(t.Context())
		assert.Equal(t, limit == 0, err != nil, "%d", limit)
		e.Exit()
	}
	_, err := h.Entry(t.Context())
	assert.ErrorIs(t, err, core.ErrBlocked, "what was admitted before counts")
}

func TestHandleFollowsTheDefaultGuard(t *testing.T) {
	h := api.Resource("GET /followed")
	assert.Equal(t, "GET /followed", h.Name())
	a, b := newGuard(t, api.Config{}), newGuard(t, api.Config{})
	for _, g := range []*api.Guard{a, b, a} {
		restore := api.SetDefault(g)
		assert.NoError(t, h.Do(t.Context(), func(context.Context) error { return nil }))
		restore()
	}
	assert.EqualValues(t, 2, passes(a, "GET /followed"))
	assert.EqualValues(t, 1, passes(b, "GET /followed"))
}

func TestHandleBeyondTheCap(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g := newGuard(t, api.Config{Clock: clock, Caps: node.Caps{Resources: 1}})
	first, second := g.Resource("a"), g.Resource("c")
	for _, h := range []*api.Handle{first, second, second} {
		e, err := h.Entry(t.Context())
		require.NoError(t, err)
		e.Exit()
	}
	assert.EqualValues(t, 2, passes(g, node.OverflowName))
	clock.Advance(2 * time.Minute) // now the first can be evicted
	e, err := second.Entry(t.Context())
	require.NoError(t, err)
	e.Exit()
	assert.EqualValues(t, 1, passes(g, "c"))
}

func TestHandleWithoutAName(t *testing.T) {
	_, err := api.Resource("").Entry(t.Context())
	assert.ErrorIs(t, err, core.ErrInvalid)
}

func TestHandleDoMarksFailures(t *testing.T) {
	g := newGuard(t, api.Config{})
	h, bad := g.Resource("GET /orders"), errors.New("bad")
	assert.ErrorIs(t, h.Do(t.Context(), func(context.Context) error { return bad }), bad)
	r, _ := g.Tree().Resource("GET /orders")
	assert.EqualValues(t, 1, r.Lifetime.Exception)
}

// Nodes are evicted under calls by handle and by name: every call is in the tree afterwards.
func TestHandleWhileNodesLeave(t *testing.T) {
	const callers, calls = 4, 500
	g := newGuard(t, api.Config{})
	h := g.Resource("GET /orders")
	var running, evicting sync.WaitGroup
	done := make(chan struct{})
	evicting.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				g.Engine().Tree().Evict(math.MaxInt64 / 2) // as if everything had been idle for long
			}
		}
	})
	for i := range callers {
		running.Go(func() {
			for range calls {
				e, err := h.Entry(t.Context())
				if i%2 == 1 {
					e.Exit()
					e, err = g.Entry(t.Context(), "GET /orders")
				}
				assert.NoError(t, err)
				e.Exit()
			}
		})
	}
	running.Wait()
	close(done)
	evicting.Wait()
	e, err := h.Entry(t.Context())
	require.NoError(t, err)
	e.Exit()
	assert.EqualValues(t, callers/2*calls*3+1, passes(g, "GET /orders"))
}

func TestHandleDoesNotAllocate(t *testing.T) {
	g := newGuard(t, api.Config{}, flow.Rule{Resource: "GET /orders", Threshold: 1e9})
	h, ctx := g.Resource("GET /orders"), t.Context()
	race.AllocatesNothing(t, 1000, func() {
		e, _ := h.Entry(ctx, api.Inbound(), api.Units(3))
		e.Exit()
	})
}
