package sentinel

import (
	"cmp"
	"math"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/system"
)

// GoFlow is a flow.Rule.
type GoFlow struct {
	ID                     ID      `yaml:"id,omitempty"`
	Resource               string  `yaml:"resource,omitempty"`
	Regex                  bool    `yaml:"regex,omitempty"`
	TokenCalculateStrategy int     `yaml:"tokenCalculateStrategy,omitempty"` // 0 fixed, 1 warm-up, 2 by memory
	ControlBehavior        int     `yaml:"controlBehavior,omitempty"`        // 0 reject, 1 throttle
	Threshold              float64 `yaml:"threshold"`
	RelationStrategy       int     `yaml:"relationStrategy,omitempty"` // 0 direct, 1 associated
	RefResource            string  `yaml:"refResource,omitempty"`
	MaxQueueingTimeMs      int     `yaml:"maxQueueingTimeMs,omitempty"`
	WarmUpPeriodSec        int     `yaml:"warmUpPeriodSec,omitempty"`
	WarmUpColdFactor       int     `yaml:"warmUpColdFactor,omitempty"` // 0 is 3
	StatIntervalInMs       int     `yaml:"statIntervalInMs,omitempty"` // 0 is 1000
	LowMemUsageThreshold   float64 `yaml:"lowMemUsageThreshold,omitempty"`
	HighMemUsageThreshold  float64 `yaml:"highMemUsageThreshold,omitempty"`
	MemLowWaterMarkBytes   int     `yaml:"memLowWaterMarkBytes,omitempty"`
	MemHighWaterMarkBytes  int     `yaml:"memHighWaterMarkBytes,omitempty"`
}

// The values of tokenCalculateStrategy.
const (
	goFixed = iota
	goWarmUp
	goMemory
)

var (
	goRelations = []flow.Relation{flow.Direct, flow.Associated}
	goBehaviors = [][]flow.Behavior{
		goFixed:  {flow.Reject, flow.Throttle},
		goWarmUp: {flow.WarmUp, flow.WarmUpThrottle},
		goMemory: {flow.Reject, flow.Throttle},
	}
)

// MayOmit reports whether a rule file may leave out a key that other rules need.
func (r GoFlow) MayOmit(key string) bool {
	return key == "threshold" && r.TokenCalculateStrategy == goMemory
}

// Check returns the reason for which sentinel-golang drops the rule, or can't read it.
func (r GoFlow) Check() error {
	warmsUp := r.TokenCalculateStrategy == goWarmUp
	var f first
	f.bad(r.Resource == "", "resource", needsResource)
	f.bad(!(r.Threshold >= 0), "threshold", "is %v: use 0 or more", r.Threshold)
	f.bad(r.RelationStrategy == 1 && r.RefResource == "", "refResource", "is required by relationStrategy 1")
	f.bad(warmsUp && r.WarmUpPeriodSec <= 0, "warmUpPeriodSec", "is %d: use 1 second or more", r.WarmUpPeriodSec)
	f.bad(warmsUp && r.WarmUpColdFactor == 1, "warmUpColdFactor", "is 1: use 2 or more, or 0 for 3")
	f.bad(r.StatIntervalInMs < 0, "statIntervalInMs", "is %d: use a number of milliseconds, or 0 for 1000", r.StatIntervalInMs)
	return f.err
}

// Native translates the rule. A threshold is per interval in both.
func (r GoFlow) Native() (rules []flow.Rule, warnings []Warning, err error) {
	n := flow.Rule{ID: string(r.ID), Resource: r.Resource, Match: matchOf(r.Regex), Threshold: r.Threshold}
	behaviors, err := meaning("tokenCalculateStrategy", r.TokenCalculateStrategy, goBehaviors)
	if err != nil {
		return nil, nil, err
	}
	if n.Behavior, err = meaning("controlBehavior", r.ControlBehavior, behaviors); err != nil {
		return nil, nil, err
	}
	if n.Relation, err = meaning("relationStrategy", r.RelationStrategy, goRelations); err != nil {
		return nil, nil, err
	}
	if n.Relation != flow.Direct {
		n.Ref = r.RefResource
	}
	ms := cmp.Or(r.StatIntervalInMs, 1000)
	n.Interval = unlessDefault(period(ms, time.Millisecond))
	if r.ControlBehavior == 0 {
		n.Buckets, n.Window = goBuckets(ms), flow.Ring
	} else {
		n.MaxWait = patience(r.MaxQueueingTimeMs)
	}
	switch r.TokenCalculateStrategy {
	case goWarmUp:
		n.WarmUpPeriod, n.ColdFactor = period(r.WarmUpPeriodSec, time.Second), cmp.Or(r.WarmUpColdFactor, 3)
		if ms != 1000 {
			warnings = append(warnings, Warning{"warm-up-interval", "statIntervalInMs",
				"applies to the whole warm-up here; Sentinel warms up by calls per second, and compares the result with calls per interval"})
		}
	case goMemory:
		n.Threshold, n.MemoryThreshold = r.LowMemUsageThreshold, r.HighMemUsageThreshold
		n.LowMemory, n.HighMemory = flow.Bytes(int64(r.MemLowWaterMarkBytes)), flow.Bytes(int64(r.MemHighWaterMarkBytes))
	}
	if n.Behavior == flow.Throttle && n.Threshold > 0 && n.Threshold < 1 {
		warnings = append(warnings, Warning{"slow-throttle", "threshold",
			"is less than one call per interval: here calls pass at that rate; Sentinel rejects all of them"})
	}
	return []flow.Rule{n}, warnings, nil
}

// goBuckets returns the number of buckets that sentinel-golang uses for an interval: its half-second
// buckets of the last ten seconds if they fit the interval, otherwise a single one.
func goBuckets(intervalMs int) int {
	const width, all = 500, 10_000
	if intervalMs%width == 0 && intervalMs <= all {
		return intervalMs / width
	}
	return 1
}

// GoBreaker is a circuitbreaker.Rule.
type GoBreaker struct {
	ID                           ID      `yaml:"id,omitempty"`
	Resource                     string  `yaml:"resource,omitempty"`
	Strategy                     int     `yaml:"strategy,omitempty"` // 0 slow ratio, 1 error ratio, 2 error count
	RetryTimeoutMs               int     `yaml:"retryTimeoutMs,omitempty"`
	MinRequestAmount             int     `yaml:"minRequestAmount,omitempty"`
	StatIntervalMs               int     `yaml:"statIntervalMs,omitempty"`
	StatSlidingWindowBucketCount int     `yaml:"statSlidingWindowBucketCount,omitempty"` // 0 is 1
	MaxAllowedRtMs               int     `yaml:"maxAllowedRtMs,omitempty"`
	Threshold                    float64 `yaml:"threshold"`
	ProbeNum                     int     `yaml:"probeNum,omitempty"` // 0 is 1
}

var goStrategies = []breaker.Strategy{breaker.SlowRatio, breaker.ErrorRatio, breaker.ErrorCount}

// Check returns the reason for which sentinel-golang drops the rule, or can't read it.
func (r GoBreaker) Check() error {
	ratio := r.Strategy < 2
	var f first
	f.bad(r.Resource == "", "resource", needsResource)
	f.bad(r.RetryTimeoutMs <= 0, "retryTimeoutMs", "is %d: use 1 millisecond or more", r.RetryTimeoutMs)
	f.bad(r.StatIntervalMs <= 0, "statIntervalMs", "is %d: use 1 millisecond or more", r.StatIntervalMs)
	f.bad(r.MinRequestAmount < 0, "minRequestAmount", "is %d: use 0 or more", r.MinRequestAmount)
	f.bad(r.StatSlidingWindowBucketCount < 0, "statSlidingWindowBucketCount", "is %d: use 0 or more", r.StatSlidingWindowBucketCount)
	f.bad(r.MaxAllowedRtMs < 0, "maxAllowedRtMs", "is %d: use 0 milliseconds or more", r.MaxAllowedRtMs)
	f.bad(r.ProbeNum < 0, "probeNum", "is %d: use 0 or more", r.ProbeNum)
	f.bad(!(r.Threshold >= 0) || ratio && r.Threshold > 1, "threshold", "is %v: use a share of the calls from 0 to 1, or a number of calls for strategy 2", r.Threshold)
	return f.err
}

// Native translates the rule. Both open at the threshold.
func (r GoBreaker) Native() (rules []breaker.Rule, warnings []Warning, err error) {
	n := breaker.Rule{
		ID: string(r.ID), Resource: r.Resource, Threshold: r.Threshold,
		MinCalls: max(1, r.MinRequestAmount),
		Interval: period(r.StatIntervalMs, time.Millisecond),
		Buckets:  max(1, r.StatSlidingWindowBucketCount),
		Recovery: period(r.RetryTimeoutMs, time.Millisecond),
		Probes:   r.ProbeNum,
	}
	n.ProbeTimeout = probeTimeout(n.Recovery)
	if n.Strategy, err = meaning("strategy", r.Strategy, goStrategies); err != nil {
		return nil, nil, err
	}
	switch n.Strategy {
	case breaker.SlowRatio:
		n.SlowRT = max(1, period(r.MaxAllowedRtMs, time.Millisecond))
	case breaker.ErrorCount:
		n.Threshold = math.Floor(r.Threshold)
	}
	if r.StatIntervalMs%n.Buckets != 0 {
		n.Buckets = 1
		warnings = append(warnings, Warning{"one-bucket", "statSlidingWindowBucketCount", "is read as 1, as in Sentinel, since it does not divide statIntervalMs"})
	}
	return []breaker.Rule{n}, warnings, nil
}

// GoHotspot is a hotspot.Rule.
type GoHotspot struct {
	ID                ID       `yaml:"id,omitempty"`
	Resource          string   `yaml:"resource,omitempty"`
	MetricType        int      `yaml:"metricType,omitempty"`      // 0 calls in flight, 1 per duration
	ControlBehavior   int      `yaml:"controlBehavior,omitempty"` // 0 reject, 1 throttle
	ParamIndex        int      `yaml:"paramIndex,omitempty"`
	ParamKey          string   `yaml:"paramKey,omitempty"`
	Threshold         float64  `yaml:"threshold"`
	MaxQueueingTimeMs int      `yaml:"maxQueueingTimeMs,omitempty"`
	BurstCount        int      `yaml:"burstCount,omitempty"`
	DurationInSec     int      `yaml:"durationInSec,omitempty"`
	ParamsMaxCapacity int      `yaml:"paramsMaxCapacity,omitempty"`
	SpecificItems     []GoItem `yaml:"specificItems,omitempty"`
}

// GoItem is a value with its own limit, in the form of sentinel-golang's datasources.
type GoItem struct {
	ValKind   int     `yaml:"valKind,omitempty"` // 0 whole number, 1 text, 2 boolean, 3 decimal
	ValStr    Text    `yaml:"valStr"`
	Threshold float64 `yaml:"threshold"`
}

var (
	goHotspotMetrics   = []hotspot.Metric{hotspot.Concurrency, hotspot.QPS}
	goHotspotBehaviors = []hotspot.Behavior{hotspot.Reject, hotspot.Throttle}
	goKinds            = []func(string) (any, error){wholeNumber, text, boolean, decimal}
)

func text(s string) (any, error) { return s, nil }

// Check returns the reason for which sentinel-golang drops the rule.
func (r GoHotspot) Check() error {
	var f first
	f.bad(r.Resource == "", "resource", needsResource)
	f.bad(!(r.Threshold >= 0), "threshold", "is %v: use 0 or more", r.Threshold)
	f.bad(r.MetricType == 1 && r.DurationInSec <= 0, "durationInSec", "is %d: use 1 second or more", r.DurationInSec)
	f.bad(r.ParamKey != "" && r.ParamIndex != 0, "paramKey", "conflicts with paramIndex %d: a rule uses one argument or one attachment", r.ParamIndex)
	return f.err
}

// Native translates the rule. In sentinel-golang every threshold is a whole number.
func (r GoHotspot) Native() (rules []hotspot.Rule, warnings []Warning, err error) {
	n := hotspot.Rule{ID: string(r.ID), Resource: r.Resource, Param: r.ParamKey, Threshold: r.Threshold, MaxValues: r.ParamsMaxCapacity}
	if r.ParamKey == "" {
		n.Index = hotspot.At(r.ParamIndex)
	}
	if r.Threshold != math.Trunc(r.Threshold) {
		return nil, nil, spec.BadField("threshold", "is %v: Sentinel reads whole numbers only", r.Threshold)
	}
	if n.Metric, err = meaning("metricType", r.MetricType, goHotspotMetrics); err != nil {
		return nil, nil, err
	}
	if n.Metric == hotspot.QPS {
		n.Interval = unlessDefault(period(r.DurationInSec, time.Second))
		if n.Behavior, err = meaning("controlBehavior", r.ControlBehavior, goHotspotBehaviors); err != nil {
			return nil, nil, err
		}
		if n.Behavior == hotspot.Throttle {
			n.MaxWait = patience(r.MaxQueueingTimeMs)
		} else {
			n.Window, n.Burst = hotspot.Refill, r.BurstCount
		}
	}
	for i, item := range r.SpecificItems {
		parse, err := meaning("specificItems", item.ValKind, goKinds)
		if err != nil {
			return nil, nil, spec.BadField("specificItems", "number %d: valKind is %d: use 0 for a whole number, 1 for a string, 2 for true or false, 3 for a decimal number", i, item.ValKind)
		}
		v, err := parse(string(item.ValStr))
		if err != nil {
			return nil, nil, spec.BadField("specificItems", "number %d: %q is not of valKind %d", i, item.ValStr, item.ValKind)
		}
		n.Exceptions = append(n.Exceptions, hotspot.Exception{Value: hotspot.ValueOf(v), Threshold: item.Threshold})
	}
	return []hotspot.Rule{n}, warnings, nil
}

// GoSystem is a system.Rule.
type GoSystem struct {
	ID           ID      `yaml:"id,omitempty"`
	MetricType   int     `yaml:"metricType,omitempty"`
	TriggerCount float64 `yaml:"triggerCount"`
	Strategy     int     `yaml:"strategy,omitempty"` // 1 BBR, otherwise none
}

var goSystemMetrics = []system.Metric{system.Load, system.RT, system.Concurrency, system.QPS, system.CPU}

// Check returns the reason for which sentinel-golang drops the rule.
func (r GoSystem) Check() error {
	var f first
	f.bad(!(r.TriggerCount >= 0), "triggerCount", "is %v: use 0 or more", r.TriggerCount)
	f.bad(r.Strategy < -1 || r.Strategy > 1, "strategy", "is %d: use 1 for BBR, or -1 for none", r.Strategy)
	return f.err
}

// Native translates the rule. sentinel-golang rejects a call once the trigger is reached without it;
// here the limit includes the call, so both admit the same number.
func (r GoSystem) Native() (rules []system.Rule, warnings []Warning, err error) {
	n := system.Rule{ID: string(r.ID), Threshold: r.TriggerCount}
	if n.Metric, err = meaning("metricType", r.MetricType, goSystemMetrics); err != nil {
		return nil, nil, err
	}
	switch n.Metric {
	case system.QPS:
		n.Threshold, n.Buckets = math.Ceil(r.TriggerCount), secondWindow.Buckets
	case system.Concurrency:
		n.Threshold = math.Ceil(r.TriggerCount)
	case system.RT:
		n.Threshold, n.MaxRT, n.Buckets = 0, max(1, milliseconds(r.TriggerCount)), secondWindow.Buckets
	default:
		n.Strategy = system.Gate
		if r.Strategy == 1 {
			n.Strategy = system.BBR
		}
	}
	return []system.Rule{n}, nil, nil
}

// GoIsolation is an isolation.Rule.
type GoIsolation struct {
	ID         ID     `yaml:"id,omitempty"`
	Resource   string `yaml:"resource,omitempty"`
	Regex      bool   `yaml:"regex,omitempty"`
	MetricType int    `yaml:"metricType,omitempty"` // 0 calls in flight, the only one
	Threshold  int    `yaml:"threshold"`
}

// Check returns the reason for which sentinel-golang drops the rule.
func (r GoIsolation) Check() error {
	var f first
	f.bad(r.Resource == "", "resource", needsResource)
	f.bad(r.MetricType != 0, "metricType", "is %d: use 0, for calls in flight", r.MetricType)
	f.bad(r.Threshold <= 0, "threshold", "is %d: use 1 or more", r.Threshold)
	return f.err
}

// Native translates the rule.
func (r GoIsolation) Native() ([]isolation.Rule, []Warning, error) {
	return []isolation.Rule{{ID: string(r.ID), Resource: r.Resource, Match: matchOf(r.Regex), Threshold: r.Threshold}}, nil, nil
}
