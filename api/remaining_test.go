package api_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
)

// As many calls pass at that instant as Remaining says.
func TestRemainingIsExact(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		set := api.RuleSet{
			Flow: []flow.Rule{
				{ID: "window", Resource: "orders", Threshold: float64(5 + r.IntN(20)), Interval: time.Second, Buckets: 10},
				{ID: "bucket", Resource: "orders", Threshold: float64(5 + r.IntN(20)), Behavior: flow.TokenBucket, Burst: r.IntN(30)},
			}[r.IntN(2):],
			Hotspot: []hotspot.Rule{
				{ID: "value", Resource: "orders", Param: "user", Threshold: float64(3 + r.IntN(20)), Interval: time.Second,
					Behavior: []hotspot.Behavior{hotspot.Reject, hotspot.TokenBucket}[r.IntN(2)], Burst: 0},
			}[r.IntN(2):],
			Isolation: []isolation.Rule{{Resource: "orders", Threshold: 1000}},
		}
		clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
		g := newGuardOn(t, clock, set)
		for range 30 {
			clock.Advance(time.Duration(r.Int64N(int64(400 * time.Millisecond))))
			e, err := g.Entry(t.Context(), "orders", api.Param("user", "a"))
			if err != nil {
				continue
			}
			least, known := e.Remaining("")
			require.True(t, known)
			e.Exit()
			_, known = e.Remaining("")
			require.False(t, known, "it has exited")
			if r.IntN(3) > 0 {
				continue
			}
			passed := int64(0)
			for {
				e, err := g.Entry(t.Context(), "orders", api.Param("user", "a"))
				if err != nil {
					break
				}
				e.Exit()
				passed++
			}
			// The tightest by share isn't always the one with the fewest units.
			require.LessOrEqual(t, passed, least.Left, "%+v", least)
			if len(set.Flow)+len(set.Hotspot) == 1 {
				require.Equal(t, passed, least.Left, "%+v", least)
			}
		}
	}
}

func newGuardOn(t *testing.T, clock *api.ManualClock, set api.RuleSet) *api.Guard {
	g, err := api.New(api.Config{Clock: clock})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(set))
	return g
}

// Only rules that limit a rate of the unit have something left.
func TestRemainingOfAUnit(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	g := newGuardOn(t, clock, api.RuleSet{
		Flow: []flow.Rule{
			{ID: "tokens", Resource: "orders", Unit: "tokens", Threshold: 1000, Interval: time.Minute},
			{ID: "queue", Resource: "orders", Threshold: 10, Behavior: flow.Throttle},
			{ID: "permits", Resource: "orders", Threshold: 10, Metric: flow.Concurrency},
			{ID: "shadow", Resource: "orders", Threshold: 10, Mode: api.Shadow},
		},
	})
	e, err := g.Entry(t.Context(), "orders", api.Cost("tokens", 300))
	require.NoError(t, err)
	defer e.Exit()
	_, known := e.Remaining("")
	assert.False(t, known)
	r, known := e.Remaining("tokens")
	assert.True(t, known)
	assert.Equal(t, api.Remaining{Kind: api.KindFlow, Rule: "tokens", Left: 700, Limit: 1000, Window: time.Minute}, r)
	_, known = api.Admitted{}.Remaining("tokens")
	assert.False(t, known)
}

// Of a shared limit, a member names the units that it has leased.
func TestRemainingOfALease(t *testing.T) {
	f := newCluster(t, 2, orders)
	for range 20 {
		e, err := f.guards[0].Entry(t.Context(), "orders")
		require.NoError(t, err)
		r, known := e.Remaining("")
		e.Exit()
		require.True(t, known)
		require.EqualValues(t, 100, r.Limit)
		require.Less(t, r.Left, int64(100))
		f.clock.Advance(5 * time.Millisecond)
	}
}
