package api_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
)

var errDown = errors.New("down")

func fail(context.Context) error    { return errDown }
func succeed(context.Context) error { return nil }

// Passing a breaker, being refused by one, failing, and probing don't allocate.
func TestBreakersDoNotAllocate(t *testing.T) {
	slow := breaker.Rule{Strategy: breaker.SlowRatio, SlowRT: time.Second, Threshold: 1}
	open := breaker.Rule{ID: "open", MinCalls: 1, Recovery: time.Hour}
	for _, tt := range []struct {
		name  string
		rules []breaker.Rule
		force breaker.Force
		step  time.Duration
		trip  bool
		fail  error
		block bool
	}{
		{name: "closed", rules: []breaker.Rule{{Threshold: 0.5}}},
		{name: "fails", rules: []breaker.Rule{{Threshold: 1e9, Strategy: breaker.ErrorCount}}, fail: errDown},
		{name: "three", rules: []breaker.Rule{{Threshold: 0.5}, {Threshold: 100, Strategy: breaker.ErrorCount}, slow}},
		{name: "for all", rules: []breaker.Rule{{Resource: "*", Threshold: 0.5}}},
		{name: "open", rules: []breaker.Rule{open}, trip: true, block: true},
		{name: "half-open, the probe is out", rules: []breaker.Rule{{ID: "open", MinCalls: 1, Recovery: time.Millisecond, ProbeTimeout: time.Hour}}, trip: true, block: true},
		{name: "probing and failing", rules: []breaker.Rule{{ID: "open", MinCalls: 1, Recovery: time.Millisecond}}, trip: true, fail: errDown, step: time.Millisecond}, // a log line per second
		{name: "shadow", rules: []breaker.Rule{{ID: "open", MinCalls: 1, Recovery: time.Hour, Mode: spec.Shadow}}, trip: true},
		{name: "forced open", rules: []breaker.Rule{open}, force: breaker.ForceOpen, block: true},
		{name: "forced closed", rules: []breaker.Rule{open}, force: breaker.ForceClosed, fail: errDown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.rules {
				if tt.rules[i].Resource == "" {
					tt.rules[i].Resource = "GET /orders"
				}
			}
			clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
			g := newGuard(t, api.Config{Clock: clock})
			require.NoError(t, g.LoadRules(rules.Set{Breaker: tt.rules}))
			ctx := t.Context()
			if tt.trip {
				require.ErrorIs(t, g.Do(ctx, "GET /orders", fail), errDown)
			}
			if tt.block && tt.trip && tt.rules[0].Recovery < time.Second {
				clock.Advance(time.Second)
				probe, err := g.Entry(ctx, "GET /orders")
				require.NoError(t, err)
				defer probe.Exit()
			}
			if tt.force != breaker.NotForced {
				require.NoError(t, g.ForceBreaker("open", "", tt.force))
			}
			calls := 0
			call := func() {
				if calls++; !tt.block {
					clock.Advance(cmp.Or(tt.step, 100*time.Millisecond)) // from bucket to bucket
				}
				e, err := g.Entry(ctx, "GET /orders")
				if (err != nil) != tt.block {
					t.Fatalf("err = %v, want block = %v", err, tt.block)
				}
				e.Fail(tt.fail)
				e.Exit()
			}
			race.AllocatesNothing(t, 1000, call)
		})
	}
}

// Users can listen to changes, read states and force breakers.
func TestBreakerControl(t *testing.T) {
	g := newGuard(t, api.Config{})
	assert.Empty(t, g.Breakers())
	assert.Error(t, g.ForceBreaker("b", "", breaker.ForceOpen))
	require.NoError(t, g.LoadRules(rules.Set{Breaker: []breaker.Rule{{ID: "b", Resource: "orders", MinCalls: 1}}}))
	var states []breaker.State
	remove := g.OnBreaker(func(c breaker.Change) {
		states = append(states, c.To)
		assert.ErrorIs(t, g.Do(t.Context(), "orders", succeed), core.ErrBlocked)
	})
	require.ErrorIs(t, g.Do(t.Context(), "orders", fail), errDown)
	remove()
	require.NoError(t, g.ForceBreaker("b", "orders", breaker.ForceClosed))
	require.NoError(t, g.Do(t.Context(), "orders", succeed))
	assert.Equal(t, []breaker.State{breaker.Open}, states)
	assert.Equal(t, breaker.ForcedClosed, g.Breakers()[0].State)
	assert.Equal(t, []breaker.Rule{{
		ID: "b", Resource: "orders", MinCalls: 1, Interval: 10 * time.Second, Buckets: 10, Recovery: 5 * time.Second, Probes: 1, ProbeTimeout: 5 * time.Second,
	}}, g.Rules().Breaker)
}

// A breaker counts calls when they end. An additional concurrency limit bounds the calls under way
// when it trips.
// known bug 85
func TestFailuresUnderWayAreBoundedByConcurrency(t *testing.T) {
	g := newGuard(t, api.Config{})
	require.NoError(t, g.LoadRules(rules.Set{
		Flow:    []flow.Rule{{Resource: "orders", Metric: flow.Concurrency, Threshold: 10}},
		Breaker: []breaker.Rule{{Resource: "orders", Threshold: 0.5}},
	}))
	var open []api.Admitted
	for range 1000 { // all of them would hang and fail
		if e, err := g.Entry(t.Context(), "orders"); err == nil {
			open = append(open, e)
		}
	}
	assert.Len(t, open, 10)
	for _, e := range open {
		e.Fail(errDown)
		e.Exit()
	}
	_, err := g.Entry(t.Context(), "orders")
	assert.Equal(t, core.KindBreaker, core.KindOf(err))
}

func BenchmarkBreaker(b *testing.B) {
	g := newGuard(b, api.Config{})
	require.NoError(b, g.LoadRules(rules.Set{Breaker: []breaker.Rule{{Resource: "orders", Threshold: 0.5}}}))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		e, _ := g.Entry(ctx, "orders")
		e.Exit()
	}
}

func BenchmarkBreakerOpen(b *testing.B) {
	g := newGuard(b, api.Config{})
	require.NoError(b, g.LoadRules(rules.Set{Breaker: []breaker.Rule{{ID: "b", Resource: "orders", Threshold: 0.5}}}))
	require.NoError(b, g.ForceBreaker("b", "", breaker.ForceOpen))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = g.Entry(ctx, "orders")
	}
}

// Calls to a healthy resource that are cancelled because a sibling failed have no effect on breakers
// and outlier rules, regardless of how the calls are made and of their results.
// known bug 234
func TestCancelledSiblings(t *testing.T) {
	errSibling := errors.New("a sibling failed")
	g := newGuard(t, api.Config{})
	require.NoError(t, g.LoadRules(rules.Set{
		Breaker: []breaker.Rule{{Resource: "GET /orders", Threshold: 1, MinCalls: 1}},
		Outlier: []outlier.Rule{{Resource: "GET /orders", Threshold: 1, MinCalls: 1}},
	}))
	fn := func(ctx context.Context) error { return context.Cause(ctx) }
	at := api.Endpoint("10.0.0.1:80")
	for name, do := range map[string]func(context.Context) error{
		"Do":     func(ctx context.Context) error { return g.Do(ctx, "GET /orders", fn, at) },
		"handle": func(ctx context.Context) error { return g.Resource("GET /orders").Do(ctx, fn, at) },
		"Call": func(ctx context.Context) error {
			_, err := api.CallOn(ctx, g, "GET /orders", func(ctx context.Context) (int, error) { return 0, fn(ctx) }, at)
			return err
		},
		"ExitOn": func(ctx context.Context) (err error) {
			e, err := g.Entry(ctx, "GET /orders", at)
			require.NoError(t, err)
			defer e.ExitOn(&err)
			return fn(e.Context())
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errSibling)
		for range 5 {
			require.ErrorIs(t, do(ctx), errSibling, name)
		}
		status := g.Breakers()[0]
		assert.Equal(t, breaker.Closed, status.State, name)
		assert.Zero(t, status.Calls, name)
		assert.Empty(t, g.Ejected("GET /orders"), name)
	}
	assert.EqualValues(t, 20, g.Breakers()[0].Neutral)
}
