package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/node"
)

var errDown, errNotFound = errors.New("down"), errors.New("not found")

func isDown(err error) bool { return errors.Is(err, errDown) }

// failed reports whether a call of a resource that reports an error counts as failed.
func failed(t *testing.T, e *engine.Engine, name string, err error) bool {
	t.Helper()
	entry, refusal := e.Enter(t.Context(), name, nil)
	require.NoError(t, refusal)
	r, ok := e.FindResource(name)
	if !ok {
		r, _ = e.FindResource(node.OverflowName)
	}
	before := r.Totals().Exception
	entry.Fail(err)
	entry.Exit()
	return r.Totals().Exception > before
}

// A resource's own function takes precedence over the general one, and isn't called for errors that
// no function decides on.
func TestFailWhen(t *testing.T) {
	refused := &core.BlockError{Kind: core.KindFlow, Resource: "other", Rule: "rule"}
	all := func(error) bool { return true }
	for _, tt := range []struct {
		err             error
		own, everybodys func(error) bool
		want            bool
	}{
		{errDown, isDown, nil, true},
		{fmt.Errorf("more: %w", errDown), isDown, nil, true},
		{errNotFound, isDown, nil, false},
		{errNotFound, isDown, all, false},
		{errNotFound, nil, isDown, false},
		{errNotFound, nil, nil, true},
		{context.Canceled, nil, nil, false},
		{context.Canceled, isDown, nil, false},
		{context.Canceled, all, nil, true},
		{engine.Ignore(errDown), all, nil, false},
		{refused, all, nil, false},
		{nil, all, nil, false},
	} {
		e, _ := newEngine(t, engine.Config{Failure: tt.everybodys})
		if tt.own != nil {
			e.FailWhen("orders", tt.own)
		}
		assert.Equal(t, tt.want, failed(t, e, "orders", tt.err), "%+v", tt)
		wanted, _ := newEngine(t, engine.Config{Failure: tt.everybodys})
		assert.Equal(t, failed(t, wanted, "carts", tt.err), failed(t, e, "carts", tt.err), "another's: %+v", tt)
	}
}

// The last function set applies, even to calls that are under way, until it is removed.
func TestFailWhenIsSaidAnew(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	assert.True(t, failed(t, e, "orders", errNotFound))
	e.FailWhen("orders", isDown)
	e.FailWhen("carts", func(error) bool { return false })
	assert.False(t, failed(t, e, "orders", errNotFound))
	assert.True(t, failed(t, e, "orders", errDown))
	assert.False(t, failed(t, e, "carts", errDown))
	e.FailWhen("orders", nil)
	e.FailWhen("nobody", nil)
	assert.True(t, failed(t, e, "orders", errNotFound))
	assert.False(t, failed(t, e, "carts", errDown))

	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	e.FailWhen("orders", isDown)
	entry.Fail(errNotFound)
	entry.Exit()
	assert.EqualValues(t, 3, resource(t, e, "orders").Totals().Exception)
	entry.Fail(errDown) // it has ended
}

// If the function panics, the call failed, the panic is counted, and the call ends like any other.
func TestFailWhenPanics(t *testing.T) {
	e, _ := newEngine(t, engine.Config{Failure: func(error) bool { return false }})
	e.FailWhen("orders", func(error) bool { panic("x") })
	assert.True(t, failed(t, e, "orders", errDown))
	assert.EqualValues(t, 1, e.Failures())
	assert.Zero(t, resource(t, e, "orders").InFlight())
}

// A function that ends the call, or makes another, doesn't deadlock.
func TestFailWhenIsAskedUnderNoLock(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	e.FailWhen("orders", func(error) bool {
		entry.Exit()
		assert.False(t, failed(t, e, "carts", nil))
		e.FailWhen("orders", nil)
		return true
	})
	entry.Fail(errDown)
	assert.Zero(t, resource(t, e, "orders").Totals().Exception, "it has ended before")
	assert.True(t, failed(t, e, "orders", errNotFound))
}

// The function applies to the name that a call asks for, even when rules are loaded, when the
// resource leaves and returns, and beyond the cap, where resources share a node.
func TestFailWhenOutlivesResources(t *testing.T) {
	e, clock := newEngine(t, engine.Config{Caps: node.Caps{Resources: 1}})
	for _, name := range []string{"orders", "carts"} {
		e.FailWhen(name, isDown)
	}
	check := func() {
		t.Helper()
		for _, name := range []string{"orders", "carts"} {
			assert.False(t, failed(t, e, name, errNotFound), name)
			assert.True(t, failed(t, e, name, errDown), name)
			assert.True(t, failed(t, e, "mail", errNotFound), "no function is set")
		}
	}
	check()
	require.NoError(t, e.Update(func(*engine.SnapshotBuilder) error { return nil }))
	check()
	clock.Advance(time.Hour)
	assert.True(t, failed(t, e, "mail", errNotFound))
	_, there := e.FindResource("orders")
	require.False(t, there, "it has left for another")
	check()
}

// Each call uses its own resource's function, even while functions are set, and a stale entry never
// uses the function of the call that now has its state.
func TestFailWhenWhileCallsAreMade(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	own := make(map[string]error)
	only := func(name string) func(error) bool {
		return func(err error) bool {
			if !errors.Is(err, own[name]) {
				t.Errorf("%s is asked about %v", name, err)
			}
			return true
		}
	}
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		own[name] = errors.New(name)
		e.FailWhen(name, only(name))
	}
	const calls = 2000
	var callers sync.WaitGroup
	for _, name := range names {
		callers.Go(func() {
			for range calls {
				entry, err := e.Enter(t.Context(), name, nil)
				if err != nil {
					t.Error(err)
					return
				}
				var late sync.WaitGroup
				late.Go(func() { entry.Fail(own[name]) })
				entry.Fail(own[name])
				entry.Exit()
				late.Wait()
			}
		})
		callers.Go(func() {
			for range calls {
				e.FailWhen(name, only(name))
			}
		})
	}
	callers.Wait()
	for _, name := range names {
		assert.EqualValues(t, calls, resource(t, e, name).Totals().Exception)
	}
}

// A function for a resource costs no allocation.
func TestFailWhenDoesNotAllocate(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	e.FailWhen("a", isDown)
	ctx := t.Context()
	race.AllocatesNothing(t, 1000, func() {
		entry, _ := e.Enter(ctx, "a", nil)
		entry.Fail(errDown)
		entry.Exit()
	})
}
