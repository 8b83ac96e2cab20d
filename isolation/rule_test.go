package isolation_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
)

// One line for each field that can be wrong, and each way to be wrong.
func TestRuleRefuses(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		rule isolation.Rule
		want string
	}{
		{isolation.Rule{}, "resource: is required: name the resource that the rule limits"},
		{isolation.Rule{Resource: "a(b", Match: spec.MatchRegex}, `resource: is not a valid regular expression: missing closing ): "a(b"`},
		{isolation.Rule{Threshold: -1}, "threshold: is -1: use a whole number from 0 to 1000000000"},
		{isolation.Rule{Threshold: 1_000_000_001}, "threshold: is 1000000001: use a whole number from 0 to 1000000000"},
		{isolation.Rule{Threshold: math.MinInt}, "threshold: is "},
		{isolation.Rule{Threshold: math.MaxInt}, "threshold: is "},
		{isolation.Rule{Threshold: 1, MaxQueue: -1, MaxWait: 1}, "maxQueue: is -1: use a whole number from 0 to 1000000"},
		{isolation.Rule{Threshold: 1, MaxQueue: 1_000_001, MaxWait: 1}, "maxQueue: is 1000001: use a whole number from 0 to 1000000"},
		{isolation.Rule{Threshold: 1, MaxQueue: 1, MaxWait: -1}, "maxWait: is -1ns: use a duration from 0s to 24h0m0s"},
		{isolation.Rule{Threshold: 1, MaxQueue: 1, MaxWait: day + 1}, "maxWait: is 24h0m0.000000001s: use a duration from 0s to 24h0m0s"},
		{isolation.Rule{Threshold: 1, MaxQueue: 1}, "maxWait: is required by maxQueue: set the longest time in the queue"},
		{isolation.Rule{Threshold: 1, MaxWait: 1}, "maxQueue: is required by maxWait: set the number of calls that may wait"},
		{isolation.Rule{MaxQueue: 1, MaxWait: 1}, "maxQueue: does not go with threshold 0, under which no call ever runs: remove maxQueue and maxWait"},
		{isolation.Rule{Unit: "calls", Threshold: 1}, "unit: is calls, which a rule counts without a unit: remove it"},
		{isolation.Rule{Unit: "a b", Threshold: 1}, `unit: is "a b": use 1 to 64 letters`},
		{isolation.Rule{Unit: "bytes", Threshold: 1, MaxQueue: 1, MaxWait: 1}, "maxQueue: has no meaning for a rule with a unit, which refuses calls that don't fit: remove maxQueue and maxWait, or unit"},
		{isolation.Rule{Threshold: 1, Estimate: 1}, "estimate: has no meaning for a rule that counts calls"},
		{isolation.Rule{Threshold: 1, MaxReserve: 1}, "maxReserve: has no meaning for a rule that counts calls"},
		{isolation.Rule{Unit: "bytes", Threshold: 5, Estimate: 6}, "estimate: is 6: use a whole number from 1 to the threshold, 5, or 0 for none"},
		{isolation.Rule{Unit: "bytes", Threshold: 5, MaxReserve: 0.5}, "maxReserve: is 0.5: use a whole number"},
		{isolation.Rule{Unit: "bytes", Threshold: math.MaxInt}, "threshold: is "},
		{isolation.Rule{Threshold: 1, Together: true}, "together: has no meaning for a rule of one resource: remove it, or set match to prefix, path or regex"},
		{isolation.Rule{Threshold: 1, Shed: 9}, "shed: 9 is unknown: use api.ShedNone or api.ShedLevels"},
		{isolation.Rule{Threshold: 1, Shed: spec.ShedLevels}, "shed: needs a queue, where calls of lower levels wait: set maxQueue and maxWait"},
		{isolation.Rule{ID: "a", Threshold: 1, Cluster: cluster.Rule{Scope: cluster.Global}, Shed: spec.ShedLevels}, "shed: has no meaning for cluster, which has no queue: remove shed or cluster"},
		{isolation.Rule{Threshold: 1, Share: spec.Share{By: "origin"}}, "share: needs a queue, where calls wait for their part: set maxQueue and maxWait"},
		{isolation.Rule{ID: "a", Threshold: 1, Cluster: cluster.Rule{Scope: cluster.Global}, Share: spec.Share{By: "origin"}}, "share: has no meaning for cluster, which has no queue: remove share or cluster"},
		{sharing(spec.Share{MaxShares: 1}), `share.by: is required: name the tenant of a call, as in "param tenant" or "origin"`},
		{sharing(spec.Share{By: "tenant"}), `share.by: is "tenant": use "param" and the name of an attachment, as in "param tenant", or "origin"`},
		{sharing(spec.Share{By: "param "}), `share.by: is "param ": use "param" and the name of an attachment`},
		{sharing(spec.Share{By: "origin", WeightBy: "param plan"}), "share.weightBy: has no meaning without weights: set the weights of its values"},
		{sharing(spec.Share{By: "origin", WeightBy: "plan", Weights: map[string]int{"gold": 4}}), `share.weightBy: is "plan": use "param" and the name`},
		{sharing(spec.Share{By: "origin", Weights: map[string]int{"gold": 0}}), `share.weights: gives "gold" 0: use a whole number from 1 to 1000`},
		{sharing(spec.Share{By: "origin", Weights: map[string]int{"gold": 1001}}), `share.weights: gives "gold" 1001: use a whole number from 1 to 1000`},
		{sharing(spec.Share{By: "origin", Weights: map[string]int{"": 1}}), `share.weights: names "": use 1 to `},
		{sharing(spec.Share{By: "origin", PerShareQueue: 6}), "share.perShareQueue: is 6: use a whole number from 0 to maxQueue, 5"},
		{sharing(spec.Share{By: "origin", PerShareQueue: -1}), "share.perShareQueue: is -1: use a whole number from 0 to maxQueue, 5"},
		{sharing(spec.Share{By: "origin", MaxShares: 10_001}), "share.maxShares: is 10001: use a whole number from 0 to 10000"},
		{isolation.Rule{Mode: 3}, "mode: 3 is unknown: use api.Enforce, api.Shadow or api.Off"},
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
			g := newGuard(t, permits(0))
			err = g.Update(func(b *engine.SnapshotBuilder) error {
				return isolation.Compile(b, []isolation.Rule{permits(5), tt.rule})
			})
			require.ErrorContains(t, err, "isolation[1]."+tt.want)
			g.refused()
		})
	}
}

// A set has rules with at most 16 units.
func TestTooManyUnits(t *testing.T) {
	var all []isolation.Rule
	for i := range 17 {
		all = append(all, isolation.Rule{Resource: "orders", Threshold: 1, Unit: fmt.Sprint("u", i)})
	}
	g := newGuard(t, all[:16]...)
	err := g.Update(func(b *engine.SnapshotBuilder) error { return isolation.Compile(b, all) })
	require.EqualError(t, err, "isolation[16].unit: is one unit too many: the rules of a family count in at most 16")
}

// The ends of every range are valid.
func TestRuleAccepts(t *testing.T) {
	for _, r := range []isolation.Rule{
		{Threshold: 1_000_000_000},
		{Threshold: 2_000_000_000, Unit: "bytes", Estimate: 2_000_000_000, MaxReserve: 1},
		{Threshold: 1, MaxQueue: 1, MaxWait: 1},
		{Threshold: 1, MaxQueue: 1_000_000, MaxWait: 24 * time.Hour},
		{Resource: ".*", Match: spec.MatchRegex, Threshold: 1},
	} {
		if r.Resource == "" {
			r.Resource = "orders"
		}
		g := newGuard(t, r)
		g.enter().Exit()
		assert.Zero(t, g.Failures())
	}
}

// Two rules that differ in any field are not equal.
// known bug 71
func TestRuleEquality(t *testing.T) {
	trial.EveryFieldCounts(t, isolation.Rule{}, cluster.Rule{Scope: cluster.Global}, spec.Share{By: "origin"}, spec.Response{Status: 503})
}

func TestRuleIDs(t *testing.T) {
	trial.IDs(t, core.KindIsolation, isolation.Rule.Normalized, isolation.Rule{Resource: "orders", Threshold: 5}, isolation.Rule{Resource: "orders", Threshold: 7})
}

// The count of refusals continues when the rule changes, and a refusal names the new rule.
func TestRefusalsGoOnCounting(t *testing.T) {
	g := newGuard(t, permits(0))
	g.refused()
	g.load(isolation.Rule{ID: "permits", Resource: "orders", Threshold: 1})
	e := g.enter()
	_, err := g.Enter(t.Context(), "orders", nil)
	require.EqualError(t, err, `penstock: isolation rule "permits" blocked "orders"`)
	e.Exit()
	f := g.figures("permits")
	assert.EqualValues(t, 2, f.Refused)
	assert.Equal(t, core.KindIsolation, f.Kind)
	assert.Equal(t, "orders", f.Resource)
}
