package hotspot_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotspot"
)

func TestRejectLimitsEachValue(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 3})
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("ann")))
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("bob")))
	g.at(1000 * ms)
	assert.Equal(t, "block", g.outcome(user("ann")), "units come back after more than the interval")
	g.at(1001 * ms)
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("ann")))
	assert.Equal(t, "pass x5", g.outcomes(5), "a call without the attachment is not limited")
	assert.Equal(t, "pass x5", g.outcomes(5, user(nil)))
}

func TestBurst(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 2, Burst: 3, Interval: 100 * ms})
	assert.Equal(t, "pass x5, block", g.outcomes(6, user(1)))
	g.at(101 * ms)
	assert.Equal(t, "pass x2, block", g.outcomes(3, user(1)), "earned in one interval")
	g.at(302 * ms)
	assert.Equal(t, "pass x4, block", g.outcomes(5, user(1)), "in two")
	g.at(time.Hour)
	assert.Equal(t, "pass x5, block", g.outcomes(6, user(1)), "never more than a full bucket")
}

// museum 91: what is more than the limit is refused in every state: unseen, idle, used.
func TestMoreThanTheLimitNeverPasses(t *testing.T) {
	for _, rule := range []hotspot.Rule{
		{Param: "user", Threshold: 3},
		{Param: "user", Threshold: 3, Metric: hotspot.Concurrency},
	} {
		g := newGuard(t, rule)
		assert.Equal(t, "block", g.outcome(user("ann"), core.Count(4)), "unseen")
		assert.Equal(t, "pass", g.outcome(user("ann")))
		assert.Equal(t, "block", g.outcome(user("ann"), core.Count(4)), "used")
		g.at(time.Hour)
		assert.Equal(t, "block", g.outcome(user("ann"), core.Count(4)), "idle")
		assert.Equal(t, "pass", g.outcome(user("ann"), core.Count(3)))
	}
}

func TestThresholdZeroBlocks(t *testing.T) {
	for _, rule := range []hotspot.Rule{
		{}, {Burst: 5}, {Threshold: 0.9}, {Metric: hotspot.Concurrency}, {Behavior: hotspot.Throttle},
	} {
		rule.Index = hotspot.At(0)
		g := newGuard(t, rule)
		assert.Equal(t, "block x2", g.outcomes(2, core.Args("x")), "%+v", rule)
		assert.Equal(t, "pass", g.outcome(), "%+v", rule)
	}
}

func TestIndexCountsFromBothEnds(t *testing.T) {
	g := newGuard(t,
		hotspot.Rule{ID: "second", Index: hotspot.At(1), Threshold: 1},
		hotspot.Rule{ID: "last", Index: hotspot.At(-1), Threshold: 2, Interval: time.Minute},
	)
	assert.Equal(t, "pass x2", g.outcomes(2), "no arguments at all")
	assert.Equal(t, "pass x2, block", g.outcomes(3, core.Args("a")), "the last is also the first, and no second")
	assert.Equal(t, "block", g.outcome(core.Args("b", "a")), "the last is a")
	assert.Equal(t, "pass, block", g.outcomes(2, core.Args("b", "c")), "the second is c")
	assert.Equal(t, "block", g.outcome(core.Args("b", "c", "d")), "of each call as it comes")
	assert.Equal(t, "pass", g.outcome(core.Args("b", "e", "d")))
}

func TestExceptions(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 1, Exceptions: []hotspot.Exception{
		{Value: core.ValueOf("vip"), Threshold: 3},
		{Value: core.ValueOf("banned"), Threshold: 0},
		{Value: core.ValueOf(42), Threshold: 2},
		{Value: core.ValueOf(true), Threshold: 2},
		{Value: core.ValueOf(1.5), Threshold: 2},
	}})
	assert.Equal(t, "pass, block", g.outcomes(2, user("ann")))
	assert.Equal(t, "pass x3, block", g.outcomes(4, user("vip")))
	assert.Equal(t, "block", g.outcomes(1, user("banned")))
	assert.Equal(t, "pass x2, block", g.outcomes(3, user(uint8(42))))
	assert.Equal(t, "pass, block", g.outcomes(2, user("42")), "text is no number")
	assert.Equal(t, "pass x2, block", g.outcomes(3, user(true)))
	assert.Equal(t, "pass x2, block", g.outcomes(3, user(float32(1.5))))
}

func TestListsTakeEveryElement(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "l", Param: "user", Threshold: 2})
	assert.Equal(t, "pass", g.outcome(user([]string{"a", "b"})))
	assert.Equal(t, "pass", g.outcome(user([]any{"b"})))
	assert.Equal(t, "block", g.outcome(user([]string{"a", "b"})), "b has none left")
	assert.Equal(t, "pass, block", g.outcomes(2, user("a")), "and a kept what it had")
	assert.Equal(t, "block", g.outcome(user([]string{"c", "c", "c"})), "one that is there three times takes three")
	assert.Equal(t, "pass, block", g.outcomes(2, user([]string{"c", "c"})))
	assert.Equal(t, "pass", g.outcome(user([]string{})))
	assert.Equal(t, "pass", g.outcome(user([]any{nil})))
	var many []int
	for i := range 100 {
		many = append(many, i%50)
	}
	assert.Equal(t, "pass, block", g.outcomes(2, user(many)))
	assert.Equal(t, "block", g.outcome(user(7)))
	assert.Equal(t, "pass x2, block", g.outcomes(3, core.Param("user", "x"), core.Param("user", "y")), "several attachments are like a list")
}

// What one rule took is given back when another refuses.
func TestSeveralRulesGiveBack(t *testing.T) {
	g := newGuard(t,
		hotspot.Rule{ID: "user", Param: "user", Threshold: 3, Interval: time.Minute},
		hotspot.Rule{ID: "item", Param: "item", Threshold: 1, Interval: time.Minute},
	)
	item := func(v any) core.Option { return core.Param("item", v) }
	assert.Equal(t, "pass, block x9", g.outcomes(10, user("ann"), item(1)))
	assert.Equal(t, "pass", g.outcome(user("ann"), item(2)))
	assert.Equal(t, "pass", g.outcome(user("ann"), item(3)))
	_, err := g.enter(user("ann"), item(4))
	require.ErrorContains(t, err, `hotspot rule "user"`)
}

func TestShadowRefusesNobodyAndKeepsNothing(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "s", Param: "user", Threshold: 2, Mode: core.Shadow})
	assert.Equal(t, "pass x5", g.outcomes(5, user("ann")))
	assert.EqualValues(t, 3, g.figures("s").Rehearsed)
	assert.Equal(t, "pass", g.outcome(user([]string{"bob", "ann"})))
	assert.EqualValues(t, 4, g.figures("s").Rehearsed)
	g.load(hotspot.Rule{ID: "s", Param: "user", Threshold: 2})
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("bob")), "what the refused list took of bob is back")
}
