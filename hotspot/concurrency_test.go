package hotspot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
)

// open makes n calls that stay open until the returned function is called.
func (g *guard) open(n int, opts ...engine.Option) (exit func()) {
	g.t.Helper()
	entries := make([]engine.Entry, n)
	for i := range entries {
		e, err := g.enter(opts...)
		require.NoError(g.t, err)
		entries[i] = e
	}
	return func() {
		for _, e := range entries {
			e.Exit()
		}
	}
}

func TestConcurrencyOfEachValue(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "c", Param: "user", Threshold: 3, Metric: hotspot.Concurrency})
	exit := g.open(3, user("ann"))
	assert.Equal(t, "block", g.outcome(user("ann")))
	assert.Equal(t, "pass x5", g.outcomes(5, user("bob")))
	exit()
	exit()
	assert.Equal(t, "pass", g.outcome(user("ann"), engine.Units(3)), "a batch of three holds three")
	exit = g.open(1, user("ann"), engine.Units(2))
	assert.Equal(t, "block", g.outcome(user("ann"), engine.Units(2)))
	assert.EqualValues(t, 2, g.inFlight())
	exit()
	assert.Zero(t, g.inFlight())
}

func TestConcurrencyOfLists(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 2, Metric: hotspot.Concurrency})
	exit := g.open(1, user([]string{"a", "b"}))
	exit2 := g.open(1, user([]string{"a", "c"}))
	assert.Equal(t, "block", g.outcome(user("a")))
	assert.Equal(t, "block", g.outcome(user([]string{"c", "a"})))
	assert.Equal(t, "block", g.outcome(user([]string{"d", "d", "d"})))
	assert.EqualValues(t, 4, g.inFlight(), "a refused list holds nothing")
	exit()
	assert.Equal(t, "pass", g.outcome(user("a")))
	exit2()
}

// Held units are released exactly once, the way they were taken, even if the rules have changed.
// known bug 88, 89
func TestConcurrencyOverReloads(t *testing.T) {
	rule := hotspot.Rule{ID: "c", Param: "user", Threshold: 2, Metric: hotspot.Concurrency}
	g := newGuard(t, rule)
	exit := g.open(2, user("ann"))
	rule.Threshold = 3
	g.load(rule)
	assert.Equal(t, "pass", g.outcome(user("ann")), "one more than before")
	exit3 := g.open(1, user("ann"))
	assert.Equal(t, "block", g.outcome(user("ann")), "those in flight count on")
	rule.Exceptions = []hotspot.Exception{{Value: argument.Of("ann"), Threshold: 4}}
	g.load(rule)
	assert.Equal(t, "pass", g.outcome(user("ann")))
	exit4 := g.open(1, user("ann"))
	assert.Equal(t, "block", g.outcome(user("ann")))
	rule.Exceptions = nil
	rule.Threshold = 1
	g.load(rule)
	exit()
	exit3()
	assert.Equal(t, "block", g.outcome(user("ann")))
	exit4()
	assert.Equal(t, "pass", g.outcome(user("ann")))

	exit = g.open(1, user("ann"))
	g.load() // no rules
	g.load(rule)
	exit()
	assert.Equal(t, "pass", g.outcome(user("ann")))
	assert.Zero(t, g.inFlight(), "never below none")
}
