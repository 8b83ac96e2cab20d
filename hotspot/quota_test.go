package hotspot_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
)

// The clock of these tests starts on Tuesday, November 14, 2023, at 22:13:20 UTC.
const midnight = 106*time.Minute + 40*time.Second

func daily(threshold float64) hotspot.Rule {
	return hotspot.Rule{ID: "r", Param: "user", Threshold: threshold, Per: spec.PerDay}
}

func TestQuota(t *testing.T) {
	rule := daily(2)
	rule.Exceptions = []hotspot.Exception{{Value: hotspot.ValueOf("batch"), Threshold: 4}, {Value: hotspot.ValueOf("banned")}}
	rule.Plans = map[string]float64{"pro": 3}
	g := newGuard(t, rule)
	pro := engine.Plan("pro")
	for range 2 {
		assert.Equal(t, "pass x2, block", g.outcomes(3, user("ann")))
		assert.Equal(t, "pass x4, block", g.outcomes(5, user("batch")))
		assert.Equal(t, "block", g.outcome(user("banned")))
		assert.Equal(t, "pass x2, block", g.outcomes(3, user("bob")))
		assert.Equal(t, "pass, block", g.outcomes(2, user("bob"), pro), "what was used stays used")
		assert.Equal(t, "block", g.outcome(user("bob")))
		before := midnight - 1 // and in the second round, midnight of the next day
		if g.at(before); g.clock.Now() != start.Add(before).UnixNano() {
			before = midnight
		}
		_, err := g.enter(user("ann"))
		var block *core.BlockError
		require.ErrorAs(t, err, &block)
		assert.Equal(t, map[time.Duration]time.Duration{midnight - 1: 1, midnight: 24 * time.Hour}[before], comeAgain(t, block))
		window, _ := block.Window()
		assert.Equal(t, 24*time.Hour, window)
		g.at(midnight)
	}
	x, err := g.Explain(t.Context(), "orders", []engine.Option{user("ann")})
	require.NoError(t, err)
	assert.Equal(t, core.Refused, x.Outcome)
	assert.Equal(t, start.Add(midnight+24*time.Hour).UTC(), x.Next)
	assert.Equal(t, "units per day", x.Rules[0].Measures[0].Of)
	assert.Equal(t, "units per day", g.details("r").Top[0].Measure.Of)

	e, err := g.enter(user("new"))
	require.NoError(t, err)
	r, known := e.Remaining("")
	assert.True(t, known)
	assert.Equal(t, core.Remaining{Kind: core.KindHotspot, Rule: "r", Left: 1, Limit: 2, Window: 24 * time.Hour, Resets: 24 * time.Hour}, r)
	e.Exit()
}

// Values that find no room share a quota, and none gets more by being evicted: a value leaves its
// place once its period is over.
func TestQuotaOfManyValues(t *testing.T) {
	rule := daily(2)
	rule.MaxValues = 2
	g := newGuard(t, rule)
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("a")))
	assert.Equal(t, "pass", g.outcome(user("b")))
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("c")), "of the rest")
	assert.Equal(t, "block", g.outcome(user("d")), "of the rest")
	assert.Equal(t, int64(2), g.details("r").Overflowed, "refused calls took nothing")
	g.at(midnight)
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("d")))
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("e")))
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("a")), "of the rest")
	assert.Equal(t, "block", g.outcome(user("b")))
}

func TestQuotaAfterAReload(t *testing.T) {
	g := newGuard(t, daily(3))
	ann := user("ann")
	assert.Equal(t, 3, g.passes(5, ann))
	g.load(daily(5))
	assert.Equal(t, 2, g.passes(5, ann))
	tokyo := daily(7) // midnight there is 15:00 UTC
	tokyo.Timezone = "Asia/Tokyo"
	g.load(tokyo)
	assert.Equal(t, 2, g.passes(5, ann))
	g.at(midnight + 15*time.Hour - 1)
	assert.Equal(t, 0, g.passes(5, ann))
	g.at(midnight + 15*time.Hour)
	assert.Equal(t, 7, g.passes(9, ann))
	window := hotspot.Rule{ID: "r", Param: "user", Threshold: 100}
	g.load(window)
	assert.Equal(t, 9, g.passes(9, ann), "a window counts anew")
	g.load(daily(9))
	assert.Equal(t, 2, g.passes(9, ann), "what the quota admitted counts")
	g.load(window)
	assert.Equal(t, 9, g.passes(9, ann))
}

// Costs are settled in the period in which the call entered, also where their value shares the rest.
func TestQuotaOfCosts(t *testing.T) {
	for _, most := range []int{0, 1} {
		rule := daily(100)
		rule.Unit, rule.MaxOverdraft, rule.MaxValues = "tokens", 0.5, most
		g := newGuard(t, rule)
		enter := func(user string, n int64) (engine.Entry, error) {
			return g.enter(engine.Param("user", user), engine.Cost("tokens", n))
		}
		first, err := enter("first", 1)
		require.NoError(t, err)
		ann, err := enter("ann", 60)
		require.NoError(t, err)
		ann.Settle("tokens", 20)
		ann.Exit()
		ann, err = enter("ann", 80)
		require.NoError(t, err)
		_, err = enter("ann", 1)
		var block *core.BlockError
		require.ErrorAs(t, err, &block)
		assert.Equal(t, midnight, comeAgain(t, block))
		ann.Settle("tokens", 1000)
		ann.Exit()
		ann, err = enter("ann", 1)
		require.Error(t, err)
		g.at(midnight)
		first.Exit()
		ann, err = enter("ann", 60)
		require.NoError(t, err)
		g.at(midnight + 24*time.Hour)
		next, err := enter("ann", 100)
		require.NoError(t, err)
		ann.Settle("tokens", 1) // of the day before
		ann.Exit()
		_, err = enter("ann", 1)
		require.Error(t, err)
		next.Settle("tokens", 99)
		next.Exit()
		ann, err = enter("ann", 1)
		require.NoError(t, err)
		ann.Exit()
	}
}

func TestQuotaAllocatesNothing(t *testing.T) {
	g := newGuard(t, daily(150))
	opts := []engine.Option{user("ann")}
	ctx := t.Context()
	race.AllocatesNothing(t, 300, func() { // half of them are refused
		e, _ := g.Enter(ctx, "orders", opts)
		e.Exit()
	})
}

// The page on quotas states the bytes of a key.
func TestBytesOfAQuota(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector needs memory of its own")
	}
	const keys = 50_000
	rule := daily(150)
	rule.MaxValues = keys
	g := newGuard(t, rule)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range keys {
		e, _ := g.enter(user(fmt.Sprintf("user-%06d", i)))
		e.Exit()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / keys // other tests' garbage may have gone
	t.Logf("%.0f bytes a key", each)
	assert.Less(t, each, 500.0)
	runtime.KeepAlive(g)
}
