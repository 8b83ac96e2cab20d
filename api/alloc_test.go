package api_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/books"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// The package functions use a guard that no test made.
func TestMain(m *testing.M) { books.Main(m, api.Default().Engine()) }

func newGuard(t testing.TB, cfg api.Config, set ...flow.Rule) *api.Guard {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := api.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	books.Keep(t, g.Engine())
	require.NoError(t, g.LoadRules(rules.Set{Flow: set}))
	return g
}

// Passing and blocking allocate nothing, whatever the behavior, as long as nobody
// waits.
func TestNoAllocations(t *testing.T) {
	const enough = 1e9
	for _, tt := range []struct {
		name      string
		rules     []flow.Rule
		isolation []isolation.Rule
		opts      []core.Option
		block     bool
	}{
		{name: "no rule"},
		{name: "reject", rules: []flow.Rule{{Threshold: enough}}},
		{name: "reject, blocked", rules: []flow.Rule{{Threshold: 0}}, block: true},
		{name: "reject, full", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour}}, block: true},
		{name: "strict", rules: []flow.Rule{{Threshold: enough, Strict: true}}},
		{name: "fine interval", rules: []flow.Rule{{Threshold: enough, Interval: 10 * time.Millisecond}}},
		{name: "concurrency", rules: []flow.Rule{{Threshold: 10, Metric: flow.Concurrency}}},
		{name: "concurrency, blocked", rules: []flow.Rule{{Threshold: 0.5, Metric: flow.Concurrency}}, block: true},
		{name: "warm-up", rules: []flow.Rule{{Threshold: enough, Behavior: flow.WarmUp}}},
		{name: "warm-up, full", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.WarmUp}}, block: true},
		{name: "throttle, blocked", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.Throttle}}, block: true},
		{name: "throttle, warm-up, blocked", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.WarmUpThrottle}}, block: true},
		{name: "origin", rules: []flow.Rule{{Threshold: enough, Origin: "app"}}},
		{name: "other", rules: []flow.Rule{{Threshold: enough, Origin: "other"}}},
		{name: "chain", rules: []flow.Rule{{Threshold: enough, Relation: flow.Chain, Ref: "web"}}},
		{name: "associated", rules: []flow.Rule{{Threshold: enough, Relation: flow.Associated, Ref: "POST /orders"}}},
		{name: "shadow", rules: []flow.Rule{{Threshold: 0, Mode: core.Shadow}}},
		{name: "two rules", rules: []flow.Rule{{Threshold: enough}, {Threshold: 10, Metric: flow.Concurrency}}},
		{name: "two limits on one window", rules: []flow.Rule{{ID: "a", Threshold: enough}, {ID: "b", Threshold: enough - 1}}},
		{name: "isolation", isolation: []isolation.Rule{{Threshold: 10}}},
		{name: "isolation, blocked", isolation: []isolation.Rule{{Threshold: 0}}, block: true},
		{name: "isolation, with a line", isolation: []isolation.Rule{{Threshold: 10, MaxQueue: 10, MaxWait: time.Second}}},
		{name: "isolation, too large", isolation: []isolation.Rule{{Threshold: 1, MaxQueue: 10, MaxWait: time.Second}}, opts: []core.Option{api.Count(2)}, block: true},
		{name: "isolation, shadow", isolation: []isolation.Rule{{Threshold: 0, Mode: core.Shadow}}},
		{name: "flow and isolation", rules: []flow.Rule{{Threshold: enough}}, isolation: []isolation.Rule{{Threshold: 10}}},
		{name: "prioritized", rules: []flow.Rule{{Threshold: enough}}, opts: []core.Option{api.Prioritized()}},
		{name: "options", opts: []core.Option{api.Inbound(), api.Count(3), api.Prioritized()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.rules {
				tt.rules[i].Resource = "GET /orders"
			}
			for i := range tt.isolation {
				tt.isolation[i].Resource = "GET /orders"
			}
			g := newGuard(t, api.Config{})
			require.NoError(t, g.LoadRules(rules.Set{Flow: tt.rules, Isolation: tt.isolation}))
			ctx := api.WithContext(t.Context(), "web", "app")
			if tt.block { // spend what there is
				if e, err := g.Entry(ctx, "GET /orders", tt.opts...); err == nil {
					e.Exit()
				}
			}
			call := func() {
				e, err := g.Entry(ctx, "GET /orders", tt.opts...)
				if (err != nil) != tt.block {
					t.Fatalf("err = %v, want block = %v", err, tt.block)
				}
				e.Exit()
			}
			assert.Zero(t, testing.AllocsPerRun(1000, call))
		})
	}
}

func TestOptionLiteralsDoNotAllocate(t *testing.T) {
	g := newGuard(t, api.Config{})
	ctx := context.Background()
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		e, _ := g.Entry(ctx, "GET /orders", api.Inbound(), api.Count(3), api.Prioritized())
		e.Exit()
	}))
}
