package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/flow"
)

// known bug 243: a shared window that changes its shape again within an interval forgets what it took
// over from the first shape.
func TestSharedWindowThatChangesItsShapeAgain(t *testing.T) {
	clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
	g := newGuard(t, api.Config{Clock: clock, Cluster: cluster.Config{Store: cluster.NewMemory(clock), Members: 1}})
	for i, buckets := range []int{5, 10, 4, 5, 2, 4} {
		require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{
			ID: "f", Resource: "f", Threshold: 300, Interval: 10 * time.Second, Buckets: buckets,
			Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
		}}}))
		passed := 0
		for range 200 {
			if e, err := g.Entry(t.Context(), "f"); err == nil {
				passed++
				e.Exit()
			}
		}
		want := 0
		switch i {
		case 0:
			want = 200
		case 1:
			want = 100
		}
		assert.Equal(t, want, passed, "load %d, %d buckets", i, buckets)
	}
}

// known bug 245: members that change the shape of a shared window one after another charge the units
// that they had admitted too late, and another member takes their room.
func TestSharedWindowThatAllMembersChange(t *testing.T) {
	for _, buckets := range [][2]int{{5, 10}, {10, 5}, {4, 10}} {
		for first := range 3 { // the member that loads the other shape first
			clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
			store := cluster.NewMemory(clock)
			guards, left := make([]*api.Guard, 3), 300
			for i := range guards {
				guards[i] = newGuard(t, api.Config{Clock: clock, Cluster: cluster.Config{Store: store, Members: len(guards)}})
			}
			use := func(buckets int) {
				for i := range guards {
					require.NoError(t, guards[(first+i)%len(guards)].LoadRules(api.RuleSet{Flow: []flow.Rule{{
						ID: "f", Resource: "f", Threshold: 300, Interval: 10 * time.Second, Buckets: buckets,
						Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
					}}}))
				}
			}
			calls := func(each int) {
				for _, g := range guards {
					for range each {
						if e, err := g.Entry(t.Context(), "f"); err == nil {
							left--
							e.Exit()
						}
					}
				}
			}
			use(buckets[0])
			calls(90)
			use(buckets[1])
			calls(300)
			assert.Zero(t, left, "%d buckets, member %d first", buckets, first)
		}
	}
}
