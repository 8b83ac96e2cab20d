package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// fits returns the most that a call of a value can reserve now, and reserves nothing. A rule in shadow
// mode tells by its counts.
func (f *testCluster) fits(g *api.Guard, value any) int64 {
	f.Helper()
	blocked := func() int64 { return g.Engine().Rules().RuleStats()[0].ShadowBlocked }
	low, high := int64(0), int64(1<<17)
	for low < high {
		n := (low + high + 1) / 2
		f.clock.Advance(1500 * time.Millisecond) // leased units go back
		before := blocked()
		e, err := g.Entry(f.Context(), "orders", api.Cost("tokens", n), api.Param("tenant", value))
		f.clock.Advance(time.Microsecond) // late replies are handled
		e.Settle("tokens", 0)
		e.Exit()
		if err == nil && blocked() == before {
			low = n
		} else {
			high = n - 1
		}
	}
	f.clock.Advance(1500 * time.Millisecond)
	return low
}

// settles makes a call that asks for 5,000 tokens more than its 10,000, and settles.
func (f *testCluster) settles(g *api.Guard, value any, between func(), used int64) {
	f.Helper()
	e, err := g.Entry(f.Context(), "orders", api.Cost("tokens", 10_000), api.Param("tenant", value))
	require.NoError(f, err)
	between()
	require.NoError(f, e.More(f.Context(), "tokens", 5000))
	f.clock.Advance(time.Microsecond)
	e.Settle("tokens", used)
	e.Exit()
}

// Each value of a call is settled once, in cells of their own or together in the rest, enforced or in
// shadow mode, whether the call and what it asks for later find their units on a lease or not.
// known bug 272
// known bug 273
func TestTwoValuesSettle(t *testing.T) {
	for _, mode := range []api.Mode{api.Enforce, api.Shadow} {
		for _, values := range []int{1, 10} { // that have a limit of their own
			for _, used := range []int64{3000, 12_000, 15_000, 40_000} {
				for _, leased := range []string{"nothing", "the call", "more"} {
					t.Run(fmt.Sprintf("%v, %d values, %d used, leased: %s", mode, values, used, leased), func(t *testing.T) {
						set := unitSets["hotspot"](mode, 100_000)
						set.Hotspot[0].Interval, set.Hotspot[0].MaxValues = time.Minute, values
						f := newClusterOf(t, 1, set)
						g, pair, between := f.guards[0], []string{"ann", "bob"}, func() {}
						f.settles(g, "known", between, 0)
						switch leased {
						case "nothing":
							between = func() { f.clock.Advance(2 * time.Second) } // leases end
						case "the call":
							e, err := g.Entry(t.Context(), "orders", api.Cost("tokens", 10_000), api.Param("tenant", pair))
							require.NoError(t, err)
							f.clock.Advance(time.Microsecond)
							defer e.Exit()
							defer e.Settle("tokens", 0)
						}
						f.settles(g, pair, between, used)
						want := 100_000 - used
						if leased == "the call" {
							want -= 10_000
						}
						if values == 1 {
							want -= 100_000 - want
						}
						for _, v := range pair {
							assert.InDelta(t, max(0, want), f.fits(g, v), 2000, v) // less what is on a lease
						}
					})
				}
			}
		}
	}
}

// A call that asks for more under a rule of another shape is charged once.
// known bug 274
func TestMoreUnderAnotherShape(t *testing.T) {
	rule := tokens
	rule.Threshold, rule.Interval = 100_000, time.Minute
	f := newCluster(t, 1, rule)
	f.settles(f.guards[0], "", func() {
		rule.Interval = 2 * time.Minute
		require.NoError(t, f.guards[0].LoadRules(api.RuleSet{Flow: []flow.Rule{rule}}))
	}, 40_000)
	assert.InDelta(t, 60_000, f.fits(f.guards[0], ""), 2000)
}

// A call gets the units that its member has leased, even if the store had too few for it by then.
// known bug 275
func TestCallFitsTheLease(t *testing.T) {
	rule := tokens
	rule.Threshold, rule.Interval = 100_000, time.Minute
	f := newCluster(t, 1, rule)
	f.settles(f.guards[0], "", func() {}, 40_000)
	for _, n := range []int64{65_536, 65_536, 32_768, 49_152, 59_000} {
		f.clock.Advance(1500 * time.Millisecond)
		e, err := f.guards[0].Entry(t.Context(), "orders", api.Cost("tokens", n))
		assert.Equal(t, n < 60_000, err == nil, n)
		e.Settle("tokens", 0)
		e.Exit()
	}
}
