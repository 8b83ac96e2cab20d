package hotspot_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
)

// A value that was charged more than its limit is refused until that has passed, and the refusal
// knows the time; other values are not affected. A charge finds a value that was evicted meanwhile.
func TestCostsOfAnEvictedValue(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Resource: "chat", Param: "user", Unit: "tokens", Threshold: 100, MaxValues: 1})
	enter := func(user string, n int64) (engine.Entry, error) {
		return g.Enter(t.Context(), "chat", []engine.Option{engine.Param("user", user), engine.Cost("tokens", n)})
	}
	long, err := enter("a", 10)
	require.NoError(t, err)
	g.clock.Advance(2 * time.Second)
	other, err := enter("b", 10) // takes the cell of a
	require.NoError(t, err)
	other.Settle("tokens", 0)
	other.Exit()
	g.clock.Advance(2 * time.Second)
	long.Settle("tokens", 200)
	_, err = enter("a", 50)
	var b *core.BlockError
	require.ErrorAs(t, err, &b)
	wait, known := b.RetryAfter()
	assert.True(t, known)
	assert.InDelta(t, 1.05, wait.Seconds(), 0.06)
	long.Exit()
	g.clock.Advance(wait)
	again, err := enter("a", 50)
	require.NoError(t, err)
	again.Exit()
}

// A call of a value without a cell is settled with the value, which may have one by then: others that
// share the rest have no part in it.
// known bug 262
func TestCostsOfTheRest(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Unit: "tokens", Threshold: 100, MaxValues: 1})
	enter := func(n int64, users ...string) (engine.Entry, error) {
		opts := []engine.Option{engine.Cost("tokens", n)}
		for _, u := range users {
			opts = append(opts, user(u))
		}
		return g.enter(opts...)
	}
	passes := func(n int64, user string) engine.Entry {
		t.Helper()
		e, err := enter(n, user)
		require.NoError(t, err)
		return e
	}
	blocks := func(n int64, user string) {
		t.Helper()
		_, err := enter(n, user)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	passes(10, "first").Exit() // takes the only cell
	long := passes(10, "long")
	g.at(3 * time.Second)
	passes(10, "long").Exit() // now it has the cell
	long.Settle("tokens", 500)
	long.Exit()
	blocks(1, "long")
	passes(100, "other").Exit()

	g.at(10 * time.Second)
	passes(10, "first").Exit()
	both, err := enter(10, "a", "b")
	require.NoError(t, err)
	require.NoError(t, both.More(t.Context(), "tokens", 5))
	both.Settle("tokens", 0)
	both.Exit()
	passes(100, "a").Exit()

	g.at(20 * time.Second)
	first := passes(10, "first")
	long = passes(10, "long")
	require.NoError(t, long.More(t.Context(), "tokens", 5))
	first.Settle("tokens", 0)
	first.Exit()
	require.NoError(t, long.More(t.Context(), "tokens", 60)) // from its own cell, in the same bucket
	passes(60, "other").Exit()
	long.Settle("tokens", 0)
	long.Exit()
	blocks(60, "another")
}

// A call that names many values is settled for each of them, with what it asked for meanwhile.
func TestCostsOfManyValues(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Resource: "chat", Param: "user", Unit: "tokens", Threshold: 20, Interval: time.Minute})
	users := make([]string, 100)
	for i := range users {
		users[i] = fmt.Sprint("u", i)
	}
	e, err := g.Enter(t.Context(), "chat", []engine.Option{engine.Param("user", users), engine.Cost("tokens", 10)})
	require.NoError(t, err)
	require.NoError(t, e.More(t.Context(), "tokens", 5))
	e.Settle("tokens", 12)
	e.Exit()
	for _, user := range users {
		for _, n := range []int64{9, 8} {
			e, err := g.Enter(t.Context(), "chat", []engine.Option{engine.Param("user", user), engine.Cost("tokens", n)})
			require.Equal(t, n == 8, err == nil, user)
			e.Exit()
		}
	}
}
