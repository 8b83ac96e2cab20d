package api_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
)

// judged returns how many calls of each level a rule for all resources has judged, the highest first.
func judged(g *api.Guard) (calls [4]int64) {
	for _, f := range g.RuleStats() {
		for _, l := range f.Details.(adaptive.Stats).Limits {
			for i, level := range l.Levels {
				calls[i] += level.Offered
			}
		}
	}
	return calls
}

// A call has the level of its option, or else of its context, also below other calls and under other
// names and origins; critical is the default. The option is for one call.
func TestCriticality(t *testing.T) {
	guard := newGuard(t, api.Config{})
	require.NoError(t, guard.LoadRules(api.RuleSet{Adaptive: []adaptive.Rule{{Resource: "*", Shed: api.ShedLevels}}}))
	entry, err := guard.Entry(context.Background(), "GET /search", api.Criticality(api.Sheddable))
	require.NoError(t, err)
	defer entry.Exit()
	below, err := guard.Entry(entry.Context(), "sql")
	require.NoError(t, err)
	below.Exit()
	assert.Equal(t, [4]int64{0, 1, 0, 1}, judged(guard))

	ctx := api.WithCriticality(t.Context(), api.SheddablePlus)
	for _, ctx := range []context.Context{ctx, api.WithOrigin(ctx, "app"), api.WithContext(ctx, "batch"), api.WithOrigin(api.WithContext(ctx, "batch"), "app")} {
		e, err := guard.Entry(ctx, "sql")
		require.NoError(t, err)
		for _, ctx := range []context.Context{ctx, e.Context()} {
			level, given := api.CriticalityOf(ctx)
			assert.Equal(t, api.SheddablePlus, level)
			assert.True(t, given)
		}
		e.Exit()
	}
	e, err := guard.Entry(ctx, "sql", api.Criticality(api.CriticalPlus))
	require.NoError(t, err)
	e.Exit()
	assert.Equal(t, [4]int64{1, 1, 4, 1}, judged(guard))

	level, given := api.CriticalityOf(t.Context())
	assert.Equal(t, api.Critical, level)
	assert.False(t, given)
	from := api.WithOrigin(api.WithContext(t.Context(), "batch"), "app")
	e, err = guard.Entry(api.WithCriticality(from, 9), "sql")
	require.NoError(t, err)
	e.Exit()
	assert.Equal(t, [4]int64{1, 2, 4, 1}, judged(guard), "what is no level is the default")
	_, ok := guard.Tree().Resource("sql")
	assert.True(t, ok)
}

// The words of other processes are bounded, and unknown ones counted.
func TestReceivedCriticality(t *testing.T) {
	g := newGuard(t, api.Config{})
	for _, tt := range []struct {
		word   string
		atMost api.Level
		want   api.Level
	}{
		{"", api.CriticalPlus, api.Critical}, {"", api.Sheddable, api.Sheddable},
		{"criticalPlus", api.CriticalPlus, api.CriticalPlus}, {"criticalPlus", api.Critical, api.Critical},
		{"criticalPlus", api.Sheddable, api.Sheddable}, {" sheddable ; c=37", api.CriticalPlus, api.Sheddable},
		{"Sheddable", api.CriticalPlus, api.Critical}, {"\x00", api.SheddablePlus, api.SheddablePlus}, {"criticality(0)", api.CriticalPlus, api.Critical},
	} {
		level, given := api.CriticalityOf(g.WithReceivedCriticality(t.Context(), tt.word, tt.atMost))
		assert.Equal(t, tt.want, level, tt.word)
		assert.True(t, given)
	}
	assert.EqualValues(t, 3, g.UnknownCriticalities())
}
