package system_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/system"
)

// One line for each field that can be wrong, and each way to be wrong, including rules that can
// never act.
// known bug 36, 47
func TestRuleRefuses(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		rule system.Rule
		want string
	}{
		{system.Rule{}, "metric: is required, a rule without a trigger can never act: use load, cpu, rt, concurrency or qps"},
		{system.Rule{Threshold: 5}, "metric: is required, a rule without a trigger can never act: use load, cpu, rt, concurrency or qps"},
		{system.Rule{Metric: 6}, "metric: 6 is unknown: use system.Load, system.CPU, system.RT, system.Concurrency or system.QPS"},
		{system.Rule{Metric: system.Load, Strategy: 3}, "strategy: 3 is unknown: use system.Steady, system.BBR or system.Gate"},
		{system.Rule{Metric: system.QPS, Strategy: system.BBR}, "strategy: has no meaning for metric qps: remove it, or set metric to load or cpu"},
		{system.Rule{Metric: system.RT, Strict: true}, "strict: has no meaning for metric rt: remove it, or set metric to qps"},
		{system.Rule{Metric: system.QPS, Mode: 3}, "mode: 3 is unknown: use api.Enforce, api.Shadow or api.Off"},
		{system.Rule{Metric: system.QPS, Threshold: math.NaN()}, "threshold: is NaN: use a finite number from 0 to 1e+15"},
		{system.Rule{Metric: system.Load, Threshold: math.Inf(1)}, "threshold: is +Inf: use a finite number from 0 to 1e+15"},
		{system.Rule{Metric: system.Concurrency, Threshold: -1}, "threshold: is -1: use a finite number from 0 to 1e+15"},
		{system.Rule{Metric: system.Load}, "threshold: is 0, which every load exceeds: use a load average, about the number of processors"},
		{system.Rule{Metric: system.CPU}, "threshold: is 0: use a share above 0 and below 1, as in 0.8; CPU use is never above 1"},
		{system.Rule{Metric: system.CPU, Threshold: 1}, "threshold: is 1: use a share above 0 and below 1, as in 0.8; CPU use is never above 1"},
		{system.Rule{Metric: system.RT, Threshold: 50}, "threshold: has no meaning for metric rt: remove it, and use maxRT, as in `maxRT: 200ms`"},
		{system.Rule{Metric: system.RT}, "maxRT: is required by metric rt: set the mean response time above which calls are refused"},
		{system.Rule{Metric: system.QPS, MaxRT: 1}, "maxRT: has no meaning for metric qps: remove it, and use threshold"},
		{system.Rule{Metric: system.RT, MaxRT: -1}, "maxRT: is -1ns: use a duration up to 24h0m0s"},
		{system.Rule{Metric: system.RT, MaxRT: day + 1}, "maxRT: is 24h0m0.000000001s: use a duration up to 24h0m0s"},
		{system.Rule{Metric: system.QPS, Interval: 10*ms - 1}, "interval: is 9.999999ms: use a duration from 10ms to 24h0m0s"},
		{system.Rule{Metric: system.Concurrency, Interval: time.Second}, "interval: has no meaning for metric concurrency: remove it, or set metric to qps or rt"},
		{system.Rule{Metric: system.QPS, Buckets: 3}, "buckets: 3 buckets don't divide an interval of 1s: each would last 333.333333ms and a fraction of a nanosecond"},
		{system.Rule{Metric: system.Concurrency, Buckets: 2}, "buckets: has no meaning for metric concurrency: remove it, or set metric to qps or rt"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			_, err := tt.rule.Normalized()
			require.EqualError(t, err, tt.want)
			var field *spec.FieldError
			require.ErrorAs(t, err, &field)

			// The error gives the position, and the loaded rules stay.
			g := newGuard(t, system.Rule{Metric: system.QPS})
			require.EqualError(t, g.tryLoad(system.Rule{Metric: system.QPS, Threshold: 5}, tt.rule), "system[1]."+tt.want)
			assert.Zero(t, g.passes(1))
		})
	}
}

func TestRuleDefaults(t *testing.T) {
	for _, tt := range []struct{ given, want system.Rule }{
		{system.Rule{Metric: system.Load, Threshold: 4}, system.Rule{ID: "system:load", Metric: system.Load, Threshold: 4}},
		{system.Rule{Metric: system.CPU, Threshold: 0.999, Strategy: system.Gate},
			system.Rule{ID: "system:cpu", Metric: system.CPU, Threshold: 0.999, Strategy: system.Gate}},
		{system.Rule{Metric: system.RT, MaxRT: 50 * ms},
			system.Rule{ID: "system:rt", Metric: system.RT, MaxRT: 50 * ms, Interval: time.Second, Buckets: 2}},
		{system.Rule{Metric: system.Concurrency, ID: "own"}, system.Rule{ID: "own", Metric: system.Concurrency}},
		{system.Rule{Metric: system.QPS, Interval: time.Minute},
			system.Rule{ID: "system:qps", Metric: system.QPS, Interval: time.Minute, Buckets: 10}},
		{system.Rule{Metric: system.QPS, Strict: true},
			system.Rule{ID: "system:qps", Metric: system.QPS, Interval: time.Second, Buckets: 10, Strict: true}},
	} {
		got, err := tt.given.Normalized()
		require.NoError(t, err)
		assert.Equal(t, tt.want, got)
		again, err := got.Normalized()
		require.NoError(t, err)
		assert.Equal(t, got, again, "what is normal stays as it is")
	}
}

// known bug 71
func TestRuleEqualSeesEveryField(t *testing.T) {
	trial.EveryFieldCounts(t, system.Rule{ID: "r", Metric: system.QPS, Threshold: 5}, spec.Floors{Sheddable: 5}, spec.Response{Status: 503})
}

func TestRuleIDs(t *testing.T) {
	rules := []system.Rule{
		{Metric: system.CPU, Threshold: 0.8},
		{Metric: system.CPU, Threshold: 0.9, Strategy: system.Gate},
		{ID: "own", Metric: system.CPU, Threshold: 0.8},
	}
	got, err := spec.Normalize(core.KindSystem, rules, system.Rule.Normalized)
	require.NoError(t, err)
	assert.Equal(t, []string{"system:cpu", "system:cpu#2", "own"}, []string{got[0].ID, got[1].ID, got[2].ID})
	_, err = spec.Normalize(core.KindSystem, append(rules, rules[0]), system.Rule.Normalized)
	require.EqualError(t, err, "system: rules 0 and 3 are the same: remove one")
	_, err = spec.Normalize(core.KindSystem, append(rules, rules[2]), system.Rule.Normalized)
	require.EqualError(t, err, "system: rules 2 and 3 are the same: remove one")
}

func TestEnumsAsText(t *testing.T) {
	type both struct {
		M system.Metric
		S system.Strategy
	}
	for i, want := range []string{
		`{"M":"load","S":"bbr"}`, `{"M":"cpu","S":"gate"}`, `{"M":"rt","S":"steady"}`, `{"M":"concurrency","S":"bbr"}`, `{"M":"qps","S":"gate"}`,
	} {
		v := both{system.Metric(i + 1), system.Strategy((i + 1) % 3)}
		text, err := json.Marshal(v)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(text))
		var back both
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, v, back)
	}
	var m system.Metric
	require.EqualError(t, m.UnmarshalText([]byte("none")), `unknown metric "none": use load, cpu, rt, concurrency, qps`)
	assert.Equal(t, system.None, m)
	assert.Equal(t, "strategy(9)", system.Strategy(9).String())
}

// A rule counts as asked after the first call, passed or refused, and not before; one that is off
// never does.
func TestFiguresTellWhetherACallCameIn(t *testing.T) {
	for _, threshold := range []float64{0, 5} {
		g := newGuard(t, system.Rule{ID: "qps", Metric: system.QPS, Threshold: threshold},
			system.Rule{ID: "off", Metric: system.Concurrency, Threshold: 9, Mode: spec.Off})
		asked := func() (all []bool) {
			for _, f := range g.Rules().RuleStats() {
				all = append(all, f.Asked)
			}
			return all
		}
		assert.Equal(t, []bool{false, false}, asked())
		g.passes(1)
		assert.Equal(t, []bool{true, false}, asked())
	}
}
