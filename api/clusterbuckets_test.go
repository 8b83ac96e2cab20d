package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/race"
)

var bucket = flow.Rule{
	ID: "bucket", Resource: "orders", Threshold: 10, Behavior: flow.TokenBucket, Burst: 19,
	Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
}

// Members share the burst and the rate of a bucket, and RetryAfter says when the next token is there.
func TestMembersShareATokenBucket(t *testing.T) {
	f := newCluster(t, 3, bucket)
	ran := 0
	for range 10 {
		for _, g := range f.guards {
			if f.call(g) {
				ran++
			}
		}
	}
	assert.Equal(t, 20, ran)
	for range 10 {
		_, err := f.guards[1].Entry(t.Context(), "orders")
		var block *api.BlockError
		require.ErrorAs(t, err, &block)
		assert.Equal(t, "bucket", block.Rule)
		wait, known := block.RetryAfter()
		require.True(t, known)
		require.LessOrEqual(t, wait, 110*time.Millisecond)
		f.clock.Advance(wait)
		require.True(t, f.call(f.guards[1]))
	}
	_, err := f.guards[0].Entry(t.Context(), "orders", api.Units(21))
	var block *api.BlockError
	require.ErrorAs(t, err, &block)
	_, known := block.RetryAfter()
	assert.False(t, known, "the bucket never holds so many")
	f.clock.Advance(3 * time.Second)
	entry, err := f.guards[2].Entry(t.Context(), "orders", api.Units(20))
	require.NoError(t, err)
	entry.Exit()
	assert.False(t, f.call(f.guards[0]))
}

// A changed rule keeps the number of missing tokens; a bucket that becomes local is as it was before,
// and one that becomes shared continues in the store.
func TestASharedTokenBucketIsReloaded(t *testing.T) {
	f := newCluster(t, 2, bucket)
	for range 20 {
		require.True(t, f.call(f.guards[0]))
	}
	more := bucket
	more.Burst, more.Threshold = 24, 1
	for _, g := range f.guards {
		require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{more}}))
	}
	ran := 0
	for range 20 {
		for _, g := range f.guards {
			if f.call(g) {
				ran++
			}
		}
	}
	assert.Equal(t, 5, ran)
	require.NoError(t, f.guards[0].LoadRules(api.RuleSet{}))
	require.NoError(t, f.guards[0].LoadRules(api.RuleSet{Flow: []flow.Rule{more}}))
	assert.False(t, f.call(f.guards[0]), "the store has none")
}

// Explain and the tree show a shared bucket, and leave no trace.
func TestASharedTokenBucketIsShown(t *testing.T) {
	f := newCluster(t, 2, bucket)
	g := f.guards[0]
	why := func() core.Judgement {
		x, err := g.Explain(t.Context(), "orders")
		require.NoError(t, err)
		return x.Rules[0].Judgement
	}
	assert.Contains(t, why().Why, "the cluster store would decide")
	for range 20 {
		require.True(t, f.call(g))
	}
	require.False(t, f.call(g))
	assert.Equal(t, core.Refused, why().Outcome)
	assert.Equal(t, core.Measure{Of: "units of a bucket, on a lease", Limit: 20, AtHand: true}, why().Measures[0])
	stats := g.Engine().Rules().RuleStats()[0].Details.(core.SharedStats)
	assert.Positive(t, stats.Requests)
	assert.Equal(t, "up", stats.Store)
}

// A call that another rule refuses gives its tokens back to the lease.
func TestASharedTokenBucketTakesBack(t *testing.T) {
	f := newCluster(t, 1, bucket, flow.Rule{ID: "few", Resource: "orders", Threshold: 3, Interval: time.Hour})
	g := f.guards[0]
	for range 30 {
		f.call(g)
	}
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{bucket}}))
	ran := 0
	for range 30 {
		if f.call(g) {
			ran++
		}
	}
	assert.Equal(t, 17, ran)
}

// Calls that settle give tokens back to their member's lease, or make all members wait.
func TestASharedTokenBucketSettles(t *testing.T) {
	costs := bucket
	costs.Unit, costs.Threshold, costs.Burst = "tokens", 1000, 9999
	f := newCluster(t, 2, costs)
	call := func(g *api.Guard, reserves, used int64) bool {
		e, err := g.Entry(t.Context(), "orders", api.Cost("tokens", reserves))
		if err == nil {
			e.Settle("tokens", used)
			e.Exit()
		}
		return err == nil
	}
	for range 20 { // 20 times 4000 reserved, 200 used
		require.True(t, call(f.guards[0], 4000, 200))
	}
	assert.False(t, call(f.guards[0], 6001, 0), "4000 are used")
	require.True(t, call(f.guards[0], 6000, 8000))
	f.clock.Advance(time.Second)
	assert.False(t, call(f.guards[1], 1, 1), "2000 are owed")
	f.clock.Advance(2 * time.Second)
	assert.True(t, call(f.guards[1], 900, 900))
}

// Each value has a bucket that members share.
func TestMembersShareTokenBucketsOfValues(t *testing.T) {
	rule := users
	rule.Behavior, rule.Burst = hotspot.TokenBucket, 4
	rule.Exceptions = []hotspot.Exception{{Value: hotspot.ValueOf("none"), Threshold: 0}, {Value: hotspot.ValueOf("slow"), Threshold: 1}}
	f := newClusterOf(t, 3, ofUsers(rule))
	ran := func(user string) (ran int) {
		for _, g := range f.guards {
			ran += f.of(g, user, 10)
		}
		return ran
	}
	for user, want := range map[string]int{"ann": 5, "bob": 5, "slow": 5, "none": 0} {
		assert.Equal(t, want, ran(user), user)
	}
	f.clock.Advance(200 * time.Millisecond)
	for user, want := range map[string]int{"ann": 4, "bob": 4, "slow": 0, "none": 0} {
		assert.Equal(t, want, ran(user), user)
	}
}

// A call under a shared bucket that has tokens on lease allocates nothing.
func TestASharedTokenBucketAllocatesNothing(t *testing.T) {
	rule := bucket
	rule.Threshold, rule.Burst = 100_000, 1_000_000
	f := newCluster(t, 1, rule)
	for range 1000 {
		f.call(f.guards[0])
		f.clock.Advance(10 * time.Microsecond)
	}
	race.AllocatesNothing(t, 1000, func() {
		if e, err := f.guards[0].Entry(t.Context(), "orders"); err == nil {
			e.Exit()
		}
	})
}
