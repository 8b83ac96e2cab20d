package api_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/system"
)

// says holds the details of a refusal, with -1 for unknown ones.
type says struct {
	kind          api.Kind
	origin, value string
	limit         float64
	wait          time.Duration
}

func saysOf(b *api.BlockError) says {
	s := says{kind: b.Kind, origin: b.Origin, limit: -1, wait: -1}
	if !b.Value.IsNone() {
		s.value = b.Value.String()
	}
	if limit, known := b.Limit(); known {
		s.limit = limit
	}
	if wait, known := b.RetryAfter(); known {
		s.wait = wait
	}
	return s
}

// A refusal of every family has the details that its rule knows: the callers that the rule applies
// to, the value, the limit, and RetryAfter.
func TestRefusalsTellWhatTheRuleKnows(t *testing.T) {
	const id, name, ms = "r", "orders", time.Millisecond
	aFlow := func(r flow.Rule) api.RuleSet {
		r.ID, r.Resource = id, name
		return api.RuleSet{Flow: []flow.Rule{r}}
	}
	aHotspot := func(r hotspot.Rule) api.RuleSet {
		r.ID, r.Resource, r.Param = id, name, "user"
		return api.RuleSet{Hotspot: []hotspot.Rule{r}}
	}
	aSystem := func(r system.Rule) api.RuleSet {
		r.ID = id
		return api.RuleSet{System: []system.Rule{r}}
	}
	failing := func(g *api.Guard, endpoint string) {
		failure := errors.New("x")
		require.ErrorIs(t, g.Do(t.Context(), name, func(context.Context) error { return failure }, api.Endpoint(endpoint)), failure)
	}
	for _, tt := range []struct {
		name   string
		set    api.RuleSet
		before func(*api.Guard)
		want   says
	}{
		{name: "flow", set: aFlow(flow.Rule{Threshold: 2, Window: flow.Ring}), want: says{api.KindFlow, "default", "", 2, time.Second}},
		{name: "flow, nothing", set: aFlow(flow.Rule{Window: flow.Ring}), want: says{api.KindFlow, "default", "", 0, -1}},
		{name: "flow, one caller", set: aFlow(flow.Rule{Threshold: 2, Origin: "acme", Window: flow.Ring}), want: says{api.KindFlow, "acme", "", 2, time.Second}},
		{name: "flow, others", set: aFlow(flow.Rule{Threshold: 2, Origin: "other", Window: flow.Ring}), want: says{api.KindFlow, "other", "", 2, time.Second}},
		{name: "flow, others at once", set: aFlow(flow.Rule{Threshold: 2, Origin: "other", Metric: flow.Concurrency}), want: says{api.KindFlow, "other", "", 2, -1}},
		{name: "flow, others, nothing", set: aFlow(flow.Rule{Origin: "other"}), want: says{api.KindFlow, "other", "", 0, -1}},
		{name: "flow, others warm", set: aFlow(flow.Rule{Threshold: 3, Origin: "other", Behavior: flow.WarmUp, WarmUpPeriod: time.Second, Window: flow.Ring}),
			want: says{api.KindFlow, "other", "", 3, time.Second}},
		{name: "flow, at once", set: aFlow(flow.Rule{Threshold: 1.5, Metric: flow.Concurrency}), want: says{api.KindFlow, "default", "", 1.5, -1}},
		{name: "flow, memory", set: aFlow(flow.Rule{Threshold: 10, MemoryThreshold: 2, LowMemory: flow.Share(0.5), HighMemory: flow.Share(0.75), Window: flow.Ring}),
			want: says{api.KindFlow, "default", "", 2, time.Second}},
		{name: "flow, queue", set: aFlow(flow.Rule{Threshold: 2, Behavior: flow.Throttle, MaxWait: 1}),
			want: says{api.KindFlow, "default", "", 2, 500*ms - 1}},
		{name: "flow, bucket", set: aFlow(flow.Rule{Threshold: 2, Behavior: flow.TokenBucket, Burst: 3}),
			want: says{api.KindFlow, "default", "", 2, 500 * ms}},
		{name: "hotspot", set: aHotspot(hotspot.Rule{Threshold: 2}), want: says{api.KindHotspot, "", `"ann"`, 2, 1100 * time.Millisecond}},
		{name: "hotspot, exception", set: aHotspot(hotspot.Rule{Threshold: 9, Exceptions: []hotspot.Exception{{Value: hotspot.ValueOf("ann"), Threshold: 3}}}),
			want: says{api.KindHotspot, "", `"ann"`, 3, 1100 * time.Millisecond}},
		{name: "hotspot, bucket", set: aHotspot(hotspot.Rule{Threshold: 2, Behavior: hotspot.TokenBucket, Burst: 3}),
			want: says{api.KindHotspot, "", `"ann"`, 2, 500 * ms}},
		{name: "hotspot, at once", set: aHotspot(hotspot.Rule{Threshold: 2, Metric: hotspot.Concurrency}), want: says{api.KindHotspot, "", `"ann"`, 2, -1}},
		{name: "hotspot, values without a cell", set: aHotspot(hotspot.Rule{Threshold: 2, MaxValues: 1}),
			before: func(g *api.Guard) {
				e, err := g.Entry(t.Context(), name, api.Param("user", "bob"))
				require.NoError(t, err)
				e.Exit()
			}, want: says{api.KindHotspot, "", "", 2, 1100 * ms}},
		{name: "isolation", set: api.RuleSet{Isolation: []isolation.Rule{{ID: id, Resource: name, Threshold: 2}}}, want: says{api.KindIsolation, "", "", 2, -1}},
		{name: "adaptive", set: api.RuleSet{Adaptive: []adaptive.Rule{{ID: id, Resource: name, Start: 4, Ceiling: 5}}}, want: says{api.KindAdaptive, "", "", 5, -1}},
		{name: "authority", set: api.RuleSet{Authority: []authority.Rule{{ID: id, Resource: name, Origins: []string{"globex"}}}}, want: says{api.KindAuthority, "", "", -1, -1}},
		{name: "system, units", set: aSystem(system.Rule{Metric: system.QPS, Threshold: 2}), want: says{api.KindSystem, "", "", 2, time.Second}},
		{name: "system, at once", set: aSystem(system.Rule{Metric: system.Concurrency, Threshold: 2}), want: says{api.KindSystem, "", "", 2, -1}},
		{name: "system, a gate", set: aSystem(system.Rule{Metric: system.CPU, Threshold: 0.5, Strategy: system.Gate}), want: says{api.KindSystem, "", "", -1, -1}},
		{name: "breaker", set: api.RuleSet{Breaker: []breaker.Rule{{ID: id, Resource: name, MinCalls: 1, Recovery: time.Minute}}},
			before: func(g *api.Guard) { failing(g, "a") }, want: says{api.KindBreaker, "", "", -1, time.Minute - 500*ms}},
		{name: "outlier", set: api.RuleSet{Outlier: []outlier.Rule{{ID: id, Resource: name, MinCalls: 1, Recovery: time.Minute}}},
			before: func(g *api.Guard) {
				require.NoError(t, g.Do(t.Context(), name, func(context.Context) error { return nil }, api.Endpoint("b")))
				failing(g, "a")
			}, want: says{api.KindOutlier, "", "", -1, time.Minute - 500*ms}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
			clock.SetSleep(api.SleepRecord)
			g := newGuard(t, api.Config{Host: busy{}, Clock: clock})
			require.NoError(t, g.LoadRules(tt.set))
			if tt.before != nil {
				tt.before(g)
			}
			clock.Advance(500 * ms)
			ctx := api.WithOrigin(t.Context(), "acme")
			var block *api.BlockError
			for range 6 {
				e, err := g.Entry(ctx, name, api.Inbound(), api.Param("user", "ann"), api.Endpoint("a"))
				if errors.As(err, &block) {
					break
				}
				defer e.Exit()
			}
			require.NotNil(t, block)
			assert.Equal(t, id, block.Rule)
			assert.Equal(t, name, block.Resource)
			assert.Equal(t, tt.want, saysOf(block))
		})
	}
}

// The details of a breaker's refusal depend on its state.
func TestRetryAfterOfABreaker(t *testing.T) {
	clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
	g := newGuard(t, api.Config{Clock: clock})
	require.NoError(t, g.LoadRules(api.RuleSet{Breaker: []breaker.Rule{
		{ID: "r", Resource: "orders", MinCalls: 1, Recovery: time.Second, Ramp: time.Minute},
	}}))
	var block *api.BlockError
	call := func(failure error) error {
		return g.Do(t.Context(), "orders", func(context.Context) error { return failure })
	}
	failure := errors.New("x")
	require.ErrorIs(t, call(failure), failure)
	require.ErrorAs(t, call(nil), &block)
	assert.Equal(t, time.Second, saysOf(block).wait, "open")
	clock.Advance(time.Second)
	assert.Zero(t, saysOf(block).wait, "open, and it asks for a probe")
	seconds, _ := block.RetryAfterIn(time.Second)
	assert.EqualValues(t, 1, seconds, "a header never says 0")
	require.NoError(t, call(nil))
	assert.EqualValues(t, -1, saysOf(block).wait, "recovering: that depends on how many come")
	require.NoError(t, g.ForceBreaker("r", "orders", breaker.ForceOpen))
	assert.EqualValues(t, -1, saysOf(block).wait, "forced")
	require.NoError(t, g.ForceBreaker("r", "orders", breaker.ForceClosed))
	assert.Zero(t, saysOf(block).wait, "closed")
}
