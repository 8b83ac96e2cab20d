package hotspot_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func TestAPlanSetsTheLimitOfAValue(t *testing.T) {
	rule := hotspot.Rule{
		ID: "r", Param: "user", Threshold: 2, Plans: map[string]float64{"free": 3, "pro": 5, "none": 0},
		Exceptions: []hotspot.Exception{{Value: hotspot.ValueOf("batch"), Threshold: 4}},
	}
	g := newGuard(t, rule)
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("ann")))
	assert.Equal(t, "pass, block", g.outcomes(2, user("ann"), engine.Plan("free")), "used units stay used")
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("ann"), engine.Plan("pro")))
	assert.Equal(t, "block", g.outcome(user("ann"), engine.Plan("")), "no plan again")
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("bob"), engine.Plan("gold")), "not listed")
	assert.Equal(t, "block", g.outcome(user("eve"), engine.Plan("none")))
	assert.Equal(t, "pass x4, block", g.outcomes(5, user("batch"), engine.Plan("pro")), "an exception goes first")
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("cy"), engine.Plan("gold"), engine.Plan("free")), "the last plan counts")
	d := g.details("r")
	assert.Equal(t, int64(3), d.UnknownPlans)
	assert.Contains(t, d.Lines(time.Time{})[0], "; 3 calls named a plan that the rule doesn't list")

	rule.Plans = map[string]float64{"free": 4}
	g.load(rule)
	assert.Equal(t, "pass, block", g.outcomes(2, user("cy"), engine.Plan("free")), "of the new limit 3 are used")
	x, err := g.Explain(t.Context(), "orders", []engine.Option{user("cy"), engine.Plan("pro")})
	assert.NoError(t, err)
	assert.Equal(t, 2.0, x.Rules[0].Measures[0].Limit)
}

func TestPlansAllocateNothing(t *testing.T) {
	for _, rule := range []hotspot.Rule{{}, {Metric: hotspot.Concurrency}, {Behavior: hotspot.TokenBucket, Burst: 1e6}} {
		rule.Param, rule.Plans = "user", map[string]float64{"pro": 1e9}
		g := newGuard(t, rule)
		opts := []engine.Option{user("ann"), engine.Plan("pro")}
		race.AllocatesNothing(t, 1000, func() {
			e, err := g.Enter(t.Context(), "orders", opts)
			if e.Exit(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Calls of one value under two plans pass up to the limit of the larger, under any concurrency, also
// while the value lends units to lanes.
func TestPlansAreExactUnderConcurrency(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "r", Param: "user", Plans: map[string]float64{"free": 300, "pro": 500}, Threshold: 0})
	var passed [2]atomic.Int64
	trial.Together(8, func(i int) {
		for n := range 400 {
			plan := (i + n/50) % 2
			e, err := g.enter(user("ann"), engine.Plan([]string{"free", "pro"}[plan]))
			if e.Exit(); err == nil {
				passed[plan].Add(1)
			}
		}
	})
	assert.Equal(t, int64(500), passed[0].Load()+passed[1].Load())
	assert.LessOrEqual(t, passed[0].Load(), int64(300))
}
