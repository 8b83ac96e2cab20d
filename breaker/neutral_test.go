package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

var errRefused = &core.BlockError{Kind: core.KindFlow, Resource: "stock", Rule: "r"}

// endings are the ways in which a call can end that breakers ignore.
var endings = map[string]func(g *guard, takes time.Duration){
	"cancelled":            func(g *guard, takes time.Duration) { g.cancelled(takes, context.Canceled) },
	"cancelled, own error": func(g *guard, takes time.Duration) { g.cancelled(takes, errOwn) },
	"a nested refusal": func(g *guard, takes time.Duration) {
		g.call("orders", takes, fmt.Errorf("stock: %w", errRefused))
	},
}

// cancelled makes a call whose context is cancelled while it runs, and which reports err.
func (g *guard) cancelled(takes time.Duration, err error) {
	g.t.Helper()
	ctx, cancel := context.WithCancelCause(g.t.Context())
	e, refusal := g.Enter(ctx, "orders", nil)
	require.NoError(g.t, refusal)
	g.clock.Advance(takes)
	cancel(errors.New("a sibling failed"))
	e.Fail(err)
	e.Exit()
}

// A neutral probe neither closes a breaker nor opens it again: its slot goes to the next call, and
// the probes before it still count.
// known bug 233
func TestNeutralProbes(t *testing.T) {
	for name, ends := range endings {
		t.Run(name, func(t *testing.T) {
			rule := quick("b")
			rule.Probes = 2
			g := newGuard(t, rule)
			assert.Equal(t, "pass, b", g.calls("fg"))
			g.at(time.Second)
			g.changes()
			for range 5 {
				ends(g, 0)
			}
			assert.Equal(t, "open-halfOpen", g.changes())
			assert.Equal(t, "pass", g.calls("g"))
			ends(g, 0)
			status := g.status("b", "orders")
			assert.Equal(t, breaker.HalfOpen, status.State)
			assert.EqualValues(t, 6, status.Neutral)
			assert.Zero(t, status.Probes)
			assert.Contains(t, status.Text("orders", start.Add(time.Second)), "6 neutral")
			assert.Equal(t, "pass", g.calls("g"))
			assert.Equal(t, "halfOpen-closed", g.changes())
			assert.Zero(t, g.status("b", "orders").Neutral, "they were of the state before")
		})
	}
}

// Neutral calls neither end a row of failures nor dilute a share.
// known bug 233
func TestNeutralCallsDontCount(t *testing.T) {
	for name, ends := range endings {
		t.Run(name, func(t *testing.T) {
			for _, rule := range []breaker.Rule{
				{Strategy: breaker.ConsecutiveErrors, Threshold: 3},
				{Strategy: breaker.ErrorRatio, Threshold: 1, MinCalls: 3},
				{Strategy: breaker.ErrorCount, Threshold: 3, MinCalls: 3},
			} {
				rule.ID, rule.Resource = "b", "orders"
				g := newGuard(t, rule)
				for range 3 {
					for range 4 {
						ends(g, 0)
					}
					assert.Equal(t, breaker.Closed, g.state("b"), rule)
					g.calls("f")
				}
				assert.Equal(t, "closed-open", g.changes(), rule)
			}
		})
	}
}

// Neutral calls don't count in a recovery either.
func TestNeutralCallsWhileRecovering(t *testing.T) {
	for name, ends := range endings {
		t.Run(name, func(t *testing.T) {
			rule := quick("b")
			rule.Ramp, rule.Threshold, rule.MinCalls = time.Second, 1, 2
			g := newGuard(t, rule)
			g.calls("ff")
			g.at(time.Second)
			g.calls("g")
			g.at(4*time.Second - 1) // one of two calls passes
			g.changes()
			for range 5 {
				ends(g, 0)
				_, err := g.enter("orders")
				require.Error(t, err)
			}
			status := g.status("b", "orders")
			assert.Equal(t, breaker.Recovering, status.State)
			assert.Equal(t, [3]int64{0, 0, 5}, [3]int64{status.Calls, status.Bad, status.Neutral})
		})
	}
}

// Under SlowRatio, a neutral call that took longer than SlowRT counts as slow, even as a probe.
func TestNeutralSlowCalls(t *testing.T) {
	for name, ends := range endings {
		t.Run(name, func(t *testing.T) {
			rule := breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.SlowRatio, SlowRT: 100 * ms, Threshold: 1, MinCalls: 2, Recovery: time.Second}
			g := newGuard(t, rule)
			ends(g, 100*ms)
			status := g.status("b", "orders")
			assert.Equal(t, [3]int64{0, 0, 1}, [3]int64{status.Calls, status.Bad, status.Neutral})
			ends(g, 101*ms)
			ends(g, 101*ms)
			assert.Equal(t, "closed-open", g.changes())
			g.clock.Advance(time.Second)
			ends(g, 10*ms)
			assert.Equal(t, "open-halfOpen", g.changes())
			ends(g, 101*ms)
			assert.Equal(t, "halfOpen-open", g.changes())
		})
	}
}

// A success or failure of the resource counts even if the caller gave up; a call that timed out,
// and an error that the user's function classifies as a failure, count as failures.
func TestNotNeutral(t *testing.T) {
	errMissing := errors.New("no such order")
	timedOut, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	never, always := func(error) bool { return false }, func(error) bool { return true }
	for _, tt := range []struct {
		name     string
		ctx      context.Context
		failWhen func(error) bool
		err      error
		changes  string
	}{
		{"nil", gone, nil, nil, "halfOpen-closed"},
		{"ignored", gone, nil, engine.Ignore(errMissing), "halfOpen-closed"},
		{"ignored refusal", gone, nil, engine.Ignore(errRefused), "halfOpen-closed"},
		{"no failure", gone, never, errMissing, "halfOpen-closed"},
		{"no failure, cancelled", gone, never, context.Canceled, "halfOpen-closed"},
		{"a failure", gone, always, context.Canceled, "halfOpen-open"},
		{"already decided", gone, nil, engine.Certain(errMissing), "halfOpen-open"},
		{"decided twice", gone, never, engine.Certain(errMissing), "halfOpen-closed"},
		{"timed out", timedOut, nil, context.DeadlineExceeded, "halfOpen-open"},
		{"timed out, another error", timedOut, nil, context.Canceled, "halfOpen-open"},
		{"of another context", t.Context(), nil, context.Canceled, "halfOpen-closed"},
		{"another's time", gone, nil, context.DeadlineExceeded, ""},
		{"refused, regardless of the function", gone, always, errRefused, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(t, quick("b"))
			g.calls("f")
			g.FailWhen("orders", tt.failWhen)
			g.at(time.Second)
			e, err := g.Enter(tt.ctx, "orders", nil)
			require.NoError(t, err)
			g.changes()
			e.Fail(tt.err)
			e.Exit()
			assert.Equal(t, tt.changes, g.changes())
		})
	}
}

// If several outcomes of a call are reported, a failure takes precedence, in any order; a panic is a
// failure, even if the caller gave up.
func TestNeutralAndFailed(t *testing.T) {
	for _, errs := range [][]error{{errOwn, errRefused}, {errRefused, errOwn}} {
		g := newGuard(t, quick("b"))
		e := g.open("orders")
		for _, err := range errs {
			e.Fail(err)
		}
		e.Exit()
		assert.Equal(t, "closed-open", g.changes())
	}
	g := newGuard(t, quick("b"))
	ctx, cancel := context.WithCancel(t.Context())
	e, err := g.Enter(ctx, "orders", nil)
	require.NoError(t, err)
	cancel()
	assert.Panics(t, func() {
		defer e.ExitFailed()
		panic("down")
	})
	assert.Equal(t, "closed-open", g.changes())
}

// A forced breaker counts no call, nor does a breaker count a call from another state.
func TestNeutralCallsOfOtherStates(t *testing.T) {
	g := newGuard(t, quick("b"))
	old := g.open("orders")
	require.NoError(t, g.table().Force("b", "", breaker.ForceClosed))
	endings["cancelled"](g, 0)
	old.Fail(errRefused)
	old.Exit()
	assert.Zero(t, g.status("b", "orders").Neutral)
}
