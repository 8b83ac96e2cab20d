package api_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// The package functions use a guard that no test created.
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

// Passing and blocking don't allocate under any behavior, unless a call waits.
func TestNoAllocations(t *testing.T) {
	const enough = 1e9
	for _, tt := range []struct {
		name      string
		rules     []flow.Rule
		isolation []isolation.Rule
		adaptive  []adaptive.Rule
		opts      []engine.Option
		block     bool
	}{
		{name: "no rule"},
		{name: "reject", rules: []flow.Rule{{Threshold: enough}}},
		{name: "reject, blocked", rules: []flow.Rule{{Threshold: 0}}, block: true},
		{name: "reject, full", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour}}, block: true},
		{name: "strict", rules: []flow.Rule{{Threshold: enough, Window: flow.Strict}}},
		{name: "fine interval", rules: []flow.Rule{{Threshold: enough, Interval: 10 * time.Millisecond}}},
		{name: "concurrency", rules: []flow.Rule{{Threshold: 10, Metric: flow.Concurrency}}},
		{name: "concurrency, blocked", rules: []flow.Rule{{Threshold: 0.5, Metric: flow.Concurrency}}, block: true},
		{name: "warm-up", rules: []flow.Rule{{Threshold: enough, Behavior: flow.WarmUp}}},
		{name: "memory", rules: []flow.Rule{{Threshold: enough, MemoryThreshold: enough / 2, LowMemory: flow.Share(0.5), HighMemory: flow.Share(0.9)}}},
		{name: "memory, full", rules: []flow.Rule{{Threshold: 2, MemoryThreshold: 1, Interval: 24 * time.Hour, LowMemory: flow.Share(0.1), HighMemory: flow.Share(0.2)}}, block: true},
		{name: "memory, concurrency", rules: []flow.Rule{{Threshold: 10, MemoryThreshold: 1, Metric: flow.Concurrency, LowMemory: flow.Share(0.5), HighMemory: flow.Share(0.9)}}},
		{name: "memory, throttle, blocked", rules: []flow.Rule{{Threshold: 2, MemoryThreshold: 1, Interval: 24 * time.Hour, Behavior: flow.Throttle, LowMemory: flow.Share(0.5), HighMemory: flow.Share(0.9)}}, block: true},
		{name: "warm-up, full", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.WarmUp}}, block: true},
		{name: "throttle, blocked", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.Throttle}}, block: true},
		{name: "throttle, warm-up, blocked", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.WarmUpThrottle}}, block: true},
		{name: "token bucket", rules: []flow.Rule{{Threshold: enough, Behavior: flow.TokenBucket, Burst: 100}}},
		{name: "token bucket, empty", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.TokenBucket}}, block: true},
		{name: "token bucket, too large", rules: []flow.Rule{{Threshold: 1, Behavior: flow.TokenBucket}}, opts: []engine.Option{api.Units(2)}, block: true},
		{name: "token bucket, shadow", rules: []flow.Rule{{Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.TokenBucket, Mode: spec.Shadow}}},
		{name: "together", rules: []flow.Rule{{Match: spec.MatchRegex, Together: true, Threshold: enough}}},
		{name: "together, full", rules: []flow.Rule{{Match: spec.MatchRegex, Together: true, Threshold: 1, Interval: 24 * time.Hour}}, block: true},
		{name: "together, permits", isolation: []isolation.Rule{{Match: spec.MatchRegex, Together: true, Threshold: 100}}},
		{name: "origin", rules: []flow.Rule{{Threshold: enough, Origin: "app"}}},
		{name: "other", rules: []flow.Rule{{Threshold: enough, Origin: "other"}}},
		{name: "chain", rules: []flow.Rule{{Threshold: enough, Relation: flow.Chain, Ref: "web"}}},
		{name: "associated", rules: []flow.Rule{{Threshold: enough, Relation: flow.Associated, Ref: "POST /orders"}}},
		{name: "shadow", rules: []flow.Rule{{Threshold: 0, Mode: spec.Shadow}}},
		{name: "two rules", rules: []flow.Rule{{Threshold: enough}, {Threshold: 10, Metric: flow.Concurrency}}},
		{name: "two limits on one window", rules: []flow.Rule{{ID: "a", Threshold: enough}, {ID: "b", Threshold: enough - 1}}},
		{name: "isolation", isolation: []isolation.Rule{{Threshold: 10}}},
		{name: "isolation, blocked", isolation: []isolation.Rule{{Threshold: 0}}, block: true},
		{name: "isolation, with a queue", isolation: []isolation.Rule{{Threshold: 10, MaxQueue: 10, MaxWait: time.Second}}},
		{name: "isolation, too large", isolation: []isolation.Rule{{Threshold: 1, MaxQueue: 10, MaxWait: time.Second}}, opts: []engine.Option{api.Units(2)}, block: true},
		{name: "isolation, shadow", isolation: []isolation.Rule{{Threshold: 0, Mode: spec.Shadow}}},
		{name: "flow and isolation", rules: []flow.Rule{{Threshold: enough}}, isolation: []isolation.Rule{{Threshold: 10}}},
		{name: "adaptive", adaptive: []adaptive.Rule{{Window: 10 * time.Millisecond}}},
		{name: "adaptive, too large", adaptive: []adaptive.Rule{{Ceiling: 2}}, opts: []engine.Option{api.Units(3)}, block: true},
		{name: "adaptive, shadow", adaptive: []adaptive.Rule{{Ceiling: 2, Mode: spec.Shadow}}, opts: []engine.Option{api.Units(3)}},
		{name: "prioritized", rules: []flow.Rule{{Threshold: enough}}, opts: []engine.Option{api.Prioritized()}},
		{name: "options", opts: []engine.Option{api.Inbound(), api.Units(3), api.Prioritized()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.rules {
				tt.rules[i].Resource = "GET /orders"
			}
			for i := range tt.isolation {
				tt.isolation[i].Resource = "GET /orders"
			}
			for i := range tt.adaptive {
				tt.adaptive[i].Resource = "GET /orders"
			}
			g := newGuard(t, api.Config{Host: busy{}})
			require.NoError(t, g.LoadRules(rules.Set{Flow: tt.rules, Isolation: tt.isolation, Adaptive: tt.adaptive}))
			ctx := api.WithOrigin(api.WithContext(t.Context(), "web"), "app")
			if tt.block { // use up the limit
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
			race.AllocatesNothing(t, 1000, call)
			defer g.Engine().KeepRefusals()()
			race.AllocatesNothing(t, 1000, call)
		})
	}
}

// The same holds for the families that come before flow.
func TestNoAllocationsOfAuthorityAndSystemRules(t *testing.T) {
	const enough = 1e9
	callers := func(r authority.Rule) rules.Set {
		r.Resource = "GET /orders"
		return rules.Set{Authority: []authority.Rule{r}}
	}
	of := func(r system.Rule) rules.Set { return rules.Set{System: []system.Rule{r}} }
	for _, tt := range []struct {
		name  string
		set   rules.Set
		block bool
	}{
		{name: "allow list", set: callers(authority.Rule{Origins: []string{"web", "app"}})},
		{name: "allow list, blocked", set: callers(authority.Rule{Origins: []string{"web"}}), block: true},
		{name: "deny list", set: callers(authority.Rule{Origins: []string{"web"}, List: authority.Deny})},
		{name: "deny list, blocked", set: callers(authority.Rule{Origins: []string{"app"}, List: authority.Deny}), block: true},
		{name: "list, shadow", set: callers(authority.Rule{Origins: []string{"web"}, Mode: spec.Shadow})},
		{name: "inbound qps", set: of(system.Rule{Metric: system.QPS, Threshold: enough})},
		{name: "inbound qps, blocked", set: of(system.Rule{Metric: system.QPS}), block: true},
		{name: "inbound concurrency", set: of(system.Rule{Metric: system.Concurrency, Threshold: enough})},
		{name: "inbound concurrency, blocked", set: of(system.Rule{Metric: system.Concurrency}), block: true},
		{name: "rt", set: of(system.Rule{Metric: system.RT, MaxRT: time.Hour})},
		{name: "load", set: of(system.Rule{Metric: system.Load, Threshold: 5})},
		{name: "load, bbr", set: of(system.Rule{Metric: system.Load, Threshold: 1, Strategy: system.BBR})},
		{name: "cpu", set: of(system.Rule{Metric: system.CPU, Threshold: 0.95})},
		{name: "cpu, limiting", set: of(system.Rule{Metric: system.CPU, Threshold: 0.5})},
		{name: "cpu, gate, blocked", set: of(system.Rule{Metric: system.CPU, Threshold: 0.5, Strategy: system.Gate}), block: true},
		{name: "cpu, shadow", set: of(system.Rule{Metric: system.CPU, Threshold: 0.5, Strategy: system.Gate, Mode: spec.Shadow})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// On a clock that stands still, sampling the machine allocates in no call.
			clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
			g := newGuard(t, api.Config{Host: busy{}, Clock: clock})
			require.NoError(t, g.LoadRules(tt.set))
			ctx := api.WithOrigin(api.WithContext(t.Context(), "web"), "app")
			for range 2 {
				e, _ := g.Entry(ctx, "GET /orders", api.Inbound())
				clock.Advance(sampler.Period)
				e.Exit()
			}
			call := func() {
				e, err := g.Entry(ctx, "GET /orders", api.Inbound())
				if (err != nil) != tt.block {
					t.Fatalf("err = %v, want block = %v", err, tt.block)
				}
				e.Exit()
			}
			race.AllocatesNothing(t, 1000, call)
		})
	}
}

// busy is a machine at 90 % load.
type busy struct{}

func (busy) Load(int64) (float64, error)       { return 3, nil }
func (busy) CPU(int64) (float64, error)        { return 0.9, nil }
func (busy) Memory(int64) (host.Memory, error) { return host.Memory{Used: 75, Limit: 100}, nil }

// The same holds for hotspot rules, with values that the rule has seen.
func TestNoAllocationsWithValues(t *testing.T) {
	const enough = 1e9
	day := 24 * time.Hour
	type name string
	id, number := "ann", 1<<30 // neither constant nor small
	args := api.Args(id, number)
	for _, tt := range []struct {
		name  string
		rule  hotspot.Rule
		units int // 1 if 0
		block bool
	}{
		{name: "reject", rule: hotspot.Rule{Threshold: enough}},
		{name: "reject, blocked", rule: hotspot.Rule{Threshold: 0}, block: true},
		{name: "reject, full", rule: hotspot.Rule{Threshold: 1, Interval: day}, block: true},
		{name: "concurrency", rule: hotspot.Rule{Threshold: 10, Metric: hotspot.Concurrency}},
		{name: "concurrency, blocked", rule: hotspot.Rule{Threshold: 0.5, Metric: hotspot.Concurrency}, block: true},
		{name: "throttle, blocked", rule: hotspot.Rule{Threshold: 1, Interval: day, Behavior: hotspot.Throttle}, block: true},
		{name: "token bucket", rule: hotspot.Rule{Threshold: enough, Behavior: hotspot.TokenBucket, Burst: 100}},
		{name: "token bucket, empty", rule: hotspot.Rule{Threshold: 1, Interval: day, Behavior: hotspot.TokenBucket}, block: true},
		{name: "token bucket, too large", rule: hotspot.Rule{Threshold: 1, Behavior: hotspot.TokenBucket}, units: 2, block: true},
		{name: "token bucket, shadow", rule: hotspot.Rule{Threshold: 1, Interval: day, Behavior: hotspot.TokenBucket, Mode: spec.Shadow}},
		{name: "token bucket, the rest", rule: hotspot.Rule{Threshold: enough, Burst: 100, Behavior: hotspot.TokenBucket, MaxValues: 1}},
		{name: "exception", rule: hotspot.Rule{Threshold: 1, Interval: day, Exceptions: []hotspot.Exception{
			{Value: argument.Of(id), Threshold: enough}, {Value: argument.Of(number), Threshold: enough}}}},
		{name: "shadow", rule: hotspot.Rule{Threshold: 1, Interval: day, Mode: spec.Shadow}},
		{name: "the rest", rule: hotspot.Rule{Threshold: enough, MaxValues: 1}},
	} {
		for source, opt := range map[string]func() engine.Option{
			"text":        func() engine.Option { return api.Param("p", id) },
			"a number":    func() engine.Option { return api.Param("p", number) },
			"own type":    func() engine.Option { return api.Param("p", name(id)) },
			"uint16":      func() engine.Option { return api.Param("p", uint16(number)) },
			"an argument": func() engine.Option { return args },
		} {
			t.Run(tt.name+", "+source, func(t *testing.T) {
				rule := tt.rule
				rule.Resource, rule.Param = "GET /orders", "p"
				if source == "an argument" {
					rule.Param, rule.Index = "", hotspot.At(1)
				}
				if tt.name == "exception" && source == "uint16" {
					rule.Threshold = enough
				}
				g := newGuard(t, api.Config{})
				require.NoError(t, g.LoadRules(rules.Set{Hotspot: []hotspot.Rule{rule}}))
				ctx := t.Context()
				if rule.MaxValues == 1 {
					e, err := g.Entry(ctx, "GET /orders", api.Param("p", "another"), api.Args(0, "another"))
					require.NoError(t, err)
					e.Exit()
				}
				units := api.Units(max(1, tt.units))
				if tt.block { // use up the limit
					if e, err := g.Entry(ctx, "GET /orders", opt(), units); err == nil {
						e.Exit()
					}
				}
				call := func() {
					e, err := g.Entry(ctx, "GET /orders", opt(), units)
					if (err != nil) != tt.block {
						t.Fatalf("err = %v, want block = %v", err, tt.block)
					}
					e.Exit()
				}
				race.AllocatesNothing(t, 1000, call)
			})
		}
	}
}

// The same holds for outlier rules, with endpoints that the rule has seen; Ejected doesn't allocate
// either, while none is ejected.
func TestNoAllocationsWithEndpoints(t *testing.T) {
	for _, tt := range []struct {
		name     string
		mode     spec.Mode
		endpoint string
		block    bool
	}{
		{name: "no endpoint"},
		{name: "in service", endpoint: "a"},
		{name: "ejected", endpoint: "b", block: true},
		{name: "shadow", endpoint: "b", mode: spec.Shadow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(t, api.Config{})
			require.NoError(t, g.LoadRules(rules.Set{Outlier: []outlier.Rule{{
				Resource: "GET /orders", MinCalls: 1, Recovery: 24 * time.Hour, Mode: tt.mode,
			}}}))
			race.AllocatesNothing(t, 1000, func() { g.Ejected("GET /orders") })
			for _, addr := range []string{"a", "b"} {
				e, err := g.Entry(t.Context(), "GET /orders", api.Endpoint(addr))
				require.NoError(t, err)
				if addr == "b" {
					e.Fail(errors.New("x"))
				}
				e.Exit()
			}
			ctx := t.Context()
			call := func() {
				e, err := g.Entry(ctx, "GET /orders", api.Endpoint(tt.endpoint))
				if (err != nil) != tt.block {
					t.Fatalf("err = %v, want block = %v", err, tt.block)
				}
				e.Exit()
			}
			race.AllocatesNothing(t, 1000, call)
		})
	}
}

func TestOptionLiteralsDoNotAllocate(t *testing.T) {
	g := newGuard(t, api.Config{})
	ctx := context.Background()
	race.AllocatesNothing(t, 1000, func() {
		e, _ := g.Entry(ctx, "GET /orders", api.Inbound(), api.Units(3), api.Prioritized())
		e.Exit()
	})
}
