package hotspot_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// Two rules that differ in any field are not equal.
// known bug 71
func TestRuleEqualSeesEveryField(t *testing.T) {
	trial.EveryFieldCounts(t, hotspot.Rule{Resource: "orders", Param: "user", Threshold: 5}, hotspot.Lockout{After: 2, For: time.Minute},
		hotspot.At(1), []hotspot.Exception{{Value: argument.Of("ann"), Threshold: 9}}, map[string]float64{"pro": 9}, cluster.Rule{Scope: cluster.Global}, spec.Response{Status: 503})
}

// known bug 72
func TestReloadForgetsNothing(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 5}
	other := hotspot.Rule{ID: "o", Resource: "other", Index: hotspot.At(0), Threshold: 1}
	for _, tt := range []struct {
		name  string
		after func(*hotspot.Rule)
		want  string
	}{
		{"unchanged", func(*hotspot.Rule) {}, "block x9"},
		{"a higher threshold", func(r *hotspot.Rule) { r.Threshold = 8 }, "pass x3, block x6"},
		{"a lower one", func(r *hotspot.Rule) { r.Threshold = 4 }, "block x9"},
		{"a burst", func(r *hotspot.Rule) { r.Burst, r.Window = 2, hotspot.Refill }, "pass x2, block x7"},
		{"a longer interval", func(r *hotspot.Rule) { r.Interval = time.Minute }, "block x9"},
		{"a shorter one", func(r *hotspot.Rule) { r.Interval = 100 * ms }, "block x9"},
		{"an exception", func(r *hotspot.Rule) {
			r.Exceptions = []hotspot.Exception{{Value: argument.Of("ann"), Threshold: 6}}
		}, "pass, block x8"},
		{"room for fewer values", func(r *hotspot.Rule) { r.MaxValues = 1 }, "block x9"},
		{"another argument", func(r *hotspot.Rule) { r.Param = ""; r.Index = hotspot.At(0) }, "pass x5, block x4"},
		{"another id", func(r *hotspot.Rule) { r.ID = "s" }, "block x9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(t, rule)
			ann := []engine.Option{user("ann"), engine.Args("ann")}
			assert.Equal(t, "pass x5, block", g.outcomes(6, ann...))
			after := rule
			tt.after(&after)
			g.load(other, after)
			assert.Equal(t, tt.want, g.outcomes(9, ann...))
			g.load(after, other)
			assert.Equal(t, "block", g.outcome(ann...))
		})
	}
}

func TestReloadKeepsTheQueue(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 10, Behavior: hotspot.Throttle, MaxWait: time.Second}
	g := newGuard(t, rule)
	assert.Equal(t, "pass, 100ms, 200ms", g.outcomes(3, user("ann")))
	rule.Threshold = 20
	g.load(rule)
	assert.Equal(t, "250ms, 300ms", g.outcomes(2, user("ann")))
}

// A rule that is off for a while continues where it was.
func TestOffAndOn(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 2}
	g := newGuard(t, rule)
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("ann")))
	rule.Mode = spec.Off
	g.load(rule)
	assert.Equal(t, "pass x3", g.outcomes(3, user("ann")))
	rule.Mode = spec.Enforce
	g.load(rule)
	assert.Equal(t, "block", g.outcome(user("ann")))
}

// A bad update changes nothing, including the values that the rules name.
// known bug 73
func TestBadUpdate(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "r", Param: "user", Threshold: 2})
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("ann")))
	err := g.Update(func(b *engine.SnapshotBuilder) error {
		return hotspot.Compile(b, []hotspot.Rule{
			{ID: "r", Resource: "orders", Param: "user", Threshold: 9, Exceptions: []hotspot.Exception{{Value: argument.Of("x"), Threshold: 1}}},
			{Resource: "orders"},
		})
	})
	assert.ErrorContains(t, err, "hotspot[1].index: or param or keys is required")
	assert.Equal(t, "block", g.outcome(user("ann")))
}

func TestEachResourceOfAPatternHasItsOwnValues(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "r", Resource: "order.*", Match: spec.MatchRegex, Param: "user", Threshold: 2})
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("ann")))
	e, err := g.Enter(t.Context(), "order 7", []engine.Option{user("ann")})
	assert.NoError(t, err)
	e.Exit()
	assert.EqualValues(t, 1, g.figures("r").Refused)
	f := g.details("r")
	assert.Equal(t, 2, f.Values)
	assert.Equal(t, []hotspot.ValueStats{
		{Resource: "orders", Value: `"ann"`, Passed: 2, Refused: 1, Measure: engine.MeasureUnits("units in 1s", 2, 2)},
		{Resource: "order 7", Value: `"ann"`, Passed: 1, Measure: engine.MeasureUnits("units in 1s", 1, 2)},
	}, f.Top)
}

// A hot value's measure is the same as its next call would get.
func TestHotValuesTellHowFullTheyAre(t *testing.T) {
	for name, r := range map[string]hotspot.Rule{
		"reject":      {Threshold: 4},
		"throttle":    {Threshold: 4, Behavior: hotspot.Throttle, MaxWait: 2 * time.Second},
		"tokens":      {Threshold: 4, Burst: 3, Behavior: hotspot.TokenBucket},
		"concurrency": {Threshold: 4, Metric: hotspot.Concurrency},
		"exception":   {Threshold: 100, Exceptions: []hotspot.Exception{{Value: argument.Of("ann"), Threshold: 3}}},
		"nothing":     {Threshold: 0},
	} {
		t.Run(name, func(t *testing.T) {
			r.ID, r.Param = "r", "user"
			g := newGuard(t, r)
			for range 2 {
				e, err := g.Enter(t.Context(), "orders", []engine.Option{user("ann")})
				if err == nil {
					defer e.Exit()
				}
			}
			x, err := g.Explain(t.Context(), "orders", []engine.Option{user("ann")})
			require.NoError(t, err)
			want := x.Rules[0].Measures[0]
			want.For = ""
			top := g.details("r").Top
			require.Len(t, top, 1)
			assert.Equal(t, want, top[0].Measure)
		})
	}
}
