package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// A handler reaches the call of its request, also through contexts derived from it; a call that has
// exited, and a context without one, do nothing.
func TestFromContext(t *testing.T) {
	g := newGuard(t, api.Config{Clock: api.NewManualClock(time.Unix(1_800_000_000, 0)), Percentiles: true}, // whose slot counts, too
		flow.Rule{Resource: "POST /chat", Unit: "tokens", Threshold: 100})
	settled := func() core.UnitCounts {
		all := g.UnitStats("POST /chat")
		require.Len(t, all, 1)
		return all[0].Total
	}
	e, err := g.Entry(t.Context(), "POST /chat", api.Cost("tokens", 100))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(api.WithOrigin(e.Context(), "app"))
	defer cancel()
	require.ErrorIs(t, api.FromContext(ctx).More(ctx, "tokens", 1), api.ErrBlocked)
	api.FromContext(ctx).Settle("tokens", 30)
	other, err := g.Entry(ctx, "POST /chat", api.Cost("tokens", 70))
	require.NoError(t, err)
	other.Exit()
	e.Exit()
	assert.Equal(t, core.UnitCounts{Reserved: 170, Refunded: 70, Refused: 1}, settled())

	for _, none := range []context.Context{ctx, t.Context(), context.Background()} {
		api.FromContext(none).Settle("tokens", 5)
		api.FromContext(none).Fail(errors.New("no call"))
	}
	assert.Equal(t, api.Admitted{}, api.FromContext(t.Context()))
	require.ErrorIs(t, api.FromContext(ctx).More(ctx, "tokens", 1), api.ErrExited)
	require.NoError(t, api.FromContext(t.Context()).More(ctx, "tokens", 1), "no call, no limit")
}

// Calls with impossible costs are refused, and say why.
func TestCostsThatAreInvalid(t *testing.T) {
	g := newGuard(t, api.Config{})
	nine := make([]api.Option, 9)
	for i := range nine {
		nine[i] = api.Cost(strings.Repeat("x", i+1), 1)
	}
	for text, opts := range map[string][]api.Option{
		"costs in 9 units, a call has at most 8": nine,
		`unit "": use 1 to 64 letters`:           {api.Cost("", 1)},
		`unit "calls": use`:                      {api.Cost("calls", 1)},
		`unit "a b": use`:                        {api.Cost("a b", 1)},
		"a cost of more than 1099511627776 a":    {api.Cost("a", 1<<40), api.Cost("a", 1)},
	} {
		_, err := g.Entry(t.Context(), "chat", opts...)
		require.ErrorIs(t, err, api.ErrInvalid)
		require.ErrorContains(t, err, text)
	}
	e, err := g.Entry(t.Context(), "chat", nine[:8]...)
	require.NoError(t, err)
	require.ErrorIs(t, e.More(t.Context(), "a b", 1), api.ErrInvalid)
	require.ErrorIs(t, e.More(t.Context(), "a", 1<<40+1), api.ErrInvalid)
	e.Exit()
}
