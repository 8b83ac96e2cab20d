package outlier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/outlier"
)

// cancelled makes a call to an endpoint whose context is cancelled while it runs.
func (g *guard) cancelled(endpoint string) {
	g.t.Helper()
	ctx, cancel := context.WithCancel(g.t.Context())
	e, err := g.Enter(ctx, "orders", []engine.Option{engine.Endpoint(endpoint)})
	require.NoError(g.t, err)
	cancel()
	e.Fail(errOwn)
	e.Exit()
}

// Calls whose callers gave up eject no endpoint, and as probes they neither bring one back nor keep
// the next call from being one.
// known bug 233
func TestNeutralCalls(t *testing.T) {
	g := newGuard(t, quick("o"))
	g.calls("a b")
	for range 3 {
		g.cancelled("a")
	}
	assert.Empty(t, g.out())
	g.calls("a!")
	assert.Equal(t, "a", g.out())
	g.at(time.Second)
	for range 3 {
		g.cancelled("a")
	}
	ejected := g.details().Ejected
	require.Len(t, ejected, 1)
	assert.Equal(t, breaker.HalfOpen, ejected[0].State)
	assert.EqualValues(t, 3, ejected[0].Neutral)
	assert.Contains(t, g.details().Lines(start.Add(time.Second))[0], "3 neutral")
	assert.Equal(t, "a", g.calls("a"))
	assert.Empty(t, g.details().Ejected)
}

// An endpoint that fails now and then is ejected, even if many callers give up in between.
func TestNeutralCallsEndNoRow(t *testing.T) {
	g := newGuard(t, outlier.Rule{ID: "o", Resource: "orders", Strategy: breaker.ConsecutiveErrors, Threshold: 3})
	g.calls("b")
	for range 3 {
		assert.Empty(t, g.out())
		g.cancelled("a")
		g.calls("a!")
	}
	assert.Equal(t, "a", g.out())
}
