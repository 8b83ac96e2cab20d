package sentinel

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/sentinel"
	"github.com/penstock-go/penstock/system"
)

const plainFlow = `"regex":false,"grade":1,"count":100,"strategy":0,"refResource":"","controlBehavior":0,"warmUpPeriodSec":10,"maxQueueingTimeMs":500,"clusterMode":false}`

// A rule that Java knows is written such that it reads back the same; other rules are not written.
func TestJavaWriter(t *testing.T) {
	flows := []struct {
		rule flow.Rule
		want string
	}{
		{flow.Rule{Resource: "a", Threshold: 100}, `{"resource":"a","limitApp":"default",` + plainFlow},
		{flow.Rule{ID: "x", Resource: "a", Threshold: 100, Window: flow.Ring, Buckets: 4}, `{"resource":"a","limitApp":"default",` + plainFlow},
		{flow.Rule{Resource: "a.*", Match: spec.MatchRegex, Origin: "acme", Metric: flow.Concurrency, Threshold: 3},
			`{"resource":"a.*","limitApp":"acme","regex":true,"grade":0,"count":3,"strategy":0,"refResource":"","controlBehavior":0,"warmUpPeriodSec":10,"maxQueueingTimeMs":500,"clusterMode":false}`},
		{flow.Rule{Resource: "a", Threshold: 2.5, Relation: flow.Chain, Ref: "web", Behavior: flow.WarmUpThrottle, WarmUpPeriod: 5 * time.Second, MaxWait: time.Second},
			`{"resource":"a","limitApp":"default","regex":false,"grade":1,"count":2.5,"strategy":2,"refResource":"web","controlBehavior":3,"warmUpPeriodSec":5,"maxQueueingTimeMs":1000,"clusterMode":false}`},
		{flow.Rule{Resource: "a", Threshold: 100, Interval: time.Minute}, ""},
		{flow.Rule{Resource: "a", Threshold: 100, Mode: spec.Shadow}, ""},
		{flow.Rule{Resource: "a", Threshold: 100, Mode: spec.Off}, ""},
		{flow.Rule{Resource: "a/*", Match: spec.MatchPrefix, Threshold: 100}, ""},
		{flow.Rule{Resource: "*", Threshold: 100}, ""},
		{flow.Rule{Resource: "a", Threshold: 100, Behavior: flow.TokenBucket}, ""},
		{flow.Rule{Resource: "a", Threshold: 100, Behavior: flow.Throttle, MaxWait: 100 * time.Microsecond}, ""},
		{flow.Rule{Resource: "a", Threshold: 100, Behavior: flow.WarmUp, ColdFactor: 5}, ""},
	}
	for i, c := range flows {
		writes(t, fmt.Sprint("flow ", i), flowFamily, c.rule, c.want)
	}
	breakerJSON := func(grade int, count, ratio float64) string {
		return fmt.Sprintf(`{"resource":"a","limitApp":"default","regex":false,"grade":%d,"count":%v,"slowRatioThreshold":%v,"timeWindow":5,"minRequestAmount":5,"statIntervalMs":10000}`, grade, count, ratio)
	}
	breakers := []struct {
		rule breaker.Rule
		want string
	}{
		{breaker.Rule{Resource: "a", Threshold: 0.5}, breakerJSON(1, 0.5, 1)},
		{breaker.Rule{Resource: "a", Threshold: math.Nextafter(0.5, 1), Probes: 3}, breakerJSON(1, 0.5, 1)},
		{breaker.Rule{Resource: "a", Threshold: 1}, breakerJSON(1, math.Nextafter(1, 0), 1)},
		{breaker.Rule{Resource: "a", Threshold: 0}, breakerJSON(1, 0, 1)},
		{breaker.Rule{Resource: "a", Strategy: breaker.ErrorCount, Threshold: 10}, breakerJSON(2, 9, 1)},
		{breaker.Rule{Resource: "a", Strategy: breaker.ErrorCount, Threshold: 0}, breakerJSON(2, 0, 1)},
		{breaker.Rule{Resource: "a", Strategy: breaker.SlowRatio, Threshold: 0.2, SlowRT: 50 * time.Millisecond}, breakerJSON(0, 50, 0.2)},
		{breaker.Rule{Resource: "a", Strategy: breaker.SlowRatio, Threshold: 1, SlowRT: 50 * time.Millisecond}, breakerJSON(0, 50, 1)},
		{breaker.Rule{Resource: "a", Strategy: breaker.ConsecutiveErrors, Threshold: 3}, ""},
		{breaker.Rule{Resource: "a", Threshold: 0.5, Recovery: 1500 * time.Millisecond}, ""},
		{breaker.Rule{Resource: "a", Threshold: 0.5, Ramp: time.Second}, ""},
	}
	for i, c := range breakers {
		writes(t, fmt.Sprint("breaker ", i), breakerFamily, c.rule, c.want)
	}
	hotspots := []struct {
		rule hotspot.Rule
		want string
	}{
		{hotspot.Rule{Resource: "a", Index: hotspot.At(1), Threshold: 5, Window: hotspot.Refill, Burst: 2, Interval: 10 * time.Second, MaxValues: 7, Exceptions: []hotspot.Exception{
			{Value: hotspot.ValueOf("x"), Threshold: 1}, {Value: hotspot.ValueOf(7), Threshold: 2}, {Value: hotspot.ValueOf(int64(1 << 40)), Threshold: 3},
			{Value: hotspot.ValueOf(2.5), Threshold: 4}, {Value: hotspot.ValueOf(true), Threshold: 5}}},
			`{"resource":"a","limitApp":"default","regex":false,"grade":1,"paramIdx":1,"count":5,"controlBehavior":0,"maxQueueingTimeMs":0,"burstCount":2,"durationInSec":10,"paramFlowItemList":[` +
				`{"object":"x","classType":"java.lang.String","count":1},{"object":"7","classType":"int","count":2},{"object":"1099511627776","classType":"long","count":3},` +
				`{"object":"2.5","classType":"double","count":4},{"object":"true","classType":"boolean","count":5}],"clusterMode":false}`},
		{hotspot.Rule{Resource: "a", Index: hotspot.At(0), Threshold: 5, Behavior: hotspot.Throttle, MaxWait: 20 * time.Millisecond},
			`{"resource":"a","limitApp":"default","regex":false,"grade":1,"paramIdx":0,"count":5,"controlBehavior":2,"maxQueueingTimeMs":20,"burstCount":0,"durationInSec":1,"paramFlowItemList":[],"clusterMode":false}`},
		{hotspot.Rule{Resource: "a", Index: hotspot.At(0), Threshold: 5, Metric: hotspot.Concurrency},
			`{"resource":"a","limitApp":"default","regex":false,"grade":0,"paramIdx":0,"count":5,"controlBehavior":0,"maxQueueingTimeMs":0,"burstCount":0,"durationInSec":1,"paramFlowItemList":[],"clusterMode":false}`},
		{hotspot.Rule{Resource: "a", Param: "user", Threshold: 5}, ""},
		{hotspot.Rule{Resource: "a", Index: hotspot.At(0), Threshold: 5.5}, ""},
		{hotspot.Rule{Resource: "a", Index: hotspot.At(0), Threshold: 5, Exceptions: []hotspot.Exception{{Value: hotspot.ValueOf("x"), Threshold: 0.5}}}, ""},
	}
	for i, c := range hotspots {
		writes(t, fmt.Sprint("hotspot ", i), hotFamily, c.rule, c.want)
	}
	systemJSON := func(load, cpu, qps, rt, threads float64) string {
		return fmt.Sprintf(`{"highestSystemLoad":%v,"highestCpuUsage":%v,"qps":%v,"avgRt":%v,"maxThread":%v}`, load, cpu, qps, rt, threads)
	}
	systems := []struct {
		rule system.Rule
		want string
	}{
		{system.Rule{Metric: system.QPS, Threshold: 100, Strict: true}, systemJSON(-1, -1, 100, -1, -1)},
		{system.Rule{Metric: system.Concurrency, Threshold: 8}, systemJSON(-1, -1, -1, -1, 8)},
		{system.Rule{Metric: system.RT, MaxRT: 1500 * time.Microsecond}, systemJSON(-1, -1, -1, 1.5, -1)},
		{system.Rule{Metric: system.Load, Threshold: 4}, systemJSON(4, -1, -1, -1, -1)},
		{system.Rule{Metric: system.CPU, Threshold: 0.8}, systemJSON(-1, 0.8, -1, -1, -1)},
		{system.Rule{Metric: system.QPS, Threshold: 100, Interval: time.Minute}, ""},
	}
	for i, c := range systems {
		writes(t, fmt.Sprint("system ", i), systemFamily, c.rule, c.want)
	}
	authorities := []struct {
		rule authority.Rule
		want string
	}{
		{authority.Rule{Resource: "a", Origins: []string{"x", "y"}, AllowAnonymous: true}, `{"resource":"a","regex":false,"limitApp":"x,y","strategy":0}`},
		{authority.Rule{Resource: "a", Origins: []string{"x"}, List: authority.Deny}, `{"resource":"a","regex":false,"limitApp":"x","strategy":1}`},
		{authority.Rule{Resource: "a", Origins: []string{"x"}}, ""},
		{authority.Rule{Resource: "a", Origins: []string{"x,y"}, List: authority.Deny}, ""},
	}
	for i, c := range authorities {
		writes(t, fmt.Sprint("authority ", i), authorityFamily, c.rule, c.want)
	}
}

func writes[J javaRule[R], R spec.Rule](t *testing.T, name string, f familyOf[J, R], rule R, want string) {
	t.Helper()
	got, ok := f.object(rule)
	assert.Equal(t, want != "", ok, name)
	assert.Equal(t, want, got, name)
	if ok {
		assert.True(t, json.Valid([]byte(got)), name)
	}
}

// Each row has a program's rules, as IDs of flow rules with their thresholds, the list that a
// dashboard sends, and the result. known bug 165
func TestJavaPush(t *testing.T) {
	rule := func(resource string, threshold float64) flow.Rule {
		return flow.Rule{ID: "id-" + resource, Resource: resource, Threshold: threshold}
	}
	java := func(resource string, threshold float64) flow.Rule {
		return flow.Rule{Resource: resource, Threshold: threshold, Window: flow.Ring, Buckets: 2}
	}
	hidden := rule("hidden", 7)
	hidden.Interval = time.Minute
	of := func(rules ...flow.Rule) []flow.Rule { return rules }
	rows := []struct {
		name                 string
		mine, others, pushed []flow.Rule
		want                 []flow.Rule // nil if the others were touched
		refused              string
	}{
		{name: "as it was", mine: of(rule("a", 1), hidden, rule("b", 2)), pushed: of(java("b", 2), java("a", 1)),
			want: of(rule("a", 1), hidden, rule("b", 2))},
		{name: "a change keeps the id and the window", mine: of(rule("a", 1), rule("b", 2)), pushed: of(java("a", 1), java("b", 3)),
			want: of(rule("a", 1), rule("b", 3))},
		{name: "one more", mine: of(rule("a", 1)), pushed: of(java("a", 1), java("b", 2)), want: of(rule("a", 1), java("b", 2))},
		{name: "one less", mine: of(rule("a", 1), hidden, rule("b", 2)), pushed: of(java("b", 2)), want: of(hidden, rule("b", 2))},
		{name: "none", mine: of(rule("a", 1), hidden), pushed: nil, want: of(hidden)},
		{name: "another behavior is another rule", mine: of(rule("a", 1)), pushed: of(flow.Rule{Resource: "a", Threshold: 1, Behavior: flow.Throttle}),
			want: of(flow.Rule{Resource: "a", Threshold: 1, Behavior: flow.Throttle})},
		{name: "others stay where they are", mine: of(rule("a", 1)), others: of(rule("file", 9)), pushed: of(java("file", 9), java("a", 2)), want: of(rule("a", 2))},
		{name: "others can't be removed", mine: of(rule("a", 1)), others: of(rule("file", 9)), pushed: of(java("a", 2)), refused: "id-file"},
		{name: "others can't be changed", others: of(rule("file", 9)), pushed: of(java("file", 8)), refused: "id-file"},
		{name: "others that were not shown need not be sent", others: of(hidden), pushed: of(java("a", 2)), want: of(java("a", 2))},
	}
	full := func(rules []flow.Rule) (all []flow.Rule) {
		for _, r := range rules {
			n, err := r.Normalized(sentinel.JavaColdFactor)
			require.NoError(t, err)
			n.ID = r.ID
			all = append(all, n)
		}
		return all
	}
	for _, c := range rows {
		got, refused := flowFamily.merge(full(c.mine), full(c.others), c.pushed)
		if c.refused != "" {
			require.NotNil(t, refused, c.name)
			assert.Equal(t, c.refused, refused.ID, c.name)
			continue
		}
		require.Nil(t, refused, c.name)
		assert.Equal(t, full(c.want), full(got), c.name)
	}
}

// Pushed rules are shown as pushed, even if a breaker's threshold was converted.
func TestJavaPushAndShow(t *testing.T) {
	for _, count := range []float64{0, 0.1, 0.3, 0.5, 0.7, 1.0 / 3, 0.999} {
		java := sentinel.JavaBreakerUnset
		java.Resource, java.Grade, java.Count, java.TimeWindow = "a", 1, count, 10
		rules, _, err := java.Native()
		require.NoError(t, err)
		shown, ok := breakerFamily.object(rules[0])
		require.True(t, ok)
		var back struct{ Count float64 }
		require.NoError(t, json.Unmarshal([]byte(shown), &back))
		assert.Equal(t, count, back.Count)
	}
}
