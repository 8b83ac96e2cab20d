package flow_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// One line for each field that can be wrong, and each way to be wrong.
// known bug 36, 47, 49
func TestRuleRefuses(t *testing.T) {
	const day = 24 * time.Hour
	long := strings.Repeat("a", 1025)
	for _, tt := range []struct {
		rule flow.Rule
		want string
	}{
		{flow.Rule{}, "resource: is required: name the resource that the rule limits"},
		{flow.Rule{Resource: long, Match: spec.MatchRegex}, "resource: the regular expression has 1025 bytes; the maximum is 1024"},
		{flow.Rule{Resource: "a(b", Match: spec.MatchRegex}, `resource: is not a valid regular expression: missing closing ): "a(b"`},
		{flow.Rule{Resource: "a)|(b", Match: spec.MatchRegex}, `resource: is not a valid regular expression: unexpected ): "a)|(b"`},
		{flow.Rule{Threshold: math.NaN()}, "threshold: is NaN: use a finite number from 0 to 1e+15"},
		{flow.Rule{Threshold: math.Inf(1)}, "threshold: is +Inf: use a finite number from 0 to 1e+15"},
		{flow.Rule{Threshold: math.Inf(-1)}, "threshold: is -Inf: use a finite number from 0 to 1e+15"},
		{flow.Rule{Threshold: -1e-9}, "threshold: is -1e-09: use a finite number from 0 to 1e+15"},
		{flow.Rule{Threshold: 1.1e15}, "threshold: is 1.1e+15: use a finite number from 0 to 1e+15"},
		{flow.Rule{Threshold: 2e9, Behavior: flow.Throttle}, "threshold: is 2e+09 per second: a throttle admits at most 1e+09 per second"},
		{flow.Rule{Threshold: 2e7, Interval: 10 * ms, Behavior: flow.WarmUpThrottle}, "threshold: is 2e+09 per second: a throttle admits at most 1e+09 per second"},
		{flow.Rule{Interval: -1}, "interval: is -1ns: use a duration from 10ms to 24h0m0s"},
		{flow.Rule{Interval: 10*ms - 1}, "interval: is 9.999999ms: use a duration from 10ms to 24h0m0s"},
		{flow.Rule{Interval: day + 1}, "interval: is 24h0m0.000000001s: use a duration from 10ms to 24h0m0s, or per: day, week or month"},
		{flow.Rule{Interval: -1, Metric: flow.Concurrency}, "interval: has no meaning for metric concurrency: remove it, or set metric to qps"},
		{flow.Rule{Buckets: -1}, "buckets: -1 buckets: use 1 to 1440"},
		{flow.Rule{Buckets: 1441}, "buckets: 1441 buckets: use 1 to 1440"},
		{flow.Rule{Buckets: 3}, "buckets: 3 buckets don't divide an interval of 1s: each would last 333.333333ms and a fraction of a nanosecond"},
		{flow.Rule{Buckets: 2, Metric: flow.Concurrency}, "buckets: has no meaning for metric concurrency: remove it, or set metric to qps"},
		{flow.Rule{Buckets: 2, Behavior: flow.Throttle}, "buckets: has no meaning for behavior throttle: remove it, or set behavior to reject or warmUp"},
		{flow.Rule{Metric: 2}, "metric: 2 is unknown: use flow.QPS or flow.Concurrency"},
		{flow.Rule{Relation: 3}, "relation: 3 is unknown: use flow.Direct, flow.Associated or flow.Chain"},
		{flow.Rule{Together: true}, "together: has no meaning for a rule of one resource: remove it, or set match to prefix, path or regex"},
		{flow.Rule{Resource: "*", Together: true, Relation: flow.Associated, Ref: "x"}, "together: has no meaning for relation associated, which counts one resource for all: remove it"},
		{flow.Rule{Resource: "*", Together: true, Behavior: flow.WarmUp}, "together: has no meaning for behavior warmUp, which follows the calls of one resource: remove it, or set behavior to reject, throttle or tokenBucket"},
		{flow.Rule{Resource: "*", Together: true, Origin: "other"}, "together: has no meaning for origin other, which gives each caller of a resource a limit: remove it, name a caller, or use a hotspot rule with a param that names it"},
		{flow.Rule{Ref: "x"}, "ref: has no meaning for relation direct: remove it, or set relation to associated or chain"},
		{flow.Rule{Relation: flow.Associated}, "ref: is required by relation associated: name the resource to look at"},
		{flow.Rule{Relation: flow.Chain}, "ref: is required by relation chain: name the context that the rule applies to"},
		{flow.Rule{Behavior: 5}, "behavior: 5 is unknown: use flow.Reject, flow.WarmUp, flow.Throttle, flow.WarmUpThrottle or flow.TokenBucket"},
		{flow.Rule{Behavior: flow.WarmUp, Metric: flow.Concurrency}, "behavior: warmUp does not go with metric concurrency: use reject"},
		{flow.Rule{Behavior: flow.Throttle, Relation: flow.Associated, Ref: "x"},
			"behavior: throttle does not go with relation associated, which counts another resource's traffic: use reject or warmUp"},
		{flow.Rule{Behavior: flow.TokenBucket, Metric: flow.Concurrency}, "behavior: tokenBucket does not go with metric concurrency: use reject"},
		{flow.Rule{Behavior: flow.TokenBucket, Relation: flow.Associated, Ref: "x"},
			"behavior: tokenBucket does not go with relation associated, which counts another resource's traffic: use reject or warmUp"},
		{flow.Rule{Threshold: 2e9, Behavior: flow.TokenBucket}, "threshold: is 2e+09 per second: a token bucket refills by at most 1e+09 per second"},
		{flow.Rule{Burst: 1}, "burst: has no meaning for behavior reject: remove it, or set behavior to throttle or tokenBucket"},
		{flow.Rule{Burst: 1, Behavior: flow.WarmUpThrottle}, "burst: has no meaning for behavior warmUpThrottle: remove it, or set behavior to throttle or tokenBucket"},
		{flow.Rule{Burst: 1e9 + 1, Behavior: flow.Throttle}, "burst: is 1000000001: use a number from 0 to 1000000000"},
		{flow.Rule{Burst: 1, Metric: flow.Concurrency}, "burst: has no meaning for metric concurrency: remove it, or set metric to qps"},
		{flow.Rule{Buckets: 2, Behavior: flow.TokenBucket}, "buckets: has no meaning for behavior tokenBucket: remove it, or set behavior to reject or warmUp"},
		{flow.Rule{Window: flow.Ring, Behavior: flow.TokenBucket}, "strict: has no meaning for behavior tokenBucket: remove it, or set behavior to reject or warmUp"},
		{flow.Rule{Burst: -1, Behavior: flow.TokenBucket}, "burst: is -1: use a number from 0 to 1000000000"},
		{flow.Rule{Burst: 1e9 + 1, Behavior: flow.TokenBucket}, "burst: is 1000000001: use a number from 0 to 1000000000"},
		{flow.Rule{Burst: 1e9, Threshold: 0.1, Behavior: flow.TokenBucket}, "burst: is 1000000000: at a threshold of 0.1 the bucket would take more than 73 years to fill; use less"},
		{flow.Rule{Threshold: 1, MemoryThreshold: 0.5, LowMemory: flow.Share(0.1), HighMemory: flow.Share(0.9), Behavior: flow.TokenBucket},
			"memoryThreshold: has no meaning for behavior tokenBucket: remove it, or set behavior to reject or throttle"},
		{flow.Rule{WarmUpPeriod: time.Second - 1, Behavior: flow.WarmUp}, "warmUpPeriod: is 999.999999ms: use a duration from 1s to 24h0m0s"},
		{flow.Rule{WarmUpPeriod: day + 1, Behavior: flow.WarmUpThrottle}, "warmUpPeriod: is 24h0m0.000000001s: use a duration from 1s to 24h0m0s"},
		{flow.Rule{WarmUpPeriod: 10 * time.Second}, "warmUpPeriod: has no meaning for behavior reject: remove it, or set behavior to warmUp or warmUpThrottle"},
		{flow.Rule{WarmUpPeriod: -time.Second, Behavior: flow.WarmUp}, "warmUpPeriod: is -1s: use a duration from 1s to 24h0m0s"},
		{flow.Rule{ColdFactor: 1, Behavior: flow.WarmUp}, "coldFactor: is 1: use a whole number from 2 to 1000"},
		{flow.Rule{ColdFactor: 3, Behavior: flow.Throttle}, "coldFactor: has no meaning for behavior throttle: remove it, or set behavior to warmUp or warmUpThrottle"},
		{flow.Rule{ColdFactor: 1001, Behavior: flow.WarmUp}, "coldFactor: is 1001: use a whole number from 2 to 1000"},
		{flow.Rule{ColdFactor: -1, Behavior: flow.WarmUp}, "coldFactor: is -1: use a whole number from 2 to 1000"},
		{flow.Rule{MaxWait: -1, Behavior: flow.Throttle}, "maxWait: is -1ns: use a duration from 0s to 24h0m0s"},
		{flow.Rule{MaxWait: 500 * ms}, "maxWait: has no meaning for behavior reject: remove it, or set behavior to throttle or warmUpThrottle"},
		{flow.Rule{MaxWait: 500 * ms, Metric: flow.Concurrency}, "maxWait: has no meaning for metric concurrency: remove it, or set metric to qps"},
		{flow.Rule{MaxWait: day + 1, Behavior: flow.WarmUpThrottle}, "maxWait: is 24h0m0.000000001s: use a duration from 0s to 24h0m0s"},
		{flow.Rule{Window: flow.Ring, Metric: flow.Concurrency}, "strict: has no meaning for metric concurrency: remove it, or set metric to qps"},
		{flow.Rule{Window: flow.Ring, Behavior: flow.Throttle}, "strict: has no meaning for behavior throttle: remove it, or set behavior to reject or warmUp"},
		{flow.Rule{Per: 9}, "per: 9 is unknown: use api.PerDay, api.PerWeek or api.PerMonth"},
		{flow.Rule{Per: spec.PerDay, Behavior: flow.Throttle}, "per: has no meaning for behavior throttle: remove it, or set behavior to reject"},
		{flow.Rule{Per: spec.PerDay, Metric: flow.Concurrency}, "per: has no meaning for metric concurrency: remove it, or set metric to qps"},
		{flow.Rule{Per: spec.PerDay, Relation: flow.Associated, Ref: "x"}, "per: has no meaning for relation associated, which reads another resource's traffic: remove it, or set relation to direct"},
		{flow.Rule{Per: spec.PerDay, Origin: "other"}, "per: has no meaning for origin other: remove it, name a caller, or use a hotspot rule with keys: [origin]"},
		{flow.Rule{Per: spec.PerDay, Interval: time.Hour}, "interval: has no meaning for per, whose periods are those of a calendar: remove it, or remove per"},
		{flow.Rule{Per: spec.PerDay, Buckets: 2}, "buckets: has no meaning for per, as a quota has no window: remove it"},
		{flow.Rule{Per: spec.PerDay, Window: flow.Ring}, "strict: has no meaning for per, as a quota has no window: remove it"},
		{flow.Rule{Per: spec.PerDay, Threshold: 9, MemoryThreshold: 1, LowMemory: flow.Share(0.1), HighMemory: flow.Share(0.9)},
			"memoryThreshold: has no meaning for per, as memory goes up and down within a period: remove it, or give the memory keys to a rule with an interval"},
		{flow.Rule{ID: "a", Per: spec.PerDay, Cluster: cluster.Rule{Scope: cluster.Global}}, "cluster: has no meaning for per: stores know intervals, but not the periods of a calendar; remove it, or replace per by interval"},
		{flow.Rule{Timezone: "UTC"}, "timezone: has no meaning for a rule without per: remove it, or set per to day, week or month"},
		{flow.Rule{Starts: "06:00"}, "starts: has no meaning for a rule without per: remove it, or set per to day, week or month"},
		{flow.Rule{Per: spec.PerMonth, Starts: "32"}, `starts: is "32": use a day of the month from 1 to 31 and perhaps a time, as in "15" or "15 06:00"`},
		{flow.Rule{Mode: 3}, "mode: 3 is unknown: use api.Enforce, api.Shadow or api.Off"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			if tt.rule.Resource == "" && !strings.HasPrefix(tt.want, "resource: is req") {
				tt.rule.Resource = "orders"
			}
			_, err := tt.rule.Normalized(3)
			require.EqualError(t, err, tt.want)
			var field *spec.FieldError
			require.ErrorAs(t, err, &field)

			// The error gives the position in the file, and the loaded rules stay.
			g := newGuard(t, flow.Rule{Resource: "orders", Threshold: 0})
			err = g.Update(func(b *engine.SnapshotBuilder) error {
				return flow.Compile(b, []flow.Rule{{Resource: "orders", Threshold: 5}, tt.rule})
			})
			require.EqualError(t, err, "flow[1]."+tt.want)
			assert.Equal(t, "block", g.outcome("orders"))
		})
	}
}

// The ends of every range are valid.
func TestRuleAccepts(t *testing.T) {
	const day = 24 * time.Hour
	for _, r := range []flow.Rule{
		{Threshold: 0},
		{Threshold: math.SmallestNonzeroFloat64},
		{Threshold: math.Copysign(0, -1)},
		{Threshold: 1e15},
		{Threshold: 1e9, Behavior: flow.Throttle},
		{Threshold: 1e7, Behavior: flow.Throttle, Interval: 10 * ms},
		{Interval: 10 * ms, Buckets: 1},
		{Interval: day, Buckets: 1440},
		{Interval: day, Buckets: 1440},
		{Behavior: flow.WarmUp, WarmUpPeriod: time.Second, ColdFactor: 2},
		{Behavior: flow.WarmUp, WarmUpPeriod: day, ColdFactor: 1000},
		{Behavior: flow.Throttle, MaxWait: 1},
		{Behavior: flow.Throttle, MaxWait: day},
		{Behavior: flow.TokenBucket},
		{Behavior: flow.TokenBucket, Threshold: math.SmallestNonzeroFloat64},
		{Behavior: flow.TokenBucket, Threshold: 1, Burst: 1e9},
		{Behavior: flow.TokenBucket, Threshold: 1e9, Burst: 1e9, Origin: "other", Relation: flow.Chain, Ref: "web"},
		{Resource: strings.Repeat("a", 1024), Match: spec.MatchRegex},
		{Resource: "\x00\n", ID: "\u2028"},
		{Relation: flow.Associated, Ref: "orders"}, // the resource itself
		{Relation: flow.Chain, Ref: "web", Origin: "other", Metric: flow.Concurrency},
	} {
		if r.Resource == "" {
			r.Resource = "orders"
		}
		g := newGuard(t, r)
		assert.NotPanics(t, func() { g.passes(3, "orders from app in web") }, "%+v", r)
		assert.Zero(t, g.Failures(), "%+v", r)
	}
}

func TestRuleDefaults(t *testing.T) {
	for _, tt := range []struct {
		name  string
		given flow.Rule
		want  flow.Rule
	}{
		{"reject", flow.Rule{}, flow.Rule{ID: "flow:orders", Interval: time.Second, Buckets: 50, Origin: "default"}},
		{"its own interval", flow.Rule{Interval: 2 * time.Second},
			flow.Rule{ID: "flow:orders", Interval: 2 * time.Second, Buckets: 50, Origin: "default"}},
		{"a ring", flow.Rule{Window: flow.Ring}, flow.Rule{ID: "flow:orders", Interval: time.Second, Buckets: 2, Origin: "default", Window: flow.Ring}},
		{"a ring with its own interval", flow.Rule{Window: flow.Ring, Interval: 2 * time.Second},
			flow.Rule{ID: "flow:orders", Interval: 2 * time.Second, Buckets: 10, Origin: "default", Window: flow.Ring}},
		{"buckets", flow.Rule{Buckets: 5}, flow.Rule{ID: "flow:orders", Interval: time.Second, Buckets: 5, Origin: "default"}},
		{"warm-up", flow.Rule{Behavior: flow.WarmUp},
			flow.Rule{ID: "flow:orders:warmUp", Interval: time.Second, Buckets: 50, Origin: "default", Behavior: flow.WarmUp, WarmUpPeriod: 10 * time.Second, ColdFactor: 7}},
		{"throttle", flow.Rule{Behavior: flow.Throttle},
			flow.Rule{ID: "flow:orders:throttle", Interval: time.Second, Origin: "default", Behavior: flow.Throttle, MaxWait: 500 * ms}},
		{"warm-up and throttle", flow.Rule{Behavior: flow.WarmUpThrottle, ColdFactor: 2},
			flow.Rule{ID: "flow:orders:warmUpThrottle", Interval: time.Second, Origin: "default", Behavior: flow.WarmUpThrottle,
				WarmUpPeriod: 10 * time.Second, ColdFactor: 2, MaxWait: 500 * ms}},
		{"token bucket", flow.Rule{Behavior: flow.TokenBucket},
			flow.Rule{ID: "flow:orders:tokenBucket", Interval: time.Second, Origin: "default", Behavior: flow.TokenBucket}},
		{"concurrency from a caller", flow.Rule{Metric: flow.Concurrency, Origin: "app"},
			flow.Rule{ID: "flow:orders:concurrency:origin=app", Origin: "app", Metric: flow.Concurrency}},
		{"chain", flow.Rule{Relation: flow.Chain, Ref: "web"},
			flow.Rule{ID: "flow:orders:chain=web", Interval: time.Second, Buckets: 50, Origin: "default", Relation: flow.Chain, Ref: "web"}},
		{"its own ID", flow.Rule{ID: "x", Threshold: 3}, flow.Rule{ID: "x", Threshold: 3, Interval: time.Second, Buckets: 50, Origin: "default"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.given.Resource, tt.want.Resource = "orders", "orders"
			got, err := tt.given.Normalized(7)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
			again, err := got.Normalized(3)
			require.NoError(t, err)
			assert.Equal(t, got, again, "what is normal stays as it is")
		})
	}
}

// If Equal ignored a field, a change of that field would have no effect.
// known bug 71
func TestRuleEqualSeesEveryField(t *testing.T) {
	trial.EveryFieldCounts(t, flow.Rule{ID: "r", Resource: "orders", Threshold: 5}, flow.Share(0.5), spec.Share{By: "origin"}, cluster.Rule{Scope: cluster.Global}, spec.Response{Status: 503})
}

// Two rules have different IDs, including derived ones, and a rule keeps its ID when its threshold
// changes.
func TestRuleIDs(t *testing.T) {
	rules := []flow.Rule{
		{Resource: "orders", Threshold: 1},
		{Resource: "orders", Threshold: 2},
		{Resource: "orders", Threshold: 1, Metric: flow.Concurrency},
		{Resource: "orders:concurrency", Threshold: 1},
		{ID: "own", Resource: "orders", Threshold: 1},
	}
	normalized := func(r flow.Rule) (flow.Rule, error) { return r.Normalized(3) }
	got, err := spec.Normalize(core.KindFlow, rules, normalized)
	require.NoError(t, err)
	var ids []string
	for _, r := range got {
		ids = append(ids, r.ID)
	}
	assert.Equal(t, []string{"flow:orders", "flow:orders#2", "flow:orders:concurrency", "flow:orders:concurrency#2", "own"}, ids)

	_, err = spec.Normalize(core.KindFlow, append(rules, rules[1]), normalized)
	require.EqualError(t, err, "flow: rules 1 and 5 are the same: remove one")
	_, err = spec.Normalize(core.KindFlow, append(rules, flow.Rule{ID: "own", Resource: "carts"}), normalized)
	require.EqualError(t, err, `flow: rules 4 and 5 have the same id "own": give each its own`)
}

func TestEnumsAsText(t *testing.T) {
	type all struct {
		M flow.Metric
		R flow.Relation
		B flow.Behavior
		O spec.Mode
	}
	for i, want := range []string{
		`{"M":"qps","R":"direct","B":"reject","O":"enforce"}`,
		`{"M":"concurrency","R":"associated","B":"warmUp","O":"shadow"}`,
		`{"M":"qps","R":"chain","B":"throttle","O":"off"}`,
		`{"M":"concurrency","R":"direct","B":"warmUpThrottle","O":"enforce"}`,
		`{"M":"qps","R":"associated","B":"tokenBucket","O":"shadow"}`,
	} {
		v := all{flow.Metric(i % 2), flow.Relation(i % 3), flow.Behavior(i), spec.Mode(i % 3)}
		text, err := json.Marshal(v)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(text))
		var back all
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, v, back)
	}
	_, err := json.Marshal(flow.Behavior(9))
	require.ErrorContains(t, err, "behavior 9 has no name")
	assert.Equal(t, "relation(9)", flow.Relation(9).String())
	var m flow.Metric
	require.EqualError(t, m.UnmarshalText([]byte("QPS")), `unknown metric "QPS": use qps, concurrency`)
}
