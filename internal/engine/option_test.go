package engine_test

import (
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/stat"
)

func TestOptions(t *testing.T) {
	type seen struct {
		units                int64
		inbound, prioritized bool
		args                 []any
	}
	plain := seen{units: 1}
	for _, tt := range []struct {
		name string
		opts []engine.Option
		want seen
	}{
		{name: "none", want: plain},
		{name: "zero", opts: []engine.Option{{}}, want: plain},
		{name: "count", opts: []engine.Option{engine.Units(7)}, want: seen{units: 7}},
		{name: "count 0", opts: []engine.Option{engine.Units(0)}, want: plain},
		{name: "count below", opts: []engine.Option{engine.Units(math.MinInt)}, want: plain},
		{name: "the most", opts: []engine.Option{engine.Units(stat.MaxUnits)}, want: seen{units: stat.MaxUnits}},
		{name: "the last count holds", opts: []engine.Option{engine.Units(7), engine.Units(2)}, want: seen{units: 2}},
		{name: "inbound", opts: []engine.Option{engine.Inbound()}, want: seen{units: 1, inbound: true}},
		{name: "prioritized", opts: []engine.Option{engine.Prioritized()}, want: seen{units: 1, prioritized: true}},
		{name: "args", opts: []engine.Option{engine.Args("a", 2, nil)}, want: seen{units: 1, args: []any{"a", 2, nil}}},
		{name: "no args", opts: []engine.Option{engine.Args()}, want: plain},
		{name: "all", opts: []engine.Option{engine.Args(1), engine.Inbound(), engine.Units(3), engine.Prioritized()},
			want: seen{3, true, true, []any{1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got seen
			spy := &fake{name: "spy", ask: func(inv *engine.Invocation) engine.Verdict {
				got = seen{inv.Units(), inv.Inbound(), inv.Prioritized(), inv.Args()}
				return engine.Verdict{}
			}}
			e, _ := newEngine(t, engine.Config{Chain: engine.NewChain(spy)})
			for range 3 { // on the same state, if the pool returns it
				enter(t, e, t.Context(), tt.opts...).Exit()
				assert.Equal(t, tt.want, got)
				enter(t, e, t.Context()).Exit()
				assert.Equal(t, plain, got, "nothing is left for the next call")
			}
		})
	}
}

// known bug 34
func TestTooManyUnits(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	for _, n := range []int{stat.MaxUnits + 1, math.MaxInt32, math.MaxInt} {
		entry, err := e.Enter(t.Context(), "orders", []engine.Option{engine.Units(n), engine.Inbound(), engine.Prioritized()})
		require.ErrorIs(t, err, core.ErrInvalid)
		assert.NotErrorIs(t, err, core.ErrBlocked)
		assert.Zero(t, entry)
	}
	_, found := e.FindResource("orders")
	assert.False(t, found, "counted nowhere")
	enter(t, e, t.Context()).Exit()
	totals := resource(t, e, "orders").Totals()
	assert.Equal(t, int64(1), totals.Pass)
	totals = e.Tree().Inbound().Totals()
	assert.Zero(t, totals.Pass, "no option of the refused call is left")
}

func TestNoResourceName(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	entry, err := e.Enter(t.Context(), "", nil)
	require.ErrorIs(t, err, core.ErrInvalid)
	assert.EqualError(t, err, "penstock: invalid call: the resource has no name")
	assert.Zero(t, entry)
}

func TestEntryDoesNotAllocate(t *testing.T) {
	e, _ := newEngine(t, engine.Config{Chain: trial.Chain()})
	ctx, errFailed := engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app"), io.EOF
	race.AllocatesNothing(t, 1000, func() {
		entry, err := e.Enter(ctx, "orders", []engine.Option{engine.Inbound(), engine.Units(3), engine.Prioritized()})
		if err != nil {
			t.Error(err)
		}
		entry.Fail(errFailed)
		entry.Exit()
		entry.Exit()
	})
}
