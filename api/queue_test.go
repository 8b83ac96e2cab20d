package api_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// The breaker is asked about a queued call when its turn is due: the call is refused if the breaker
// has opened while it waited, and is not a probe before it runs.
func TestBreakerBehindAQueue(t *testing.T) {
	for name, kind := range map[string]core.Kind{"forced open": core.KindBreaker, "closed": core.KindNone} {
		t.Run(name, func(t *testing.T) {
			clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
			g := newGuard(t, api.Config{Clock: clock})
			require.NoError(t, g.LoadRules(rules.Set{
				Isolation: []isolation.Rule{{Resource: "orders", Threshold: 1, MaxQueue: 1, MaxWait: time.Minute}},
				Breaker:   []breaker.Rule{{ID: "b", Resource: "orders", MinCalls: 1, Recovery: time.Second}},
			}))
			first, err := g.Entry(t.Context(), "orders")
			require.NoError(t, err)
			done := make(chan error)
			go func() {
				e, err := g.Entry(t.Context(), "orders")
				e.Exit()
				done <- err
			}()
			clock.AwaitParked(1)
			if kind == core.KindBreaker {
				require.NoError(t, g.ForceBreaker("b", "", breaker.ForceOpen))
			}
			first.Exit()
			assert.Equal(t, kind, core.KindOf(<-done))
			require.NoError(t, g.ForceBreaker("b", "", breaker.NotForced))
			require.NoError(t, g.Do(t.Context(), "orders", succeed), "the permit is free again")
		})
	}
}

// The call becomes a probe once its turn in the queue is due.
func TestProbeBehindALine(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g := newGuard(t, api.Config{Clock: clock})
	line := []isolation.Rule{{Resource: "orders", Threshold: 1, MaxQueue: 1, MaxWait: time.Minute}}
	b := []breaker.Rule{{ID: "b", Resource: "orders", MinCalls: 1, Recovery: time.Second}}
	require.NoError(t, g.LoadRules(rules.Set{Isolation: line}))
	first, err := g.Entry(t.Context(), "orders") // before there is a breaker, which does not wait for it
	require.NoError(t, err)
	require.NoError(t, g.LoadRules(rules.Set{Breaker: b}))
	require.ErrorIs(t, g.Do(t.Context(), "orders", fail), errDown)
	require.Equal(t, breaker.Open, g.Breakers()[0].State)
	require.NoError(t, g.LoadRules(rules.Set{Isolation: line, Breaker: b}))
	clock.Advance(time.Second)
	done := make(chan error)
	go func() { done <- g.Do(t.Context(), "orders", succeed) }()
	clock.AwaitParked(1)
	assert.Equal(t, breaker.Open, g.Breakers()[0].State, "no probe is out while it waits")
	first.Exit()
	require.NoError(t, <-done)
	assert.Equal(t, breaker.Closed, g.Breakers()[0].State)
}

// A throttle in shadow mode gives a call a turn that it does not wait for. When another call leaves
// that queue, the call still sleeps for its own turn.
// known bug 132
func TestTurnOfAShadowThrottleDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer g.Close()
		require.NoError(t, g.LoadRules(api.RuleSet{
			Hotspot: []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 10, Behavior: hotspot.Throttle, MaxWait: time.Second}},
			Flow:    []flow.Rule{{Resource: "orders", Threshold: 0.5, Behavior: flow.Throttle, MaxWait: time.Minute, Mode: api.Shadow}},
		}))
		enter := func(ctx context.Context, user string) error {
			e, err := g.Entry(ctx, "orders", api.Param("user", user))
			e.Exit()
			return err
		}
		require.NoError(t, enter(t.Context(), "ann"))
		require.NoError(t, enter(t.Context(), "bob"))
		start, bob := time.Now(), make(chan time.Duration, 1)
		ctx, leave := context.WithCancel(t.Context())
		go func() { _ = enter(ctx, "ann") }()
		synctest.Wait()
		go func() {
			assert.NoError(t, enter(t.Context(), "bob"))
			bob <- time.Since(start)
		}()
		synctest.Wait()
		leave()
		assert.Equal(t, 100*time.Millisecond, <-bob)
	})
}
