package api_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// tardy is a slow store.
type tardy struct{ store.Store }

func (s tardy) Do(ctx context.Context, batch []store.Command) {
	time.Sleep(200 * time.Millisecond)
	s.Store.Do(ctx, batch)
}

// Calls that each take 20 ms open no breaker and eject no endpoint, even after long waits for a
// rule. The tree and system rules see the time as their callers do.
// known bug 235
func TestOwnWaitsAreNotSlow(t *testing.T) {
	throttle := flow.Rule{Resource: "orders", Threshold: 5, Behavior: flow.Throttle, MaxWait: time.Hour}
	shared := flow.Rule{ID: "shared", Resource: "orders", Threshold: 1000, Interval: time.Minute, Buckets: 10, Cluster: cluster.Rule{Scope: cluster.Global, Timeout: time.Second}}
	for name, c := range map[string]struct {
		set  rules.Set
		opts []api.Option
	}{
		"throttle": {set: rules.Set{Flow: []flow.Rule{throttle}}},
		"hotspot": {set: rules.Set{Hotspot: []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 5, Behavior: hotspot.Throttle, MaxWait: time.Hour}}},
			opts: []api.Option{api.Param("user", "u-17")}},
		"queue":     {set: rules.Set{Isolation: []isolation.Rule{{Resource: "orders", Threshold: 1, MaxQueue: 20, MaxWait: time.Minute}}}},
		"borrowing": {set: rules.Set{Flow: []flow.Rule{{Resource: "orders", Threshold: 8, Interval: 400 * time.Millisecond, Buckets: 2, Window: flow.Ring}}}, opts: []api.Option{api.Prioritized()}},
		"store":     {set: rules.Set{Flow: []flow.Rule{shared}}},
		"two":       {set: rules.Set{Flow: []flow.Rule{throttle}, Isolation: []isolation.Rule{{Resource: "orders", Threshold: 1, MaxQueue: 20, MaxWait: time.Minute}}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := api.Config{}
				if name == "store" {
					cfg.Cluster = cluster.Config{Store: tardy{cluster.NewMemory(nil)}, Namespace: "test", Members: 1}
				}
				g := newGuard(t, cfg)
				c.set.Breaker = []breaker.Rule{{Resource: "*", Strategy: breaker.SlowRatio, SlowRT: 50 * time.Millisecond, Threshold: 0.1, MinCalls: 2}}
				c.set.Outlier = []outlier.Rule{{Resource: "orders", Strategy: breaker.SlowRatio, SlowRT: 50 * time.Millisecond, Threshold: 0.1, MinCalls: 2}}
				c.set.System = []system.Rule{{Metric: system.RT, MaxRT: 50 * time.Millisecond, Mode: api.Shadow}}
				require.NoError(t, g.LoadRules(c.set))
				opts := append([]api.Option{api.Endpoint("10.0.0.1:80"), api.Inbound()}, c.opts...)
				call := func() {
					err := g.Do(t.Context(), "orders", func(context.Context) error {
						time.Sleep(20 * time.Millisecond)
						return nil
					}, opts...)
					assert.NoError(t, err)
				}
				var calls sync.WaitGroup
				for range 12 {
					calls.Go(call)
				}
				calls.Wait()
				status := g.Breakers()[0]
				assert.Equal(t, breaker.Closed, status.State)
				assert.Equal(t, [2]int64{12, 0}, [2]int64{status.Calls, status.Bad})
				assert.Empty(t, g.Ejected("orders"))
				n, _ := g.Tree().Resource("orders")
				assert.Greater(t, n.Minute.AvgRT(), 50*time.Millisecond, "that is what the callers saw")
				call()
				for _, f := range g.Tree().Rules {
					if f.Kind == api.KindSystem {
						assert.Positive(t, f.ShadowBlocked, "and what the rule goes by")
					}
				}
			})
		})
	}
}

// A nested call's wait counts as its caller's time: the caller took that long.
func TestNestedWaitsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, api.Config{})
		slow := breaker.Rule{Strategy: breaker.SlowRatio, SlowRT: 50 * time.Millisecond, Threshold: 1, MinCalls: 10}
		outer, inner := slow, slow
		outer.Resource, inner.Resource = "outer", "inner"
		require.NoError(t, g.LoadRules(rules.Set{
			Flow:    []flow.Rule{{Resource: "inner", Threshold: 5, Behavior: flow.Throttle, MaxWait: time.Hour}},
			Breaker: []breaker.Rule{outer, inner},
		}))
		for range 4 {
			require.NoError(t, g.Do(t.Context(), "outer", func(ctx context.Context) error { return g.Do(ctx, "inner", succeed) }))
		}
		assert.Equal(t, [2]int64{3, 0}, [2]int64{g.Breakers()[0].Bad, g.Breakers()[1].Bad}, "all but the first have waited")
	})
}
