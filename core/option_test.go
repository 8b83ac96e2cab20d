package core_test

import (
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
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
		opts []core.Option
		want seen
	}{
		{name: "none", want: plain},
		{name: "zero", opts: []core.Option{{}}, want: plain},
		{name: "count", opts: []core.Option{core.Units(7)}, want: seen{units: 7}},
		{name: "count 0", opts: []core.Option{core.Units(0)}, want: plain},
		{name: "count below", opts: []core.Option{core.Units(math.MinInt)}, want: plain},
		{name: "the most", opts: []core.Option{core.Units(stat.MaxUnits)}, want: seen{units: stat.MaxUnits}},
		{name: "the last count holds", opts: []core.Option{core.Units(7), core.Units(2)}, want: seen{units: 2}},
		{name: "inbound", opts: []core.Option{core.Inbound()}, want: seen{units: 1, inbound: true}},
		{name: "prioritized", opts: []core.Option{core.Prioritized()}, want: seen{units: 1, prioritized: true}},
		{name: "args", opts: []core.Option{core.Args("a", 2, nil)}, want: seen{units: 1, args: []any{"a", 2, nil}}},
		{name: "no args", opts: []core.Option{core.Args()}, want: plain},
		{name: "all", opts: []core.Option{core.Args(1), core.Inbound(), core.Units(3), core.Prioritized()},
			want: seen{3, true, true, []any{1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got seen
			spy := &fake{name: "spy", ask: func(inv *core.Invocation) core.Verdict {
				got = seen{inv.Units(), inv.Inbound(), inv.Prioritized(), inv.Args()}
				return core.Verdict{}
			}}
			e, _ := newEngine(t, core.Config{Chain: core.NewChain(spy)})
			for range 3 { // on the same state, if the pool likes
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
	e, _ := newEngine(t, core.Config{})
	for _, n := range []int{stat.MaxUnits + 1, math.MaxInt32, math.MaxInt} {
		entry, err := e.Enter(t.Context(), "orders", []core.Option{core.Units(n), core.Inbound(), core.Prioritized()})
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
	e, _ := newEngine(t, core.Config{})
	entry, err := e.Enter(t.Context(), "", nil)
	require.ErrorIs(t, err, core.ErrInvalid)
	assert.EqualError(t, err, "penstock: invalid call: the resource has no name")
	assert.Zero(t, entry)
}

func TestEntryDoesNotAllocate(t *testing.T) {
	e, _ := newEngine(t, core.Config{Chain: trial.Chain()})
	ctx, errFailed := core.WithOrigin(core.WithContext(t.Context(), "web"), "app"), io.EOF
	race.AllocatesNothing(t, 1000, func() {
		entry, err := e.Enter(ctx, "orders", []core.Option{core.Inbound(), core.Units(3), core.Prioritized()})
		if err != nil {
			t.Error(err)
		}
		entry.Fail(errFailed)
		entry.Exit()
		entry.Exit()
	})
}
