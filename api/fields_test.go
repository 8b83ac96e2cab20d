package api_test

import (
	"encoding"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// A field that a rule does not read is refused, with advice, from Go and in a file and in every
// mode; a field that it reads is accepted; and the rules that api.Rules returns can be loaded again,
// as they are and through a file. The test tries every field of every family, under all values of
// its enumerations; an ordinary run tries 100 combinations of each family, different ones each time.
// known bug 134
func TestFieldsThatAreNotRead(t *testing.T) {
	const s = time.Second
	t.Run("flow", func(t *testing.T) {
		windowed := func(r flow.Rule) bool {
			return r.Metric == flow.QPS && (r.Behavior == flow.Reject || r.Behavior == flow.WarmUp) && r.Per == spec.PerNone
		}
		warms := func(r flow.Rule) bool { return r.Behavior == flow.WarmUp || r.Behavior == flow.WarmUpThrottle }
		queues := func(r flow.Rule) bool { return r.Behavior == flow.Throttle || r.Behavior == flow.WarmUpThrottle }
		throttles := func(r flow.Rule) bool { return r.Behavior == flow.Throttle }
		fair := func(r *flow.Rule) bool { return r.Share.By != "" || r.Shed != spec.ShedNone }
		cold := func(r flow.Rule) bool { return !warms(r) && r.Behavior != flow.TokenBucket && r.Per == spec.PerNone }
		quota := func(r flow.Rule) bool { return r.Per != spec.PerNone }
		bucket := func(r flow.Rule) bool { return r.Behavior == flow.TokenBucket }
		memory := func(r *flow.Rule) {
			if r.Cluster.Shared() || r.Burst != 0 && throttles(*r) { // they don't go together
				return
			}
			r.MemoryThreshold, r.LowMemory, r.HighMemory = 2, flow.Share(0.4), flow.Share(0.9)
		}
		unit := func(r *flow.Rule) bool {
			if !r.Cluster.Shared() && !fair(r) { // they don't go together
				r.Unit = "tokens"
			}
			return r.Unit != ""
		}
		fits := func(r flow.Rule) bool {
			return (r.Metric == flow.QPS || r.Behavior == flow.Reject) && (r.Relation != flow.Associated || !queues(r) && !bucket(r)) && (r.Shed == spec.ShedNone || throttles(r)) &&
				(!quota(r) || r.Metric == flow.QPS && r.Behavior == flow.Reject && r.Relation != flow.Associated && r.Window == flow.Strict)
		}
		reading[flow.Rule]{
			in: func(s *rules.Set) *[]flow.Rule { return &s.Flow },
			least: func(r *flow.Rule) {
				r.Resource, r.Threshold = "orders", 5
				if r.Relation != flow.Direct {
					r.Ref = "other"
				}
			},
			fits: fits,
			fields: map[string]field[flow.Rule]{
				"id": {say: func(r *flow.Rule) { r.ID = "mine" }},
				"together": {func(r *flow.Rule) { r.Together = true }, func(r flow.Rule) bool {
					return !r.Info().Named() && r.Relation != flow.Associated && !warms(r) && r.Origin != flow.OriginOther
				}},
				"threshold":    {say: func(r *flow.Rule) { r.Threshold = 7 }},
				"interval":     {func(r *flow.Rule) { r.Interval = 2 * s }, func(r flow.Rule) bool { return r.Metric == flow.QPS && !quota(r) }},
				"timezone":     {func(r *flow.Rule) { r.Timezone = "Asia/Tokyo" }, quota},
				"starts":       {func(r *flow.Rule) { r.Starts = startOf(r.Per) }, quota},
				"buckets":      {func(r *flow.Rule) { r.Buckets = 4 }, windowed},
				"strict":       {read: func(r flow.Rule) bool { return windowed(r) || !fits(r) }},
				"origin":       {say: func(r *flow.Rule) { r.Origin = "app" }},
				"ref":          {func(r *flow.Rule) { r.Ref = "there" }, func(r flow.Rule) bool { return r.Relation != flow.Direct }},
				"warmUpPeriod": {func(r *flow.Rule) { r.WarmUpPeriod = 3 * s }, warms},
				"coldFactor":   {func(r *flow.Rule) { r.ColdFactor = 5 }, warms},
				"maxWait":      {func(r *flow.Rule) { r.MaxWait = 2 * s }, queues},
				"share": {func(r *flow.Rule) {
					if !r.Cluster.Shared() && r.Unit == "" && r.Burst == 0 { // they don't go together
						r.Share = spec.Share{By: "param tenant", WeightBy: "origin", Weights: map[string]int{"gold": 4}, PerShareQueue: 2, MaxShares: 9}
					}
				}, throttles},
				"shed": {read: func(r flow.Rule) bool { return throttles(r) || !fits(r) }},
				"burst": {func(r *flow.Rule) {
					if !throttles(*r) || r.Share.By == "" && r.Shed == spec.ShedNone && r.MemoryThreshold == 0 && !r.Cluster.Shared() { // they don't go together
						r.Burst = 3
					}
				}, func(r flow.Rule) bool { return bucket(r) || throttles(r) }},
				"notify": {func(r *flow.Rule) {
					if !r.Cluster.Shared() { // they don't go together
						r.Notify = []string{"80%", "100%"}
					}
				}, func(r flow.Rule) bool {
					return r.Metric == flow.QPS && r.Behavior == flow.Reject && r.Relation == flow.Direct
				}},
				"unit": {func(r *flow.Rule) { unit(r) }, func(r flow.Rule) bool { return !warms(r) && r.Relation != flow.Associated }},
				"estimate": {func(r *flow.Rule) {
					if unit(r) {
						r.Estimate = 1
					}
				}, func(r flow.Rule) bool { return !warms(r) && r.Relation != flow.Associated }},
				"maxReserve": {func(r *flow.Rule) {
					if unit(r) || fair(r) {
						r.MaxReserve = 3
					}
				}, func(r flow.Rule) bool { return !warms(r) && !queues(r) && r.Relation != flow.Associated }},
				"maxOverdraft": {func(r *flow.Rule) {
					if unit(r) || fair(r) {
						r.MaxOverdraft = 0.25
					}
				}, func(r flow.Rule) bool {
					return !warms(r) && !queues(r) && r.Relation != flow.Associated && r.Metric == flow.QPS
				}},
				"memoryThreshold": {memory, cold},
				"lowMemory":       {memory, cold},
				"highMemory":      {memory, cold},
				"cluster": {func(r *flow.Rule) {
					if r.MemoryThreshold == 0 && r.Unit == "" && r.Notify == nil && (!fair(r) || r.Relation != flow.Direct) && (r.Burst == 0 || !throttles(*r)) {
						r.ID, r.Cluster = "mine", cluster.Rule{Scope: cluster.PerMember, OnFailure: cluster.Open, Timeout: 10 * time.Millisecond}
						if bucket(*r) {
							r.Burst = 3 // required
						}
					}
				}, func(r flow.Rule) bool {
					return !warms(r) && r.Relation == flow.Direct && !quota(r)
				}},
			},
		}.check(t)
	})
	t.Run("hotspot", func(t *testing.T) {
		hotUnit := func(r *hotspot.Rule) bool {
			if !r.Cluster.Shared() { // they don't go together
				r.Unit = "tokens"
			}
			return r.Unit != ""
		}
		costs := func(r hotspot.Rule) bool { return r.Window == hotspot.Strict }
		quota := func(r hotspot.Rule) bool { return r.Per != spec.PerNone }
		reading[hotspot.Rule]{
			in:    func(s *rules.Set) *[]hotspot.Rule { return &s.Hotspot },
			least: func(r *hotspot.Rule) { r.Resource, r.Param, r.Threshold = "orders", "user", 5 },
			fits: func(r hotspot.Rule) bool {
				if quota(r) && (r.Behavior != hotspot.Reject || r.Metric != hotspot.QPS || r.Window != hotspot.Strict) {
					return false
				}
				return r.Behavior == hotspot.Reject && (r.Metric == hotspot.QPS || r.Window == hotspot.Strict) || r.Metric == hotspot.QPS && r.Window == hotspot.Strict
			},
			fields: map[string]field[hotspot.Rule]{
				"id":       {say: func(r *hotspot.Rule) { r.ID = "mine" }},
				"together": {func(r *hotspot.Rule) { r.Together = true }, func(r hotspot.Rule) bool { return !r.Info().Named() }},
				"index":    {say: func(r *hotspot.Rule) { r.Index, r.Param, r.Keys = hotspot.At(0), "", nil }},
				"param":    {say: func(r *hotspot.Rule) { r.Index, r.Param, r.Keys = hotspot.Index{}, "tenant", nil }},
				"keys":     {say: func(r *hotspot.Rule) { r.Index, r.Param, r.Keys = hotspot.Index{}, "", []string{"origin"} }},
				"plans":    {say: func(r *hotspot.Rule) { r.Plans = map[string]float64{"pro": 6} }},
				"notify": {func(r *hotspot.Rule) {
					if !r.Cluster.Shared() { // they don't go together
						r.Notify = []string{"80%", "100%"}
					}
				}, func(r hotspot.Rule) bool { return r.Metric == hotspot.QPS && r.Behavior == hotspot.Reject }},
				"lockout": {func(r *hotspot.Rule) {
					if !r.Cluster.Shared() { // they don't go together
						r.Lockout = hotspot.Lockout{After: 2, For: time.Minute}
					}
				}, func(r hotspot.Rule) bool { return r.Metric == hotspot.QPS && !quota(r) }},
				"limitsFromCode": {say: func(r *hotspot.Rule) { r.ID, r.LimitsFromCode = "mine", true }},
				"missing":        {say: func(r *hotspot.Rule) { r.Missing = hotspot.MissingShared }},
				"threshold":      {say: func(r *hotspot.Rule) { r.Threshold = 7 }},
				"interval":       {func(r *hotspot.Rule) { r.Interval = 2 * s }, func(r hotspot.Rule) bool { return r.Metric == hotspot.QPS && !quota(r) }},
				"timezone":       {func(r *hotspot.Rule) { r.Timezone = "Asia/Tokyo" }, quota},
				"starts":         {func(r *hotspot.Rule) { r.Starts = startOf(r.Per) }, quota},
				"burst": {func(r *hotspot.Rule) {
					if !r.Cluster.Shared() {
						r.Burst = 3
					}
				}, func(r hotspot.Rule) bool {
					return r.Metric == hotspot.QPS && (r.Behavior != hotspot.Reject || r.Behavior == hotspot.Reject && r.Window == hotspot.Refill)
				}},
				"maxWait": {func(r *hotspot.Rule) { r.MaxWait = 2 * s }, func(r hotspot.Rule) bool { return r.Behavior == hotspot.Throttle }},
				"unit":    {func(r *hotspot.Rule) { hotUnit(r) }, costs},
				"estimate": {func(r *hotspot.Rule) {
					if hotUnit(r) {
						r.Estimate = 1
					}
				}, costs},
				"maxReserve": {func(r *hotspot.Rule) {
					if hotUnit(r) {
						r.MaxReserve = 3
					}
				}, func(r hotspot.Rule) bool { return costs(r) && r.Behavior != hotspot.Throttle }},
				"maxOverdraft": {func(r *hotspot.Rule) {
					if hotUnit(r) {
						r.MaxOverdraft = 0.25
					}
				}, func(r hotspot.Rule) bool {
					return costs(r) && r.Behavior != hotspot.Throttle && r.Metric == hotspot.QPS
				}},
				"exceptions": {say: func(r *hotspot.Rule) { r.Exceptions = []hotspot.Exception{{Value: hotspot.ValueOf("x"), Threshold: 1}} }},
				"maxValues":  {say: func(r *hotspot.Rule) { r.MaxValues = 12 }},
				"cluster": {func(r *hotspot.Rule) {
					bucket := r.Behavior == hotspot.TokenBucket
					if (r.Burst == 0 || bucket) && r.Unit == "" && r.Notify == nil && r.Lockout == (hotspot.Lockout{}) { // they don't go together
						r.ID, r.Cluster = "mine", cluster.Rule{Scope: cluster.PerMember, OnFailure: cluster.Closed, Timeout: time.Millisecond}
						if bucket {
							r.Burst = 3 // required
						}
					}
				}, func(r hotspot.Rule) bool { return r.Window == hotspot.Strict && !quota(r) }},
			},
		}.check(t)
	})
	t.Run("breaker", func(t *testing.T) {
		counts := func(r breaker.Rule) bool { return r.Strategy != breaker.ConsecutiveErrors }
		reading[breaker.Rule]{
			in: func(s *rules.Set) *[]breaker.Rule { return &s.Breaker },
			least: func(r *breaker.Rule) {
				r.Resource, r.Threshold = "orders", 1
				if r.Strategy == breaker.SlowRatio {
					r.SlowRT = s
				}
			},
			fields: map[string]field[breaker.Rule]{
				"id":           {say: func(r *breaker.Rule) { r.ID = "mine" }},
				"threshold":    {say: func(r *breaker.Rule) { r.Threshold = 0.5 }},
				"slowRT":       {func(r *breaker.Rule) { r.SlowRT = 2 * s }, func(r breaker.Rule) bool { return r.Strategy == breaker.SlowRatio }},
				"minCalls":     {func(r *breaker.Rule) { r.MinCalls = 9 }, counts},
				"interval":     {func(r *breaker.Rule) { r.Interval = 2 * s }, counts},
				"buckets":      {func(r *breaker.Rule) { r.Buckets = 4 }, counts},
				"recovery":     {say: func(r *breaker.Rule) { r.Recovery = 2 * s }},
				"probes":       {say: func(r *breaker.Rule) { r.Probes = 3 }},
				"probeTimeout": {say: func(r *breaker.Rule) { r.ProbeTimeout = 2 * s }},
				"ramp":         {say: func(r *breaker.Rule) { r.Ramp = 2 * s }},
			},
		}.check(t)
	})
	t.Run("outlier", func(t *testing.T) {
		counts := func(r outlier.Rule) bool { return r.Strategy != breaker.ConsecutiveErrors }
		reading[outlier.Rule]{
			in: func(s *rules.Set) *[]outlier.Rule { return &s.Outlier },
			least: func(r *outlier.Rule) {
				r.Resource, r.Threshold = "orders", 1
				if r.Strategy == breaker.SlowRatio {
					r.SlowRT = s
				}
			},
			fields: map[string]field[outlier.Rule]{
				"id":           {say: func(r *outlier.Rule) { r.ID = "mine" }},
				"maxEjected":   {say: func(r *outlier.Rule) { r.MaxEjected = 0.25 }},
				"maxEndpoints": {say: func(r *outlier.Rule) { r.MaxEndpoints = 20 }},
				"forgetAfter":  {say: func(r *outlier.Rule) { r.ForgetAfter = time.Hour }},
				"threshold":    {say: func(r *outlier.Rule) { r.Threshold = 0.5 }},
				"slowRT":       {func(r *outlier.Rule) { r.SlowRT = 2 * s }, func(r outlier.Rule) bool { return r.Strategy == breaker.SlowRatio }},
				"minCalls":     {func(r *outlier.Rule) { r.MinCalls = 9 }, counts},
				"interval":     {func(r *outlier.Rule) { r.Interval = 2 * s }, counts},
				"buckets":      {func(r *outlier.Rule) { r.Buckets = 4 }, counts},
				"recovery":     {say: func(r *outlier.Rule) { r.Recovery = 2 * s }},
				"probes":       {say: func(r *outlier.Rule) { r.Probes = 3 }},
				"probeTimeout": {say: func(r *outlier.Rule) { r.ProbeTimeout = 2 * s }},
			},
		}.check(t)
	})
	t.Run("isolation", func(t *testing.T) {
		queue := func(r *isolation.Rule) {
			if !r.Cluster.Shared() && r.Unit == "" { // they don't go together
				r.MaxQueue, r.MaxWait = 3, 2*s
			}
		}
		unit := func(r *isolation.Rule) bool {
			if !r.Cluster.Shared() && r.MaxQueue == 0 { // they don't go together
				r.Unit = "bytes"
			}
			return r.Unit != ""
		}
		reading[isolation.Rule]{
			in:    func(s *rules.Set) *[]isolation.Rule { return &s.Isolation },
			least: func(r *isolation.Rule) { r.Resource, r.Threshold = "orders", 5 },
			also:  []func(*isolation.Rule){queue},
			fits:  func(r isolation.Rule) bool { return r.Shed == api.ShedNone || r.MaxQueue > 0 },
			fields: map[string]field[isolation.Rule]{
				"id":        {say: func(r *isolation.Rule) { r.ID = "mine" }},
				"together":  {func(r *isolation.Rule) { r.Together = true }, func(r isolation.Rule) bool { return !r.Info().Named() }},
				"threshold": {say: func(r *isolation.Rule) { r.Threshold = 7 }},
				"maxQueue":  {say: queue},
				"maxWait":   {say: queue},
				"unit":      {say: func(r *isolation.Rule) { unit(r) }},
				"estimate": {say: func(r *isolation.Rule) {
					if unit(r) {
						r.Estimate = 1
					}
				}},
				"maxReserve": {say: func(r *isolation.Rule) {
					if unit(r) {
						r.MaxReserve = 3
					}
				}},
				"share": {say: func(r *isolation.Rule) {
					if r.MaxQueue > 0 {
						r.Share = spec.Share{By: "param tenant", WeightBy: "origin", Weights: map[string]int{"gold": 4}, PerShareQueue: 2, MaxShares: 9}
					}
				}},
				"cluster": {func(r *isolation.Rule) {
					if r.MaxQueue == 0 && r.Unit == "" { // they don't go together
						r.ID, r.Cluster = "mine", cluster.Rule{Scope: cluster.PerMember, OnFailure: cluster.Closed, Timeout: time.Millisecond}
					}
				}, nil},
			},
		}.check(t)
		// maxWait is read if there is a queue: one without the other is refused.
		_, err := isolation.Rule{Resource: "orders", Threshold: 5, MaxWait: s}.Normalized()
		assert.EqualError(t, err, "maxQueue: is required by maxWait: set the number of calls that may wait")
	})
	t.Run("adaptive", func(t *testing.T) {
		reading[adaptive.Rule]{
			in:    func(s *rules.Set) *[]adaptive.Rule { return &s.Adaptive },
			least: func(r *adaptive.Rule) { r.Resource = "orders" },
			fields: map[string]field[adaptive.Rule]{
				"id":      {say: func(r *adaptive.Rule) { r.ID = "mine" }},
				"floor":   {say: func(r *adaptive.Rule) { r.Floor = 3 }},
				"ceiling": {say: func(r *adaptive.Rule) { r.Ceiling = 300 }},
				"start":   {say: func(r *adaptive.Rule) { r.Start = 30 }},
				"window":  {say: func(r *adaptive.Rule) { r.Window = 2 * s }},
				"floors": {
					func(r *adaptive.Rule) { r.Floors = api.Floors{Critical: 10, SheddablePlus: 5, Sheddable: 1} },
					func(r adaptive.Rule) bool { return r.Shed == api.ShedLevels },
				},
			},
		}.check(t)
	})
	t.Run("system", func(t *testing.T) {
		windowed := func(r system.Rule) bool { return r.Metric == system.QPS || r.Metric == system.RT }
		sheds := func(r system.Rule) bool {
			return r.Metric == system.None || r.Metric <= system.CPU && r.Strategy == system.Steady || r.Metric == system.Concurrency
		}
		reading[system.Rule]{
			in: func(s *rules.Set) *[]system.Rule { return &s.System },
			least: func(r *system.Rule) {
				if r.Threshold = 0.5; r.Metric == system.RT {
					r.Threshold, r.MaxRT = 0, s
				}
			},
			fits: func(r system.Rule) bool { return r.Metric != system.None },
			fields: map[string]field[system.Rule]{
				"id":        {say: func(r *system.Rule) { r.ID = "mine" }},
				"threshold": {func(r *system.Rule) { r.Threshold = 0.75 }, func(r system.Rule) bool { return r.Metric != system.RT }},
				"maxRT":     {func(r *system.Rule) { r.MaxRT = 2 * s }, func(r system.Rule) bool { return r.Metric == system.RT }},
				"interval":  {func(r *system.Rule) { r.Interval = 2 * s }, windowed},
				"buckets":   {func(r *system.Rule) { r.Buckets = 4 }, windowed},
				"strict":    {func(r *system.Rule) { r.Strict = true }, func(r system.Rule) bool { return r.Metric == system.QPS }},
				"strategy":  {read: func(r system.Rule) bool { return r.Metric <= system.CPU }},
				"shed":      {read: sheds},
				"floors": {
					func(r *system.Rule) { r.Floors = api.Floors{Sheddable: 5} },
					func(r system.Rule) bool { return sheds(r) && r.Shed == api.ShedLevels },
				},
			},
		}.check(t)
	})
	t.Run("authority", func(t *testing.T) {
		reading[authority.Rule]{
			in:    func(s *rules.Set) *[]authority.Rule { return &s.Authority },
			least: func(r *authority.Rule) { r.Resource, r.Origins = "orders", []string{"app"} },
			fields: map[string]field[authority.Rule]{
				"id":             {say: func(r *authority.Rule) { r.ID = "mine" }},
				"origins":        {say: func(r *authority.Rule) { r.Origins = []string{"app", "web"} }},
				"allowAnonymous": {func(r *authority.Rule) { r.AllowAnonymous = true }, func(r authority.Rule) bool { return r.List == authority.Allow }},
			},
		}.check(t)
	})
	t.Run("upstream", func(t *testing.T) {
		reading[upstream.Rule]{
			in:    func(s *rules.Set) *[]upstream.Rule { return &s.Upstream },
			least: func(r *upstream.Rule) { r.Resource, r.Obey = "orders", true },
			fields: map[string]field[upstream.Rule]{
				"id":       {say: func(r *upstream.Rule) { r.ID = "mine" }},
				"obey":     {say: func(r *upstream.Rule) { r.Obey = true }},
				"maxPause": {say: func(r *upstream.Rule) { r.MaxPause = time.Hour }},
				"retries":  {say: func(r *upstream.Rule) { r.Retries = upstream.Retries{Share: 0.5, Least: 7} }},
				"throttle": {say: func(r *upstream.Rule) { r.Throttle = upstream.Throttle{K: 3, Interval: time.Minute} }},
			},
		}.check(t)
	})
	assert.Equal(t, 9+2+1, reflect.TypeFor[rules.Set]().NumField(), "every family is here; what is of gateways is in package gateway, and the last is no rule")
}

// startOf returns a start of that kind of period.
func startOf(per spec.Per) string {
	return map[spec.Per]string{spec.PerNone: "06:00", spec.PerDay: "06:00", spec.PerWeek: "sunday 00:00", spec.PerMonth: "15 00:00"}[per]
}

// reading defines which rules of a family read which fields.
type reading[R spec.Rule] struct {
	in     func(*rules.Set) *[]R
	least  func(*R)            // sets the required fields
	also   []func(*R)          // make it another kind of rule, where no enumeration does
	fits   func(R) bool        // which values of enumerations go together; nil: all
	fields map[string]field[R] // by their key, except enumerations
}

// field is a field of a rule.
type field[R any] struct {
	say  func(*R)     // sets the field to a non-default value, with the fields it needs
	read func(R) bool // nil: by every rule
}

func (f reading[R]) check(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_800_000_000, 0))
	g := newGuard(t, api.Config{Host: busy{}, ColdFactor: 7, Clock: clock, Cluster: cluster.Config{Store: cluster.NewMemory(clock)}})
	refused := 0
	f = f.aboutResources()
	if _, has := reflect.TypeFor[R]().FieldByName("Refusal"); has {
		f.fields["refusal"] = field[R]{say: func(r *R) {
			reflect.ValueOf(r).Elem().FieldByName("Refusal").Set(reflect.ValueOf(api.Response{Status: 503, Body: "later"}))
		}}
	}
	for _, kind := range f.kinds(t) {
		if f.least(&kind); kind.Info().Wild() {
			setResource(&kind, kind.Info().Resource+"/*")
		}
		for _, also := range append([]func(*R){func(*R) {}}, f.also...) {
			rule := kind
			also(&rule)
			refused += f.checkKind(t, g, rule)
		}
	}
	t.Logf("%d refused", refused)
}

// aboutResources adds the fields that select resources, if the rules have them.
func (f reading[R]) aboutResources() reading[R] {
	if _, has := reflect.TypeFor[R]().FieldByName("Resource"); !has {
		return f
	}
	f.fields["resource"] = field[R]{say: func(r *R) {
		switch info := (*r).Info(); {
		case info.Wild():
			setResource(r, "carts/*")
		case !info.Default():
			setResource(r, "carts")
		}
	}}
	f.fields["exclude"] = field[R]{
		func(r *R) { reflect.ValueOf(r).Elem().FieldByName("Exclude").Set(reflect.ValueOf([]string{"x"})) },
		func(r R) bool { return r.Info().Wild() || r.Info().Default() },
	}
	f.also = append(f.also, func(r *R) {
		if (*r).Info().Match == spec.MatchExact {
			setResource(r, spec.AnyResource)
		}
	})
	return f
}

func setResource[R any](r *R, name string) {
	reflect.ValueOf(r).Elem().FieldByName("Resource").SetString(name)
}

// kinds returns a rule for every combination of enumerations. On the way it checks that the table
// has every other field.
func (f reading[R]) kinds(t *testing.T) []R {
	rows := []R{*new(R)}
	known := 0
	for i, structure := 0, reflect.TypeFor[R](); i < structure.NumField(); i++ {
		key := keyOf(structure.Field(i))
		if _, ok := f.fields[key]; ok {
			known++
		}
		if values := valuesOf(structure.Field(i).Type); values != nil {
			var next []R
			for _, row := range rows {
				for _, v := range values {
					reflect.ValueOf(&row).Elem().Field(i).Set(v)
					next = append(next, row)
				}
			}
			rows = next
			continue
		}
		require.Contains(t, f.fields, key, "say in the table of this test which rules read the field")
	}
	require.Len(t, f.fields, known, "the table has fields that are none")
	rnd := chance.Source(t)
	rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows[:min(len(rows), figure.Size(50, 100, len(rows), len(rows)))]
}

// checkKind checks one kind of rule, and returns how many of its fields are refused.
func (f reading[R]) checkKind(t *testing.T, g *api.Guard, rule R) (refused int) {
	all := rule
	for i, structure := 0, reflect.TypeFor[R](); i < structure.NumField(); i++ { // an enumeration's value may have no meaning together with another
		key := keyOf(structure.Field(i))
		field, ok := f.fields[key]
		if !ok {
			continue
		}
		v := trial.Field(reflect.ValueOf(&rule).Elem(), key)
		if field.say == nil && !field.isRead(rule) && !v.IsZero() {
			f.isRefused(t, g, rule, key)
			return 1
		}
	}
	if f.fits != nil && !f.fits(rule) {
		require.Error(t, g.LoadRules(f.set(rule)), "%+v", rule)
		return 0
	}
	f.goesRound(t, g, rule)
	f.goesThroughFiles(t, g)
	for key, field := range f.fields {
		if field.say == nil {
			continue
		}
		changed := rule
		field.say(&changed)
		if field.isRead(rule) {
			f.goesRound(t, g, changed)
			field.say(&all)
			continue
		}
		alone := rule
		trial.Field(reflect.ValueOf(&alone).Elem(), key).Set(trial.Field(reflect.ValueOf(&changed).Elem(), key))
		f.isRefused(t, g, alone, key)
		refused++
	}
	f.goesRound(t, g, all)
	f.goesThroughFiles(t, g)
	return refused
}

func (f field[R]) isRead(rule R) bool { return f.read == nil || f.read(rule) }

func (f reading[R]) set(rule R) (set rules.Set) {
	*f.in(&set) = []R{rule}
	return set
}

// isRefused checks that a rule is refused because of one field, and that nothing else changes.
func (f reading[R]) isRefused(t *testing.T, g *api.Guard, rule R, key string) {
	before := g.Rules()
	err := g.LoadRules(f.set(rule))
	var bad *spec.FieldError
	require.ErrorAs(t, err, &bad, "%+v", rule)
	require.Equal(t, key, bad.Field, "%+v", rule)
	require.Regexp(t, `^(has no meaning for|only goes with) .*remove it`, bad.Problem)
	require.Equal(t, before, g.Rules())

	file, err := f.set(rule).YAML()
	require.NoError(t, err)
	_, err = api.ParseRules("rules.yaml", file)
	var at *rules.FileError
	require.ErrorAs(t, err, &at, "%s", file)
	require.Regexp(t, `^\w+\[0\]\.`+key+"$", at.Path)
	require.Equal(t, bad.Problem, at.Problem)
	require.Positive(t, at.Line)
}

// goesRound checks that a rule can be loaded, that it is unchanged except for defaults in fields
// that it reads, and that the rules in force can be loaded again.
func (f reading[R]) goesRound(t *testing.T, g *api.Guard, rule R) {
	require.NoError(t, g.LoadRules(f.set(rule)), "%+v", rule)
	set := g.Rules()
	full := (*f.in(&set))[0]
	given, got := reflect.ValueOf(&rule).Elem(), reflect.ValueOf(&full).Elem()
	for i := range given.NumField() {
		key := keyOf(given.Type().Field(i))
		field, ok := f.fields[key]
		switch {
		case !given.Field(i).IsZero():
			require.Equal(t, given.Field(i).Interface(), got.Field(i).Interface(), "%s of %+v", key, rule)
		case ok && !field.isRead(rule):
			require.Zero(t, got.Field(i).Interface(), "%s has a default in %+v, which doesn't read it", key, full)
		}
	}
	require.NoError(t, g.LoadRules(g.Rules()), "%+v", full)
	require.Equal(t, set, g.Rules())
}

// goesThroughFiles checks that a rule in force can be loaded from a file, with its defaults.
func (f reading[R]) goesThroughFiles(t *testing.T, g *api.Guard) {
	set := g.Rules()
	for name, encode := range map[string]func() ([]byte, error){"rules.yaml": set.YAML, "rules.json": set.MarshalJSON} {
		file, err := encode()
		require.NoError(t, err)
		read, err := api.ParseRules(name, file)
		require.NoError(t, err, "%s", file)
		require.NoError(t, g.LoadRules(read))
		require.Equal(t, set, g.Rules())
	}
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

// valuesOf returns the values of an enumeration, or nil if t isn't one.
func valuesOf(t reflect.Type) (values []reflect.Value) {
	if t.Kind() != reflect.Uint8 {
		return nil
	}
	for i := range 256 {
		v := reflect.New(t).Elem()
		v.SetUint(uint64(i))
		if _, err := v.Interface().(encoding.TextMarshaler).MarshalText(); err != nil {
			break
		}
		values = append(values, v)
	}
	return values
}
