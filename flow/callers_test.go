package flow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/node"
)

// from makes a call from origin and returns its refusal, or nil if it passed.
func (g *guard) from(origin string, opts ...engine.Option) *core.BlockError {
	g.t.Helper()
	e, err := g.Enter(engine.WithOrigin(g.t.Context(), origin), "orders", opts)
	e.Exit()
	if err == nil {
		return nil
	}
	b, ok := errors.AsType[*core.BlockError](err)
	require.True(g.t, ok, err)
	return b
}

// comesAgain formats the RetryAfter of a refusal.
func comesAgain(b *core.BlockError) string {
	wait, known := b.RetryAfter()
	if !known {
		return "unknown"
	}
	return wait.String()
}

// Each of the other callers gets the RetryAfter of its own window, regardless of the units that the
// others have used.
func TestRetryAfterOfOthers(t *testing.T) {
	rule := flow.Rule{Resource: "orders", ID: "r", Threshold: 2, Origin: flow.OriginOther, Interval: time.Second, Window: flow.Ring}
	g := newGuard(t, rule)
	for _, s := range []struct {
		at     time.Duration
		origin string
	}{{0, "a"}, {0, "a"}, {600 * time.Millisecond, "b"}, {600 * time.Millisecond, "b"}} {
		g.at(s.at)
		require.Nil(t, g.from(s.origin))
	}
	a, b := g.from("a"), g.from("b")
	require.NotNil(t, a)
	require.NotNil(t, b)
	assert.Equal(t, flow.OriginOther, a.Origin)
	assert.Equal(t, "400ms", comesAgain(a))
	assert.Equal(t, "900ms", comesAgain(b))
	limit, known := b.Limit()
	assert.True(t, known)
	assert.EqualValues(t, 2, limit)
	assert.Same(t, a, g.from("a"), "each caller has one")
	assert.EqualValues(t, 3, g.Rules().Family(core.KindFlow).Stats()[0].Refused, "all count as their rule's")

	g.at(time.Second)
	assert.Nil(t, g.from("a"), "it was told so")
	assert.NotNil(t, g.from("b"))
	g.at(time.Hour)
	assert.Equal(t, "0s", comesAgain(b))

	rule.Threshold = 1
	rule.Interval = 2 * time.Second
	g.load(rule)
	require.Nil(t, g.from("a"))
	assert.Equal(t, "2s", comesAgain(g.from("a")), "the new rule's")
	assert.Equal(t, "2s", comesAgain(a), "also where it was refused by the old one")
}

// A caller beyond the cap on nodes shares a node, and gets the RetryAfter of the shared window.
func TestRetryAfterBeyondTheCap(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Origins: 1}},
		flow.Rule{Resource: "orders", Threshold: 1, Origin: flow.OriginOther, Interval: time.Second, Window: flow.Ring})
	require.Nil(t, g.from("a"))
	require.Nil(t, g.from("b"))
	refused := g.from("c")
	require.NotNil(t, refused)
	assert.Equal(t, "1s", comesAgain(refused))
}

// Even if many callers are refused, each gets its own RetryAfter, and few refusals are cached.
// Refusing a cached caller again doesn't allocate.
func TestManyOthers(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 1, Origin: flow.OriginOther, Interval: time.Second, Window: flow.Ring})
	for i := range 600 {
		name := fmt.Sprint("caller", i)
		require.Nil(t, g.from(name))
		require.Equal(t, "1s", comesAgain(g.from(name)))
	}
	assert.Same(t, g.from("caller1"), g.from("caller1"))
	assert.NotSame(t, g.from("caller599"), g.from("caller599"))
	ctx := engine.WithOrigin(t.Context(), "caller1")
	race.AllocatesNothing(t, 1000, func() {
		_, _ = g.Enter(ctx, "orders", nil)
	})
}
