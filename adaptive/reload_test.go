package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// The learned limit survives a reload of the same rule, of one with another floor, ceiling, window
// or ID, and of one that was off or in shadow mode for a while.
// known bug 72
func TestReload(t *testing.T) {
	s := sixteen(t, learning(100), lognormal(0.5))
	s.settle(1.5, 60*time.Second)
	learned := s.limit()
	require.InDelta(t, 16, learned.Limit, 2)
	rule := learning(100)

	s.load(rule, adaptive.Rule{Resource: "others"})
	s.load(rule)
	assert.Equal(t, learned, s.limit(), "not even the round starts over")

	rule.Start = 50
	s.load(rule)
	assert.Equal(t, learned.Limit, s.limit().Limit)
	rule.Window = time.Second
	s.load(rule)
	assert.Equal(t, learned.Limit, s.limit().Limit)
	rule.ID = ""
	s.load(rule)
	assert.Equal(t, learned.Limit, s.limit().Limit)
	rule.Mode = spec.Off
	s.load(rule)
	assert.Nil(t, s.figures("adaptive:orders").Details)
	rule.Mode = spec.Shadow
	s.load(rule)
	assert.Equal(t, learned.Limit, s.limit().Limit)
	assert.Zero(t, s.limit().InForce)
	rule.Mode = spec.Enforce
	s.load(rule)
	assert.Equal(t, learned.Limit, s.limit().Limit)

	rule.Ceiling = 10
	rule.Start = 0
	s.load(rule)
	assert.EqualValues(t, 10, s.limit().Limit)
	assert.LessOrEqual(t, s.limit().InForce, int64(10))
	rule.Ceiling, rule.Floor = 100, 40
	s.load(rule)
	assert.EqualValues(t, 40, s.limit().Limit)
	assert.GreaterOrEqual(t, s.limit().InForce, int64(40))
	rule.Floor = 0
	s.load(rule)
	assert.EqualValues(t, 40, s.limit().Limit)
	assert.LessOrEqual(t, s.watch(1.5, 8).limits[7], 20.0)

	s.load()
	s.load(rule)
	assert.EqualValues(t, 20, s.limit().Limit, "a rule that was gone knows nothing")
}

// Loading an invalid rule changes nothing.
func TestRefusedReload(t *testing.T) {
	g := newGuard(t, at(2))
	require.Error(t, g.Update(func(b *engine.SnapshotBuilder) error {
		require.NoError(t, adaptive.Compile(b, []adaptive.Rule{at(9)}))
		return assert.AnError
	}))
	defer g.enter(engine.Units(2)).Exit()
	g.refused()
	assert.EqualValues(t, 2, g.limit().InForce)
}

// Each resource that a pattern matches has its own limit, in the order of their names. Resources
// beyond the cap share one limit that counts only them.
func TestPattern(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 2}}, adaptive.Rule{ID: "all", Resource: "GET .*", Match: spec.MatchRegex, Start: 2, Ceiling: 3, Window: time.Minute})
	enter := func(name string) engine.Entry {
		e, err := g.Enter(t.Context(), name, nil)
		require.NoError(t, err)
		return e
	}
	var in []engine.Entry
	for _, name := range []string{"GET b", "GET a"} {
		for range 3 {
			in = append(in, enter(name))
		}
		_, err := g.Enter(t.Context(), name, nil)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	for range 5 {
		in = append(in, enter("PUT x"))
	}
	in = append(in, enter("GET x"), enter("GET y"), enter("GET z"))
	_, err := g.Enter(t.Context(), "GET x", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	var names []string
	for _, l := range trial.Details[adaptive.Stats](t, g.Engine, "all").Limits {
		names = append(names, l.Resource)
	}
	assert.Equal(t, []string{node.OverflowName, "GET a", "GET b"}, names)
	for _, e := range in {
		e.Exit()
	}
}

// The same holds in shadow mode, where no other rule counts the other calls.
func TestPatternInShadow(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 1}}, shadow(adaptive.Rule{ID: "all", Resource: "GET .*", Match: spec.MatchRegex, Start: 2, Window: time.Minute}))
	var in []engine.Entry
	for _, name := range []string{"GET b", "PUT x", "GET x", "GET y", "GET z"} {
		e, err := g.Enter(t.Context(), name, nil)
		require.NoError(t, err)
		in = append(in, e)
	}
	assert.EqualValues(t, 1, g.figures("all").ShadowBlocked)
	for _, e := range in {
		e.Exit()
	}
}

// With two rules for one resource, both limits hold, and a call that one rule refuses holds no units
// of the other.
func TestTwoRules(t *testing.T) {
	small, large := at(2), at(3)
	large.ID = "large"
	for _, rules := range [][]adaptive.Rule{{small, large}, {large, small}} {
		g := newGuard(t, rules...)
		a, b := g.enter(), g.enter()
		for range 5 {
			g.refused()
		}
		a.Exit()
		b.Exit()
		g.enter(engine.Units(2)).Exit()
		g.refused(engine.Units(3))
		assert.EqualValues(t, 6, g.figures("learn").Refused+g.figures("large").Refused)
	}
}
