package upstream

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func budgeted() Rule { return Rule{ID: "t", Resource: get, Retries: Retries{Share: 0.2, Least: 3}} }

// Retries beyond the budget are refused without a time to come back; other calls are not, and raise it.
func TestRetryBudget(t *testing.T) {
	g := newGuard(t, budgeted())
	var running []engine.Entry
	for range 3 {
		running = append(running, g.enter(get, engine.Retry()))
	}
	b := g.refused(get, engine.Retry())
	assert.ErrorIs(t, b, core.ErrRetryBudget)
	assert.ErrorIs(t, b, core.ErrBlocked)
	_, known := b.RetryAfter()
	assert.False(t, known)
	for range 16 { // with the next retry, 20 calls
		g.refused(get, engine.Retry())
		running = append(running, g.enter(get))
	}
	running = append(running, g.enter(get, engine.Retry()))
	g.refused(get, engine.Retry())
	assert.Equal(t, Status{Kind: core.KindUpstream, Rule: "t", Resource: get, Retries: 4, Budget: 4}, g.status())
	for _, e := range running {
		e.Exit()
	}
	s := g.status()
	assert.Zero(t, s.Retries)
	assert.EqualValues(t, 3, s.Budget)
	assert.EqualValues(t, 18, trial.Figures(t, g.Engine, "t").Refused)
}

// A context marks all its calls, nested ones and those of other origins too.
func TestRetriesByContext(t *testing.T) {
	g := newGuard(t, Rule{ID: "t", Resource: "*", Retries: Retries{Share: 0.01, Least: 1}})
	ctx := engine.WithRetry(t.Context())
	e, err := g.Enter(ctx, "outer", nil)
	require.NoError(t, err)
	defer e.Exit()
	for _, ctx := range []context.Context{
		ctx, e.Context(), engine.WithOrigin(ctx, "x"), engine.WithContext(ctx, "x"), engine.WithRetry(engine.WithOrigin(t.Context(), "x")), engine.WithRetry(nil),
	} {
		inner, err := g.Enter(ctx, get, nil)
		require.NoError(t, err)
		_, err = g.Enter(ctx, get, nil)
		require.ErrorIs(t, err, core.ErrRetryBudget)
		inner.Exit()
	}
	g.enter("outer").Exit()
}

// Other refusals don't match ErrRetryBudget, and a call that another rule refuses gives its place
// back.
func TestOtherRefusalsAreNoBudget(t *testing.T) {
	r := budgeted()
	r.Retries.Least, r.Throttle.K = 1, 2
	g := newGuard(t, r)
	for range 200 {
		g.call(get, asks(0))
	}
	for range 10 {
		assert.NotErrorIs(t, g.refused(get, engine.Retry()), core.ErrRetryBudget)
	}
	assert.Zero(t, g.status().Retries)
	assert.NotErrorIs(t, core.NewBlockError(core.BlockError{}, nil), core.ErrRetryBudget)
}

// Retries in shadow mode are counted as they would be; calls that would be refused hold nothing.
func TestRetriesInShadowMode(t *testing.T) {
	r := budgeted()
	r.Mode = spec.Shadow
	g := newGuard(t, r)
	var running []engine.Entry
	for range 5 {
		running = append(running, g.enter(get, engine.Retry()))
	}
	assert.EqualValues(t, 3, g.status().Retries)
	assert.EqualValues(t, 2, trial.Figures(t, g.Engine, "t").ShadowBlocked)
	for _, e := range running {
		e.Exit()
	}
	assert.Zero(t, g.status().Retries)
}

// Calls in flight keep their places when the rule changes, or is removed.
func TestReloadsKeepRetries(t *testing.T) {
	g := newGuard(t, budgeted())
	var running []engine.Entry
	for range 3 {
		running = append(running, g.enter(get, engine.Retry()))
	}
	r := budgeted()
	r.Retries.Least = 2
	g.load(r)
	running[0].Exit()
	g.refused(get, engine.Retry())
	running[1].Exit()
	running[1] = g.enter(get, engine.Retry())
	g.load()
	for _, e := range running {
		e.Exit()
	}
}

// Under random scripts, the budget admits exactly as a list of the calls in flight would.
func TestBudgetAgainstItsTwin(t *testing.T) {
	for seed := range uint64(200) {
		script := rand.New(rand.NewPCG(seed, 3))
		r := Retries{Share: 0.05 + 0.9*script.Float64(), Least: 1 + script.IntN(4)}
		var b budget
		var flying []int64 // tokens of the calls in flight
		retries := 0
		for range 500 {
			if len(flying) > 0 && script.IntN(5) < 2 {
				i := script.IntN(len(flying))
				if flying[i] == oneRetry {
					retries--
				}
				b.release(flying[i])
				flying = slices.Delete(flying, i, i+1)
				continue
			}
			retry := script.IntN(2) == 0
			want := !retry || retries+1 <= max(r.Least, int(r.Share*float64(len(flying)+1)))
			if retry {
				require.Equal(t, want, b.fits(r))
			}
			held, ok := b.take(r, retry)
			require.Equal(t, want, ok)
			if ok {
				flying = append(flying, held)
				if retry {
					retries++
				}
			}
			calls, n := b.inFlight()
			require.EqualValues(t, len(flying), calls)
			require.EqualValues(t, retries, n)
		}
	}
}
