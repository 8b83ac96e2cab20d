package hotspot_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// planGame plays the same calls against a rule with plans, and against its twin: a rule without, which
// is loaded anew with an exception for the value whenever its plan changes.
type planGame struct {
	rule           hotspot.Rule
	plans, twin    *guard
	r              *rand.Rand
	of             map[string]string // the plan of each value, if the rule lists it
	open           [][2]engine.Entry
	now            time.Duration
	calls, blocked int
	changes        int
	unknown        int64
}

func newPlanGame(t *testing.T, r *rand.Rand) *planGame {
	rule := hotspot.Rule{ID: "r", Param: "user"}
	switch r.IntN(6) {
	case 0:
		rule.Window, rule.Burst = hotspot.Refill, r.IntN(3)
	case 1:
		rule.Metric = hotspot.Concurrency
	case 2:
		rule.Behavior, rule.MaxWait = hotspot.Throttle, time.Duration(r.IntN(800))*ms
	case 3:
		rule.Behavior, rule.Burst = hotspot.TokenBucket, r.IntN(4)
	}
	if rule.Window == hotspot.Strict && r.IntN(3) == 0 {
		rule.Unit = "tokens"
	}
	g := &planGame{r: r, rule: rule, of: make(map[string]string)}
	g.draw()
	g.plans, g.twin = newGuard(t, g.rule), newGuard(t, g.twinOf())
	return g
}

func (g *planGame) draw() {
	g.rule.Threshold, g.rule.Exceptions, g.rule.Plans = float64(g.r.IntN(6)), nil, make(map[string]float64)
	for i := range 3 {
		if g.r.IntN(4) > 0 {
			g.rule.Plans[fmt.Sprint("p", i)] = float64(g.r.IntN(9))
		}
		if g.r.IntN(4) == 0 {
			g.rule.Exceptions = append(g.rule.Exceptions, hotspot.Exception{Value: hotspot.ValueOf(fmt.Sprint("u", i)), Threshold: float64(g.r.IntN(9))})
		}
	}
}

// twinOf returns the twin's rule: exceptions come first, then the plan, then the threshold.
func (g *planGame) twinOf() hotspot.Rule {
	twin := g.rule
	twin.Plans = nil
	twin.Exceptions = slices.Clone(g.rule.Exceptions)
	for _, user := range slices.Sorted(maps.Keys(g.of)) {
		of := func(x hotspot.Exception) bool { return x.Value == hotspot.ValueOf(user) }
		if !slices.ContainsFunc(g.rule.Exceptions, of) {
			twin.Exceptions = append(twin.Exceptions, hotspot.Exception{Value: hotspot.ValueOf(user), Threshold: g.rule.Plans[g.of[user]]})
		}
	}
	return twin
}

func (g *planGame) enter(t *testing.T) {
	r := g.r
	user, name := fmt.Sprint("u", r.IntN(5)), []string{"", "p0", "p1", "p2", "p9"}[r.IntN(5)]
	if before, ok := g.of[user]; r.IntN(3) > 0 && ok {
		name = before // so that plans last for some calls
	}
	before := g.of[user]
	if delete(g.of, user); name != "" {
		if _, ok := g.rule.Plans[name]; ok {
			g.of[user] = name
		} else if len(g.rule.Plans) > 0 {
			g.unknown++
		}
	}
	if g.of[user] != before {
		g.twin.load(g.twinOf())
		g.changes++
	}
	opts := []engine.Option{engine.Param("user", user), engine.Units(1 + r.IntN(2))}
	if g.rule.Unit != "" {
		opts = append(opts, engine.Cost(g.rule.Unit, 1+r.Int64N(3)))
	}
	with := append(slices.Clone(opts), engine.Plan(name))
	wanted, err := g.twin.Explain(t.Context(), "orders", opts)
	require.NoError(t, err)
	explained, err := g.plans.Explain(t.Context(), "orders", with)
	require.NoError(t, err)
	require.Equal(t, wanted.Rules, explained.Rules)
	a, err := g.plans.enter(with...)
	b, twinErr := g.twin.enter(opts...)
	require.Equal(t, twinErr == nil, err == nil, "%s under %q of %+v: the twin says %v, not %v", user, name, g.rule, twinErr, err)
	require.Equal(t, g.twin.clock.Slept(), g.plans.clock.Slept())
	left, _ := a.Remaining(g.rule.Unit)
	twinLeft, _ := b.Remaining(g.rule.Unit)
	require.Equal(t, twinLeft, left)
	if g.calls++; err == nil {
		g.open = append(g.open, [2]engine.Entry{a, b})
		return
	}
	g.blocked++
	sameRefusal(t, err, twinErr)
}

// Under a rule with plans, each value gets what it would get if its plan were an exception, loaded when
// the plan changes: with every metric and behavior, across reloads and changes of plans.
func TestPlansAreExceptionsByPlan(t *testing.T) {
	r := random(t)
	calls, blocked, changes := 0, 0, 0
	for range figure.Size(300, 300, 5_000, 50_000) {
		g := newPlanGame(t, r)
		for range 200 {
			switch n := r.IntN(40); {
			case n == 0:
				g.draw()
				maps.DeleteFunc(g.of, func(_, name string) bool { _, ok := g.rule.Plans[name]; return !ok })
				g.plans.load(g.rule)
				g.twin.load(g.twinOf())
			case n < 8:
				g.now += time.Duration(r.Int64N(int64(400 * ms)))
				g.plans.at(g.now)
				g.twin.at(g.now)
			case n < 14 && len(g.open) > 0:
				g.open = exitPair(r, g.open, g.rule.Unit)
			default:
				g.enter(t)
			}
		}
		for len(g.open) > 0 {
			g.open = exitPair(r, g.open, g.rule.Unit)
		}
		require.Equal(t, g.unknown, g.plans.details("r").UnknownPlans)
		calls, blocked, changes = calls+g.calls, blocked+g.blocked, changes+g.changes
	}
	t.Log(calls, "calls,", blocked, "blocked,", changes, "changes of plans")
	assert.Greater(t, blocked, calls/10)
	assert.Greater(t, changes, calls/10)
}

// However few values a rule tracks, no value gets more than the limit of its plan.
func TestValuesWithPlansThatFindNoRoomGetNoMore(t *testing.T) {
	r := random(t)
	passed, overflowed := 0, int64(0)
	for range figure.Size(200, 200, 3_000, 30_000) {
		rule := hotspot.Rule{ID: "r", Param: "user", MaxValues: 1 + r.IntN(4), Threshold: float64(r.IntN(5)), Plans: make(map[string]float64)}
		switch r.IntN(4) {
		case 1:
			rule.Metric = hotspot.Concurrency
		case 2:
			rule.Behavior, rule.MaxWait = hotspot.Throttle, time.Second
		case 3:
			rule.Behavior, rule.Burst = hotspot.TokenBucket, r.IntN(4)
		}
		quickest := rule.Threshold
		for i := range 3 {
			limit := []float64{0, 1, 3, 8, 20}[r.IntN(5)]
			rule.Plans[fmt.Sprint("p", i)], quickest = limit, max(quickest, limit)
		}
		g := newGuard(t, rule)
		meters := make(map[string]*keyMeter)
		type held struct {
			engine.Entry
			*keyMeter
		}
		var open []held
		now := time.Duration(0)
		for range 300 {
			switch n := r.IntN(60); {
			case n < 12:
				now += time.Duration(r.Int64N(int64(500 * ms)))
				g.at(now)
			case n < 20 && len(open) > 0:
				i := r.IntN(len(open))
				open[i].Exit()
				open[i].held--
				open = slices.Delete(open, i, i+1)
			default:
				user, name := fmt.Sprint("u", r.IntN(12)), fmt.Sprint("p", r.IntN(4))
				m := meters[user]
				if m == nil {
					m = &keyMeter{rule: &rule, at: now}
					meters[user] = m
				}
				limit, ok := rule.Plans[name]
				if !ok {
					limit = rule.Threshold
				}
				m.to(now)
				m.set(limit, quickest)
				e, wait, err := g.waits(engine.Param("user", user), engine.Plan(name))
				if err != nil {
					continue
				}
				passed++
				require.Empty(t, m.took(now, wait), "%s, whose limit is %v, of %+v", user, limit, rule)
				open = append(open, held{e, m})
			}
		}
		for _, e := range open {
			e.Exit()
		}
		overflowed += g.details("r").Overflowed
	}
	t.Log(passed, "passed,", overflowed, "found no room")
	assert.Greater(t, overflowed, int64(passed)/4)
}
