package adaptive_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
)

// got returns the share of the calls of each level that were admitted.
func (s *service) got() (share [4]float64) {
	for i := range share {
		share[i] = float64(s.admitted[i]) / float64(s.offered[i])
	}
	return share
}

// The demand is three times the capacity, a fifteenth of it of the highest level. That level loses few
// of its calls, each level gets at least as much of its demand as the next lower one, and the work
// done is not much less than without an order.
func TestShedsTheLowestLevelsFirst(t *testing.T) {
	race.OneGoroutine(t)
	top, work, runs := 1.0, 1.0, 0
	for _, p := range sizes(2, 3) { // the page has smaller ones
		for _, d := range distributions {
			for _, seed := range seeds() {
				s := p.shedding(t, seed, d, spec.ShedLevels)
				s.settle(3, 60*time.Second)
				s.offered, s.admitted = [4]int{}, [4]int{}
				v := s.watch(3, 6)
				today := p.under(t, seed, d)
				today.settle(3, 60*time.Second)
				got := s.got()
				assert.True(t, slices.IsSortedFunc(got[:], func(a, b float64) int { return -1 * int(1000*(a-b)) }), "%v, %s, -seed=%d: %v", p, d.name, seed, got)
				top, work = min(top, got[0]), min(work, 1-v.loss(today.watch(3, 6)))
				runs++
			}
		}
	}
	figure.Report(t, figure.Figure{Name: "criticalPlus calls admitted by an adaptive rule at three times the load, from 64 workers on", Value: 100 * top, Unit: "%", AtLeast: 95, N: int64(runs), Seed: *seed})
	figure.Report(t, figure.Figure{Name: "work done beside that without levels", Value: 100 * work, Unit: "%", AtLeast: 80, N: int64(runs), Seed: *seed})
}

// If all calls have the same level, whichever that is, each verdict is that of a rule without an
// order.
func TestOneLevelIsJudgedAsWithoutOrder(t *testing.T) {
	race.OneGoroutine(t)
	run := func(rule adaptive.Rule, mix []float64) (verdicts []int, limits []adaptive.LimitStats) {
		s := newService(t, newGuard(t, rule), *seed, 16, 20*ms, lognormal(1))
		s.mix = mix
		s.run(2*s.capacity(), 20*time.Second, func() {
			verdicts = append(verdicts, s.refused, s.done)
			l := s.limit()
			l.Levels = nil
			limits = append(limits, l)
		})
		return verdicts, limits
	}
	for level := range 4 {
		mix := make([]float64, 4)
		mix[level] = 1
		verdicts, limits := run(adaptive.Rule{Resource: "orders"}, mix)
		ordered, learned := run(adaptive.Rule{Resource: "orders", Shed: spec.ShedLevels, Floors: spec.Floors{Sheddable: 5, Critical: 10}}, mix)
		require.Equal(t, verdicts, ordered, "%v", core.CriticalPlus+core.Level(level))
		require.Equal(t, limits, learned)
	}
}

// crowded returns a service with a rule that has learned how many calls come, at 1.5 times the
// capacity of the highest level and as many sheddable ones.
func crowded(t *testing.T, floors spec.Floors) *service {
	s := newService(t, newGuard(t, adaptive.Rule{ID: "learn", Resource: "orders", Start: 64, Shed: spec.ShedLevels, Floors: floors}), *seed, 64, 50*ms, exponential)
	s.learns = true
	s.mix = []float64{0.5, 0, 0, 0.5}
	s.settle(3, 20*time.Second)
	s.offered, s.admitted = [4]int{}, [4]int{}
	s.settle(3, 20*time.Second)
	return s
}

// A level that would get nothing gets its floor, and the rule shows that.
func TestFloors(t *testing.T) {
	none, some := crowded(t, spec.Floors{}), crowded(t, spec.Floors{Sheddable: 10})
	assert.Less(t, none.admitted[3], some.admitted[3]/5)
	share := float64(some.admitted[3]) / (20 * some.capacity())
	assert.InDelta(t, 0.1, share, 0.05, "of the capacity")
}

// A reload keeps the counts of the levels, also one that drops the order for a while.
func TestReloadKeepsLevels(t *testing.T) {
	s := crowded(t, spec.Floors{})
	before := s.limit().Levels
	require.Positive(t, before[3].Reserve)
	rule := adaptive.Rule{ID: "learn", Resource: "orders", Start: 64, Shed: spec.ShedLevels, Floors: spec.Floors{Sheddable: 3}, Window: time.Second}
	s.load(rule)
	after := s.limit().Levels
	require.Positive(t, after[3].Reserve)
	for i := range after {
		after[i].Reserve, before[i].Reserve = 0, 0 // the limit has begun to rise again
	}
	assert.Equal(t, before, after)
	rule.Shed, rule.Floors = spec.ShedNone, spec.Floors{}
	s.load(rule)
	assert.Nil(t, s.limit().Levels)
	rule.Shed = spec.ShedLevels
	s.load(rule)
	assert.Equal(t, before[0].Offered, s.limit().Levels[0].Offered)
}

// The refusal, the stats and the explanation name the level and the reserve.
func TestShedIsShown(t *testing.T) {
	s := crowded(t, spec.Floors{})
	l := s.limit().Levels
	require.Len(t, l, 4)
	assert.Equal(t, l[0].Offered, l[0].Admitted+l[0].Refused)
	assert.Zero(t, l[1].Offered)
	assert.Zero(t, l[0].Reserve)
	s.settle(0.01, 200*ms) // until there is room
	low := engine.Criticality(core.Sheddable)
	var refused error
	for refused == nil {
		var e engine.Entry
		if e, refused = s.Enter(t.Context(), "orders", []engine.Option{low}); refused == nil {
			t.Cleanup(e.Exit)
		}
	}
	require.EqualError(t, refused, `penstock: adaptive rule "learn" blocked "orders", a sheddable call, to leave room for others`)
	x, err := s.Explain(t.Context(), "orders", []engine.Option{low})
	require.NoError(t, err)
	assert.Equal(t, core.Refused, x.Outcome)
	l, inForce := s.limit().Levels, s.limit().InForce
	assert.Equal(t, fmt.Sprintf("sheddable calls leave %d of %d units free for those above", l[3].Reserve, inForce), x.Rules[0].Why)
	lines := s.figures("learn").Details.Lines(time.Time{})
	require.Len(t, lines, 2)
	assert.Contains(t, lines[1], "levels of orders: criticalPlus ")
	assert.Contains(t, lines[1], fmt.Sprintf(", leaves %d", l[3].Reserve))
}

// A rule in shadow mode refuses nothing, and counts by level what it would have refused.
func TestShadowShedsNothing(t *testing.T) {
	g := newGuard(t, adaptive.Rule{ID: "learn", Resource: "orders", Ceiling: 2, Start: 1, Shed: spec.ShedLevels, Mode: spec.Shadow})
	for range 4 {
		defer g.enter(engine.Criticality(core.Sheddable)).Exit()
	}
	f := g.figures("learn")
	assert.EqualValues(t, 3, f.ShadowBlocked)
	l := g.limit().Levels
	assert.Equal(t, core.LevelStats{Level: core.Sheddable, Offered: 4, Admitted: 1, Refused: 3}, l[3])
}

// The order and the floors must fit together.
func TestShedFields(t *testing.T) {
	for want, r := range map[string]adaptive.Rule{
		"shed: 2 is unknown: use api.ShedNone or api.ShedLevels":                 {Shed: 2},
		"floors: has no meaning for shed none: remove it, or set shed to levels": {Floors: spec.Floors{Critical: 1}},
		"floors.sheddable: is 101%: use a share of the limit from 0% to 100%":    {Shed: spec.ShedLevels, Floors: spec.Floors{Sheddable: 101}},
		"floors.sheddablePlus: is -1%: use a share of the limit from 0% to 100%": {Shed: spec.ShedLevels, Floors: spec.Floors{SheddablePlus: -1}},
	} {
		r.Resource = "orders"
		_, err := r.Normalized()
		assert.EqualError(t, err, want)
	}
}
