package adaptive_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// One line for each field that can be wrong, and each way to be wrong.
// known bug 36, 47
func TestRuleRefuses(t *testing.T) {
	for _, tt := range []struct {
		rule adaptive.Rule
		want string
	}{
		{adaptive.Rule{}, "resource: is required: name the resource that the rule limits"},
		{adaptive.Rule{Resource: "a(b", Match: spec.MatchRegex}, `resource: is not a valid regular expression: missing closing ): "a(b"`},
		{adaptive.Rule{Floor: -1}, "floor: is -1: use a whole number from 1 to 1000000"},
		{adaptive.Rule{Floor: math.MinInt}, "floor: is "},
		{adaptive.Rule{Floor: math.MaxInt}, "floor: is "},
		{adaptive.Rule{Floor: 1_000_001}, "floor: is 1000001: use a whole number from 1 to 1000000"},
		{adaptive.Rule{Floor: 1_000_000}, "ceiling: equals the floor, which leaves nothing to learn: use an isolation rule with threshold 1000000, or a higher ceiling"},
		{adaptive.Rule{Ceiling: -1}, "ceiling: is -1: use a whole number from 1 to 1000000"},
		{adaptive.Rule{Ceiling: math.MaxInt}, "ceiling: is "},
		{adaptive.Rule{Ceiling: 1_000_001}, "ceiling: is 1000001: use a whole number from 1 to 1000000"},
		{adaptive.Rule{Floor: 5, Ceiling: 4}, "ceiling: is 4, below the floor, 5: use a ceiling above the floor"},
		{adaptive.Rule{Ceiling: 1}, "ceiling: equals the floor, which leaves nothing to learn: use an isolation rule with threshold 1, or a higher ceiling"},
		{adaptive.Rule{Start: -1}, "start: is -1: use a whole number from the floor to the ceiling, 1 to 1000, or leave it out"},
		{adaptive.Rule{Start: 1001}, "start: is 1001: use a whole number from the floor to the ceiling, 1 to 1000, or leave it out"},
		{adaptive.Rule{Floor: 3, Start: 2}, "start: is 2: use a whole number from the floor to the ceiling, 3 to 1000, or leave it out"},
		{adaptive.Rule{Window: -1}, "window: is -1ns: use a duration from 10ms to 1m0s"},
		{adaptive.Rule{Window: 10*time.Millisecond - 1}, "window: is 9.999999ms: use a duration from 10ms to 1m0s"},
		{adaptive.Rule{Window: time.Minute + 1}, "window: is 1m0.000000001s: use a duration from 10ms to 1m0s"},
		{adaptive.Rule{Mode: 3}, "mode: 3 is unknown: use api.Enforce, api.Shadow or api.Off"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			if tt.rule.Resource == "" && !strings.HasPrefix(tt.want, "resource: is req") {
				tt.rule.Resource = "orders"
			}
			_, err := tt.rule.Normalized()
			var field *spec.FieldError
			require.ErrorAs(t, err, &field)
			assert.True(t, strings.HasPrefix(err.Error(), tt.want), "%v", err)

			// The error gives the position in the list, and the loaded rules stay.
			g := newGuard(t, adaptive.Rule{Resource: "orders", Start: 1, Ceiling: 2})
			err = g.Update(func(b *engine.SnapshotBuilder) error {
				return adaptive.Compile(b, []adaptive.Rule{{Resource: "a"}, tt.rule})
			})
			require.ErrorContains(t, err, "adaptive[1]."+tt.want)
			defer g.enter(engine.Units(2)).Exit()
			g.refused()
		})
	}
}

// The ends of every range are valid, and the defaults fit in.
func TestRuleAccepts(t *testing.T) {
	for _, tt := range []struct {
		rule, want adaptive.Rule
	}{
		{adaptive.Rule{}, adaptive.Rule{Floor: 1, Ceiling: 1000, Start: 20, Window: 500 * ms}},
		{adaptive.Rule{Ceiling: 2}, adaptive.Rule{Floor: 1, Ceiling: 2, Start: 2, Window: 500 * ms}},
		{adaptive.Rule{Floor: 50}, adaptive.Rule{Floor: 50, Ceiling: 1000, Start: 50, Window: 500 * ms}},
		{adaptive.Rule{Floor: 5000}, adaptive.Rule{Floor: 5000, Ceiling: 10_000, Start: 5000, Window: 500 * ms}},
		{
			adaptive.Rule{Floor: 999_999, Ceiling: 1_000_000, Start: 1_000_000, Window: 10 * ms},
			adaptive.Rule{Floor: 999_999, Ceiling: 1_000_000, Start: 1_000_000, Window: 10 * ms},
		},
		{adaptive.Rule{Window: time.Minute}, adaptive.Rule{Floor: 1, Ceiling: 1000, Start: 20, Window: time.Minute}},
	} {
		tt.rule.Resource, tt.want.Resource, tt.want.ID = "orders", "orders", "adaptive:orders"
		got, err := tt.rule.Normalized()
		require.NoError(t, err)
		assert.Equal(t, tt.want, got)
		g := newGuard(t, tt.rule)
		g.enter().Exit()
		assert.Zero(t, g.Failures())
	}
}

// Two rules that differ in any field are not equal.
// known bug 71
func TestRuleEquality(t *testing.T) {
	trial.EveryFieldCounts(t, adaptive.Rule{}, spec.Floors{Sheddable: 5}, spec.Response{Status: 503})
}

func TestRuleIDs(t *testing.T) {
	trial.IDs(t, core.KindAdaptive, adaptive.Rule.Normalized, adaptive.Rule{Resource: "orders", Ceiling: 5}, adaptive.Rule{Resource: "orders", Ceiling: 7})
}

// The count of refusals continues when the rule changes, and a refusal names the new rule.
func TestRefusalsGoOnCounting(t *testing.T) {
	rule := adaptive.Rule{ID: "learn", Resource: "orders", Start: 1, Ceiling: 2}
	g := newGuard(t, rule)
	e := g.enter(engine.Units(2))
	g.refused()
	rule.Window = time.Second
	g.load(rule)
	_, err := g.Enter(t.Context(), "orders", nil)
	require.EqualError(t, err, `penstock: adaptive rule "learn" blocked "orders"`)
	e.Exit()
	f := g.figures("learn")
	assert.EqualValues(t, 2, f.Refused)
	assert.Equal(t, core.KindAdaptive, f.Kind)
	assert.Equal(t, "orders", f.Resource)
}
