package api_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/rules"
)

// A shadow rule that reads another resource sees the calls that really pass there.
func TestShadowAssociatedRuleLooksAtTheRealTraffic(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	for name, metric := range map[string]flow.Metric{"qps": flow.QPS, "concurrency": flow.Concurrency} {
		g := newGuard(t, api.Config{Clock: clock}, flow.Rule{
			ID: "try", Resource: "read", Metric: metric, Threshold: 2,
			Relation: flow.Associated, Ref: "write", Mode: spec.Shadow,
		})
		for range 2 {
			e, err := g.Entry(t.Context(), "write")
			require.NoError(t, err)
			defer e.Exit()
		}
		e, err := g.Entry(t.Context(), "read")
		require.NoError(t, err, name)
		e.Exit()
		assert.EqualValues(t, 1, g.Tree().Rules[0].ShadowBlocked, name)
	}
}

// A call that waits for its turn when the rule goes into shadow mode runs on time: prioritized
// calls that the rule only watches run at once, and push no call back.
// known bug 144
func TestShadowPushesNobodyBack(t *testing.T) {
	ofFlow := func(mode spec.Mode) rules.Set {
		return rules.Set{Flow: []flow.Rule{{ID: "r", Resource: "orders", Threshold: 1, Behavior: flow.Throttle, MaxWait: time.Hour, Mode: mode}}}
	}
	ofHotspot := func(mode spec.Mode) rules.Set {
		return rules.Set{Hotspot: []hotspot.Rule{{ID: "r", Resource: "orders", Param: "user", Threshold: 1, Behavior: hotspot.Throttle, MaxWait: time.Hour, Mode: mode}}}
	}
	for name, set := range map[string]func(spec.Mode) rules.Set{"flow": ofFlow, "hotspot": ofHotspot} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuard(t, api.Config{})
				require.NoError(t, g.LoadRules(set(spec.Enforce)))
				begin := time.Now()
				call := func(opts ...api.Option) time.Duration {
					e, err := g.Entry(t.Context(), "orders", append(opts, api.Param("user", 1))...)
					require.NoError(t, err)
					e.Exit()
					return time.Since(begin)
				}
				require.Zero(t, call())
				ran := make(chan time.Duration)
				go func() { ran <- call() }()
				synctest.Wait()
				require.NoError(t, g.LoadRules(set(spec.Shadow)))
				require.Zero(t, call(api.Prioritized()))
				assert.Equal(t, time.Second, <-ran)
			})
		})
	}
}
