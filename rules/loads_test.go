package rules

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules/gateway"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// bases are rules that each family accepts, to be changed.
var bases = Set{
	Authority: []authority.Rule{{Resource: "a", Origins: []string{"b"}}},
	System:    []system.Rule{{Metric: system.QPS, Threshold: 1}, {Metric: system.RT, MaxRT: 1}, {Metric: system.CPU, Threshold: 0.5}, {Metric: system.CPU, Threshold: 0.6, Shed: spec.ShedLevels}},
	Hotspot: []hotspot.Rule{
		{Resource: "a", Param: "p", Threshold: 1, Exceptions: []hotspot.Exception{{Value: argument.Of("x"), Threshold: 2}}},
		{Resource: "a", Index: hotspot.At(-1), Threshold: 1, Behavior: hotspot.Throttle},
		{ID: "h", Resource: "a", Param: "p", Threshold: 1, LimitsFromCode: true, Cluster: cluster.Rule{Scope: cluster.Global}},
		{Resource: "a", Index: hotspot.At(1), Threshold: 1, Behavior: hotspot.TokenBucket, Burst: 2, Lockout: hotspot.Lockout{After: 2, For: time.Minute}},
		{Resource: "a", Param: "p", Threshold: 1, Per: spec.PerDay, Starts: "06:00"},
		{Resource: "a", Keys: []string{"param p", "origin"}, Threshold: 1, Exceptions: combined("x", "*"), Plans: map[string]float64{"pro": 9}},
	},
	Flow: []flow.Rule{
		{Resource: "a", Threshold: 1, Per: spec.PerMonth, Timezone: "Europe/Berlin", Starts: "15 06:00"},
		{Resource: "a", Threshold: 1, Notify: []string{"80%"}}, {Resource: "a", Threshold: 1, Behavior: flow.WarmUpThrottle},
		{ID: "f", Resource: "a", Threshold: 1, Cluster: cluster.Rule{Scope: cluster.Global}}, {ID: "f", Resource: "a", Threshold: 1, Behavior: flow.Throttle, Cluster: cluster.Rule{Scope: cluster.PerMember}},
		{Resource: "a", Threshold: 1, Relation: flow.Chain, Ref: "c", Origin: "app"},
		{Resource: "a", Threshold: 100, MemoryThreshold: 1, LowMemory: flow.Share(0.5), HighMemory: flow.Share(0.9)},
	},
	Isolation: []isolation.Rule{{Resource: "a", Threshold: 1, MaxQueue: 1, MaxWait: 1}, {Resource: "a", Threshold: 1, MaxQueue: 1, MaxWait: 1, Share: spec.Share{By: "param tenant"}}, {ID: "i", Resource: "a", Threshold: 1, Cluster: cluster.Rule{Scope: cluster.Global}}},
	Adaptive:  []adaptive.Rule{{Resource: "a"}, {ID: "levels", Resource: "a", Shed: spec.ShedLevels}},
	Breaker:   []breaker.Rule{{Resource: "a", Threshold: 0.5}, {Resource: "*", Exclude: []string{"b"}}, {Resource: "a", Strategy: breaker.SlowRatio, SlowRT: 1}},
	Upstream:  []upstream.Rule{{Resource: "a", Obey: true, Scope: upstream.PerHost}, {Resource: "a", Retries: upstream.Retries{Share: 0.5}}, {Resource: "a", Throttle: upstream.Throttle{K: 3}}},
	Outlier:   []outlier.Rule{{Resource: "a", Threshold: 0.5}},
	Cluster:   []Cluster{{Redis: "redis://cache:6379/0", Namespace: "n", Members: 2}},
	Groups:    []gateway.Group{{ID: "g", Paths: []gateway.Path{{Path: "/a"}, {Path: "/a/*", Match: spec.MatchPrefix}}}},
	Gateway: []gateway.Rule{
		{Route: "a", Threshold: 1}, {Route: "a", Param: gateway.ClientIP, Threshold: 1, Burst: 1},
		{Route: "a", Param: gateway.Header, Name: "X-A", Value: "b", Threshold: 1, Behavior: hotspot.Throttle},
	},
}

// nasty are values with a special meaning somewhere.
var nasty = map[reflect.Type][]any{
	reflect.TypeFor[string](): {
		"", "<<", "*", "a.*", "(", "~", "null", "12", "-0", "1e3", "true", "\xff", "\x00", "\u2028", "\ufffd", " a ", "a\nb", "a: b", "default", "other", "2001-01-01",
	},
	reflect.TypeFor[float64](): {
		0.0, math.Copysign(0, -1), 1.0, 0.5, 1.0 / 3, 5e-324, 1e-300, 1e15, math.Nextafter(1e15, 2e15), 1e300, math.MaxFloat64, -1.0, math.NaN(), math.Inf(1), 9007199254740993.0,
	},
	reflect.TypeFor[int]():           {0, 1, 2, 7, -1, 1000, 1_000_000_000, math.MaxInt32, math.MinInt32},
	reflect.TypeFor[bool]():          {false, true},
	reflect.TypeFor[time.Duration](): {time.Duration(0), time.Duration(1), 1500 * time.Nanosecond, time.Millisecond, time.Second, time.Minute, 24 * time.Hour, time.Duration(-1), time.Duration(math.MaxInt64), time.Duration(math.MinInt64), 90*time.Minute + 1},
	reflect.TypeFor[[]string]():      {[]string(nil), []string{}, []string{"a"}, []string{"<<", "a,b", ""}, []string{" a", "b\n"}, []string{"\xff"}, []string{"a", "a"}, []string{"100%", "80%"}},
	reflect.TypeFor[flow.Watermark](): {
		flow.Watermark{}, flow.Share(0.1), flow.Share(1), flow.Share(math.NaN()), flow.Share(5e-324), flow.Bytes(1), flow.Bytes(-1), flow.Bytes(1 << 40), flow.Bytes(math.MaxInt64), flow.Bytes(1<<60 + 1),
	},
	reflect.TypeFor[[]gateway.Path](): {
		[]gateway.Path(nil), []gateway.Path{{Path: "/"}}, []gateway.Path{{Path: "a", Match: spec.MatchRegex}, {Path: "/*/b", Match: spec.MatchPath}}, []gateway.Path{{Path: "\xff"}}, []gateway.Path{{Path: "/\n"}},
	},
	reflect.TypeFor[hotspot.Lockout]():   {hotspot.Lockout{}, hotspot.Lockout{After: 3}, hotspot.Lockout{For: time.Minute}, hotspot.Lockout{After: 2, For: time.Second}, hotspot.Lockout{After: -1, For: 1}},
	reflect.TypeFor[upstream.Retries]():  {upstream.Retries{}, upstream.Retries{Least: 1}, upstream.Retries{Share: 1}, upstream.Retries{Share: -1}, upstream.Retries{Share: 2, Least: 1}},
	reflect.TypeFor[upstream.Throttle](): {upstream.Throttle{}, upstream.Throttle{K: 1}, upstream.Throttle{Interval: 1 << 40}, upstream.Throttle{K: 0.5}, upstream.Throttle{K: 2, Interval: 1}},
	reflect.TypeFor[spec.Share](): {
		spec.Share{}, spec.Share{By: "origin"}, spec.Share{By: "param a: b", Weights: map[string]int{"<<": 2, "12": 1, "~": 1000, "a\nb": 3}}, spec.Share{By: "param \xff"},
		spec.Share{By: "param tenant", WeightBy: "param plan", Weights: map[string]int{"gold": 4}, PerShareQueue: 1, MaxShares: 7}, spec.Share{By: "origin", Weights: map[string]int{}},
		spec.Share{MaxShares: 1}, spec.Share{By: "origin", Weights: map[string]int{"\xff": 1}}, spec.Share{By: "origin", MaxShares: -1},
	},
	reflect.TypeFor[spec.Response](): {
		spec.Response{}, spec.Response{Status: 400, Body: "{\"a\": 1}"}, spec.Response{Status: 599}, spec.Response{Status: 399}, spec.Response{Status: 600},
		spec.Response{Body: "a\n\tb: #c"}, spec.Response{Body: strings.Repeat("é", 2048)}, spec.Response{Body: strings.Repeat("x", 4097)}, spec.Response{Body: "\xff"},
	},
	reflect.TypeFor[spec.Floors](): {
		spec.Floors{}, spec.Floors{Critical: 1, SheddablePlus: 2, Sheddable: 97}, spec.Floors{Sheddable: 100}, spec.Floors{Sheddable: 101}, spec.Floors{Critical: -1},
	},
	reflect.TypeFor[cluster.Rule](): {
		cluster.Rule{}, cluster.Rule{Scope: cluster.Global}, cluster.Rule{Scope: cluster.PerMember, OnFailure: cluster.Closed, Timeout: 3 * time.Millisecond},
		cluster.Rule{OnFailure: cluster.Open}, cluster.Rule{Scope: 9}, cluster.Rule{Scope: cluster.Global, Timeout: math.MaxInt64},
	},
	reflect.TypeFor[map[string]float64](): {
		map[string]float64(nil), map[string]float64{}, map[string]float64{"free": 1, "pro": 2.5, "12": 1e15, "~": 0, "a\nb": 5e-324, "<<": 1}, map[string]float64{"": 1}, map[string]float64{"\xff": 1},
		map[string]float64{"a": -1}, map[string]float64{"a": math.NaN()}, map[string]float64{strings.Repeat("x", 65): 1},
	},
	reflect.TypeFor[hotspot.Index](): {hotspot.Index{}, hotspot.At(0), hotspot.At(-1), hotspot.At(1000), hotspot.At(math.MaxInt)},
	reflect.TypeFor[[]hotspot.Exception](): {
		[]hotspot.Exception(nil), []hotspot.Exception{}, []hotspot.Exception{{}}, exceptions(7, "7", 7.0, true, "<<", "", uint64(math.MaxUint64), math.Inf(1)), exceptions(math.NaN()), exceptions(math.Copysign(0, -1), 0), exceptions("\xff"), exceptions(math.MaxFloat64, 5e-324, 1e21, 1e20),
		combined("*", "<<"), combined(7, "7"), combined(7.0, true), combined(1e21, "a\nb"), combined("\xff", 1), combined("*", "*"), combined("x"), append(combined("x", "*"), exceptions("x")...),
	},
}

// combined returns an exception for a key of several parts.
func combined(parts ...any) []hotspot.Exception {
	x := hotspot.Exception{Threshold: 1}
	for _, v := range parts {
		x.Values = append(x.Values, argument.Of(v))
	}
	return []hotspot.Exception{x}
}

func exceptions(values ...any) (list []hotspot.Exception) {
	for _, v := range values {
		list = append(list, hotspot.Exception{Value: argument.Of(v), Threshold: 1})
	}
	return list
}

// Any rules loaded from Go can be written, and the text reads and loads as the same rules. Rules that no
// file can express are refused.
// known bug 117, 118
func TestWhatLoadsIsReadBack(t *testing.T) {
	random := chance.Source(t)
	accepted, tries := 0, figure.Size(5_000, 5_000, 200_000, 2_000_000)
	for range tries {
		set := mutated(t, random)
		loaded, err := normalize(set)
		if err != nil {
			continue
		}
		accepted++
		requireReadsBack(t, loaded)
		requireLoads(t, loaded)
	}
	t.Log(accepted, "of", tries, "accepted")
	require.Greater(t, accepted, tries/10)
}

// mutated returns one of the bases with some other values.
func mutated(t *testing.T, random *rand.Rand) Set {
	all, one := bases.Clone(), Set{}
	family := random.IntN(len(families))
	from := reflect.ValueOf(&all).Elem().Field(family)
	require.NotZero(t, from.Len(), "add a rule of family %d to bases", family)
	rule := from.Index(random.IntN(from.Len()))
	for range 1 + random.IntN(3) {
		field := rule.Field(random.IntN(rule.NumField()))
		if field.Kind() == reflect.Uint8 { // an enumeration
			field.SetUint(random.Uint64N(5))
			continue
		}
		values := nasty[field.Type()]
		require.NotEmpty(t, values, "add values for a %v", field.Type())
		field.Set(reflect.ValueOf(values[random.IntN(len(values))]))
	}
	into := reflect.ValueOf(&one).Elem().Field(family)
	into.Set(reflect.Append(into, rule))
	return one
}

func normalize(set Set) (_ Set, err error) {
	keep := func(e error) { err = errors.Join(err, e) }
	var e error
	set.Authority, e = spec.Normalize(core.KindAuthority, set.Authority, authority.Rule.Normalized)
	keep(e)
	set.System, e = spec.Normalize(core.KindSystem, set.System, system.Rule.Normalized)
	keep(e)
	set.Hotspot, e = spec.Normalize(core.KindHotspot, set.Hotspot, hotspot.Rule.Normalized)
	keep(e)
	set.Flow, e = spec.Normalize(core.KindFlow, set.Flow, func(r flow.Rule) (flow.Rule, error) { return r.Normalized(coldFactor) })
	keep(e)
	set.Isolation, e = spec.Normalize(core.KindIsolation, set.Isolation, isolation.Rule.Normalized)
	keep(e)
	set.Adaptive, e = spec.Normalize(core.KindAdaptive, set.Adaptive, adaptive.Rule.Normalized)
	keep(e)
	set.Breaker, e = spec.Normalize(core.KindBreaker, set.Breaker, breaker.Rule.Normalized)
	keep(e)
	set.Upstream, e = spec.Normalize(core.KindUpstream, set.Upstream, upstream.Rule.Normalized)
	keep(e)
	set.Outlier, e = spec.Normalize(core.KindOutlier, set.Outlier, outlier.Rule.Normalized)
	keep(e)
	set.Groups, e = spec.Normalize(core.KindNone, set.Groups, gateway.Group.Normalized)
	keep(e)
	set.Gateway, e = spec.Normalize(core.KindNone, set.Gateway, gateway.Rule.Normalized)
	keep(e)
	set.Cluster, e = spec.Normalize(core.KindNone, set.Cluster, Cluster.Normalized)
	keep(e)
	_, e = gateway.NewTable(set.Groups, set.Gateway)
	keep(e)
	return set, err
}
