package rules

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/system"
)

// golden is the content of testdata/set.yaml and set.json.
var golden = Set{Authority: []authority.Rule{
	{Resource: "POST /refunds", Origins: []string{"back-office", "a, b", " é\n", "null", "12"}, AllowAnonymous: true},
	{ID: "not them", Resource: ".*", Match: spec.MatchRegex, List: authority.Deny, Origins: []string{"crawler"}, Mode: spec.Shadow},
}, System: []system.Rule{
	{Metric: system.RT, MaxRT: 50 * time.Millisecond},
	{ID: "cpu", Metric: system.CPU, Threshold: 0.8, Strategy: system.Gate, Mode: spec.Off},
	{Metric: system.QPS, Threshold: 5000, Interval: 2 * time.Second, Buckets: 4, Strict: true},
}, Flow: []flow.Rule{
	{Resource: "GET /orders", Threshold: 100},
	full,
	{ID: "db", Resource: "db", Threshold: 20, Metric: flow.Concurrency, Mode: spec.Off},
	{Resource: "ring", Threshold: 1_000_000, Interval: time.Minute, Window: flow.Ring},
	{Resource: "slow", Threshold: 0.001, Interval: 24 * time.Hour, Behavior: flow.Throttle, MaxWait: 90 * time.Minute},
	{Resource: "bursts", Threshold: 2.5, Behavior: flow.TokenBucket, Burst: 20},
	{Resource: "small", Threshold: 1e-9, Behavior: flow.Throttle, MaxWait: time.Nanosecond},
	{ID: "off", Resource: "12", Origin: "null", Relation: flow.Associated, Ref: "~"},
	{ID: " \ttab and blank ", Resource: "lines\r\n\nof\x00 \"text\" 'é' \u0085\u2028\uFEFF\x7F 😀 <&>", Threshold: 1},
	{Resource: "export", Threshold: 100, MemoryThreshold: 12.5, LowMemory: flow.Share(0.5), HighMemory: flow.Share(1)},
	{ID: "bytes", Resource: "export", Threshold: 9, MemoryThreshold: 1, LowMemory: flow.Bytes(3 << 19), HighMemory: flow.Bytes(1 << 30)},
	{ID: "- a: {b} # c", Resource: "GET /a: b", Threshold: 1},
}}

func TestGolden(t *testing.T) {
	for name, dump := range map[string]func() ([]byte, error){
		"testdata/set.yaml": golden.YAML,
		"testdata/set.json": func() ([]byte, error) { return json.MarshalIndent(golden, "", "  ") },
	} {
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		got, err := dump()
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), name)

		set, err := Parse(name, want)
		require.NoError(t, err)
		assert.Equal(t, golden, set, name)
	}
}

func TestEmptySet(t *testing.T) {
	text, err := Set{}.YAML()
	require.NoError(t, err)
	assert.Equal(t, "authority: []\n", string(text))
	text, err = json.Marshal(Set{Flow: []flow.Rule{}})
	require.NoError(t, err)
	assert.Equal(t, `{"authority":[]}`, string(text))
	assert.Zero(t, Set{}.Len())
	assert.Equal(t, len(golden.Authority)+len(golden.System)+len(golden.Flow), golden.Len())
}

func TestUnmarshalJSON(t *testing.T) {
	set := golden
	require.ErrorContains(t, json.Unmarshal([]byte(`{"flow": [{"count": 1}]}`), &set), "1:12: flow[0].count: unknown field")
	assert.Equal(t, golden, set, "kept on error")
	require.NoError(t, json.Unmarshal([]byte(`{"flow": []}`), &set))
	assert.Equal(t, Set{}, set)
}

func TestDumpRefuses(t *testing.T) {
	for want, r := range map[string]flow.Rule{
		"flow[0].threshold: json: unsupported value: NaN":  {Threshold: math.NaN()},
		"flow[0].threshold: json: unsupported value: +Inf": {Threshold: math.Inf(1)},
		"flow[0].metric: metric 9 has no name":             {Metric: 9},
		"flow[0].id: \"\\xff\" is not UTF-8":               {ID: "\xff"},
	} {
		set := Set{Flow: []flow.Rule{r}}
		_, err := set.YAML()
		assert.EqualError(t, err, want)
		_, err = set.MarshalJSON()
		assert.EqualError(t, err, want)
	}
}

// Every field must be read, written and compared: if one of these ignored a field, a rule would
// silently have another effect. sentinel-golang's comparison did ignore some fields (issue 563).
func TestEveryFieldCounts(t *testing.T) {
	everyFieldCounts(t, full, flow.Rule{
		ID: "other", Resource: "other", Exclude: []string{"x"}, Together: true, Threshold: 7, Interval: time.Minute, Buckets: 6,
		Metric: flow.Concurrency, Origin: "other", Relation: flow.Direct, Ref: "other", Behavior: flow.Reject,
		WarmUpPeriod: time.Minute, ColdFactor: 7, MaxWait: time.Minute, Burst: 7, Window: flow.Ring, Mode: spec.Off, Share: spec.Share{By: "origin"}, Shed: spec.ShedLevels,
		Unit: "tokens", Estimate: 7, MaxReserve: 7, MaxOverdraft: 0.5,
		MemoryThreshold: 1, LowMemory: flow.Share(0.5), HighMemory: flow.Bytes(7), Notify: []string{"80%"}, Cluster: cluster.Rule{Scope: cluster.PerMember}, Refusal: spec.Response{Status: 503},
		Per: spec.PerWeek, Timezone: "Asia/Tokyo", Starts: "sunday",
	}, func(r flow.Rule) Set { return Set{Flow: []flow.Rule{r}} })
	everyFieldCounts(t, authority.Rule{ID: "a", Resource: "a", Origins: []string{"a b"}}, authority.Rule{
		ID: "other", Resource: "other", Match: spec.MatchRegex, Exclude: []string{"x"}, List: authority.Deny, Origins: []string{"a", "b"}, AllowAnonymous: true, Mode: spec.Off,
		Refusal: spec.Response{Body: "x"},
	}, func(r authority.Rule) Set { return Set{Authority: []authority.Rule{r}} })
	everyFieldCounts(t, system.Rule{ID: "a", Metric: system.QPS, Threshold: 1, Interval: time.Second, Buckets: 2}, system.Rule{
		ID: "other", Metric: system.CPU, Threshold: 7, MaxRT: 1, Interval: time.Minute, Buckets: 6, Strict: true,
		Strategy: system.Gate, Shed: spec.ShedLevels, Floors: spec.Floors{Sheddable: 5}, Mode: spec.Off,
		Refusal: spec.Response{Status: 599, Body: "x"},
	}, func(r system.Rule) Set { return Set{System: []system.Rule{r}} })
}

func everyFieldCounts[R any](t *testing.T, one, other R, setOf func(R) Set) {
	t.Helper()
	base := setOf(one)
	typ := reflect.TypeFor[R]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		changed := one
		reflect.ValueOf(&changed).Elem().Field(i).Set(reflect.ValueOf(other).Field(i))
		set := setOf(changed)
		assert.False(t, Diff(base, set).Empty(), name)

		before, err := base.YAML()
		require.NoError(t, err)
		after, err := set.YAML()
		require.NoError(t, err)
		assert.NotEqual(t, string(before), string(after), name)
	}
	assert.Len(t, keysOf(fieldsOf(typ)), typ.NumField())
	assert.NotContains(t, keysOf(fieldsOf(typ)), "")
}

// A field of Set without a row in the table would be dropped silently.
func TestEveryFamilyHasARow(t *testing.T) {
	typ := reflect.TypeFor[Set]()
	require.Len(t, families, typ.NumField())
	for i, f := range families {
		assert.Equal(t, typ.Field(i).Tag.Get("yaml"), f.key())
	}
}

// Cluster settings are not rules, but a Set that has only them is put into force.
func TestLenCountsRules(t *testing.T) {
	set, err := Parse("a.yaml", []byte("cluster: {namespace: shop}\nflow:\n  - {resource: orders, threshold: 1}\n"))
	require.NoError(t, err)
	assert.Equal(t, 1, set.Len())
	set.Flow = nil
	assert.Zero(t, set.Len())
	assert.Len(t, set.Cluster, 1)
}
