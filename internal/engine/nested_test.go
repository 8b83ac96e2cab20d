package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
)

// A context of an entry has the values of the call's context, and costs one allocation.
func TestEntryContext(t *testing.T) {
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	defer g.Close()
	type key struct{}
	outer, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, 7), time.Hour)
	defer cancel()
	e, err := g.Entry(outer, "orders")
	require.NoError(t, err)
	ctx := e.Context()
	assert.Equal(t, 7, ctx.Value(key{}))
	deadline, ok := ctx.Deadline()
	assert.True(t, ok)
	assert.WithinDuration(t, time.Now().Add(time.Hour), deadline, time.Minute)
	inner, stop := context.WithCancel(ctx)
	defer stop()
	cancel()
	<-inner.Done()
	assert.ErrorIs(t, inner.Err(), context.Canceled)
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { ctx = e.Context() }), 1.0)
	e.Exit()
}

// A call may turn out late to be long-lived, without effect on the next call in its state.
func TestSetLongLived(t *testing.T) {
	clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
	g, err := api.New(api.Config{Clock: clock})
	require.NoError(t, err)
	defer g.Close()
	for i := range 4 {
		e, err := g.Entry(t.Context(), "stream")
		require.NoError(t, err)
		clock.Advance(time.Millisecond)
		if i%2 == 0 {
			e.SetLongLived()
		}
		e.Exit()
		e.SetLongLived() // no call
	}
	n, _ := g.Tree().Resource("stream")
	assert.EqualValues(t, 4, n.Lifetime.Exited)
	assert.EqualValues(t, 2, n.Lifetime.LongLived)
	assert.Equal(t, time.Millisecond, n.Lifetime.AvgRT())
	api.Admitted{}.SetLongLived()
}
