package sentinel

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/stat"
	"github.com/penstock-go/penstock/system"
)

// secondWindow is the default window of both Sentinels.
var secondWindow = stat.Shape{Interval: time.Second, Buckets: 2}

// JavaColdFactor is Java's default cold factor: the threshold of a cold resource is divided by it.
const JavaColdFactor = 3

// EveryCaller is the limitApp that stands for all callers.
const EveryCaller = flow.OriginDefault

func errCluster(on bool) error {
	if !on {
		return nil
	}
	return spec.BadField("clusterMode", "is true, but a cluster can't share gateway rules: write false for a limit of this process alone")
}

// JavaFlow is a FlowRule.
type JavaFlow struct {
	ID                ID      `yaml:"id,omitempty"`
	Resource          string  `yaml:"resource,omitempty"`
	LimitApp          string  `yaml:"limitApp,omitempty"`
	Regex             bool    `yaml:"regex,omitempty"`
	Grade             int     `yaml:"grade,omitempty"` // 0 calls in flight, 1 per second
	Count             float64 `yaml:"count"`
	Strategy          int     `yaml:"strategy,omitempty"` // 0 direct, 1 relate, 2 chain
	RefResource       string  `yaml:"refResource,omitempty"`
	ControlBehavior   int     `yaml:"controlBehavior,omitempty"` // 0 reject, 1 warm-up, 2 throttle, 3 both
	WarmUpPeriodSec   int     `yaml:"warmUpPeriodSec,omitempty"`
	MaxQueueingTimeMs int     `yaml:"maxQueueingTimeMs,omitempty"`
	ClusterMode       bool    `yaml:"clusterMode,omitempty"`

	ClusterConfig *JavaCluster `yaml:"clusterConfig,omitempty"` // only with ClusterMode
}

// JavaFlowUnset holds Java's defaults.
var JavaFlowUnset = JavaFlow{Grade: 1, WarmUpPeriodSec: 10, MaxQueueingTimeMs: 500}

// The meanings of the numbers of a FlowRule.
var (
	JavaMetrics   = []flow.Metric{flow.Concurrency, flow.QPS}
	JavaRelations = []flow.Relation{flow.Direct, flow.Associated, flow.Chain}
	JavaBehaviors = []flow.Behavior{flow.Reject, flow.WarmUp, flow.Throttle, flow.WarmUpThrottle}
)

// Queues reports whether the rule makes calls wait, if it limits their rate.
func (r JavaFlow) Queues() bool { return r.ControlBehavior == 2 || r.ControlBehavior == 3 }

// WarmsUp reports whether the rule warms up, if it limits the rate of calls.
func (r JavaFlow) WarmsUp() bool { return r.ControlBehavior == 1 || r.ControlBehavior == 3 }

// Check returns the reason for which Java drops the rule. For a rule on calls in flight Java
// ignores strategy and behavior.
func (r JavaFlow) Check() error {
	rate := r.Grade == 1
	var f first
	f.bad(blank(r.Resource), "resource", needsResource)
	f.bad(!(r.Count >= 0), "count", "is %v: use 0 or more", r.Count)
	f.bad(r.Grade != 0 && r.Grade != 1, "grade", "is %d: use 1 for calls per second, or 0 for calls in flight", r.Grade)
	f.bad(rate && r.Strategy != 0 && blank(r.RefResource), "refResource", "is required by strategy %d", r.Strategy)
	f.bad(rate && r.WarmsUp() && r.WarmUpPeriodSec <= 0, "warmUpPeriodSec", "is %d: use 1 second or more", r.WarmUpPeriodSec)
	f.bad(rate && r.Queues() && r.MaxQueueingTimeMs <= 0, "maxQueueingTimeMs", "is %d: use 1 millisecond or more", r.MaxQueueingTimeMs)
	return f.err
}

// Native translates the rule, with Java's default settings.
func (r JavaFlow) Native() ([]flow.Rule, []Warning, error) {
	n, err := r.In(secondWindow, JavaColdFactor)
	var warnings []Warning
	if strings.Contains(r.LimitApp, ",") {
		warnings = append(warnings, Warning{"one-caller", "limitApp",
			"is read as one caller's name, as in Sentinel, which splits at commas only in authority rules: write a rule for each caller"})
	}
	return []flow.Rule{n}, warnings, err
}

// In translates the rule for a Java with another second window and cold factor.
//
// A Java threshold is per second regardless of the window; a native threshold is per interval. A Java
// throttle has no window, so its threshold stays per second. A rule on calls in flight ignores its
// behavior.
func (r JavaFlow) In(shape stat.Shape, coldFactor int) (n flow.Rule, err error) {
	n = flow.Rule{ID: string(r.ID), Resource: r.Resource, Match: matchOf(r.Regex), Threshold: r.Count}
	if r.ClusterMode {
		if n.ID, n.Cluster, err = r.ClusterConfig.shared(true); err != nil {
			return n, err
		}
		shape.Interval, shape.Buckets = r.ClusterConfig.window()
	}
	if !blank(r.LimitApp) && r.LimitApp != EveryCaller {
		n.Origin = r.LimitApp
	}
	if n.Metric, err = meaning("grade", r.Grade, JavaMetrics); err != nil {
		return n, err
	}
	if n.Relation, err = meaning("strategy", r.Strategy, JavaRelations); err != nil {
		return n, err
	}
	if n.Relation != flow.Direct {
		n.Ref = r.RefResource
	}
	if n.Metric == flow.Concurrency {
		return n, nil
	}
	if n.Behavior, err = meaning("controlBehavior", r.ControlBehavior, JavaBehaviors); err != nil {
		return n, err
	}
	if r.Queues() {
		n.MaxWait = period(r.MaxQueueingTimeMs, time.Millisecond)
	} else {
		n.Interval, n.Buckets, n.Window = unlessDefault(shape.Interval), shape.Buckets, flow.Ring
		n.Threshold = r.Count * shape.Interval.Seconds()
	}
	if r.WarmsUp() {
		n.WarmUpPeriod = period(r.WarmUpPeriodSec, time.Second)
		n.ColdFactor = coldFactor
	}
	return n, nil
}

// JavaBreaker is a DegradeRule.
type JavaBreaker struct {
	ID                 ID      `yaml:"id,omitempty"`
	Resource           string  `yaml:"resource,omitempty"`
	LimitApp           string  `yaml:"limitApp,omitempty"`
	Regex              bool    `yaml:"regex,omitempty"`
	Grade              int     `yaml:"grade,omitempty"` // 0 slow ratio, 1 error ratio, 2 error count
	Count              float64 `yaml:"count"`           // response time in ms, ratio, or number
	SlowRatioThreshold float64 `yaml:"slowRatioThreshold,omitempty"`
	TimeWindow         int     `yaml:"timeWindow,omitempty"` // seconds
	MinRequestAmount   int     `yaml:"minRequestAmount,omitempty"`
	StatIntervalMs     int     `yaml:"statIntervalMs,omitempty"`
}

// JavaBreakerUnset holds Java's defaults.
var JavaBreakerUnset = JavaBreaker{SlowRatioThreshold: 1, MinRequestAmount: 5, StatIntervalMs: 1000}

// JavaStrategies are the meanings of a DegradeRule's grades.
var JavaStrategies = []breaker.Strategy{breaker.SlowRatio, breaker.ErrorRatio, breaker.ErrorCount}

// Check returns the reason for which Java drops the rule.
func (r JavaBreaker) Check() error {
	slow := r.Grade == 0
	var f first
	f.bad(blank(r.Resource), "resource", needsResource)
	f.bad(r.TimeWindow <= 0, "timeWindow", "is %d: use 1 second or more", r.TimeWindow)
	f.bad(r.MinRequestAmount <= 0, "minRequestAmount", "is %d: use 1 or more", r.MinRequestAmount)
	f.bad(r.StatIntervalMs <= 0, "statIntervalMs", "is %d: use 1 millisecond or more", r.StatIntervalMs)
	f.bad(slow && !(r.SlowRatioThreshold >= 0 && r.SlowRatioThreshold <= 1), "slowRatioThreshold", "is %v: use a share of the calls, from 0 to 1", r.SlowRatioThreshold)
	f.bad(r.Grade == 1 && r.Count > 1, "count", "is %v: use a share of the calls, from 0 to 1", r.Count)
	f.bad(!(r.Count >= 0), "count", "is %v: use 0 or more", r.Count)
	return f.err
}

// Native translates the rule. Java counts in one bucket, and opens above the threshold; this library
// opens at the threshold. A share of 1 is never exceeded, so an error ratio of 1 turns the rule off;
// a slow ratio of 1 opens in Java too. Java compares response times in whole milliseconds.
func (r JavaBreaker) Native() (rules []breaker.Rule, warnings []Warning, err error) {
	n := breaker.Rule{
		ID: string(r.ID), Resource: r.Resource, Match: matchOf(r.Regex), Buckets: 1,
		MinCalls: r.MinRequestAmount,
		Interval: period(r.StatIntervalMs, time.Millisecond),
		Recovery: period(r.TimeWindow, time.Second),
	}
	n.ProbeTimeout = probeTimeout(n.Recovery)
	above := func(ratio float64) float64 { return math.Nextafter(ratio, 2) }
	if n.Strategy, err = meaning("grade", r.Grade, JavaStrategies); err != nil {
		return nil, nil, err
	}
	switch n.Strategy {
	case breaker.SlowRatio:
		n.SlowRT = max(1, period(int(math.Round(min(r.Count, math.MaxInt32))), time.Millisecond))
		n.Threshold = min(1, above(r.SlowRatioThreshold))
	case breaker.ErrorRatio:
		n.Threshold = above(r.Count)
		if r.Count >= 1 {
			n.Threshold, n.Mode = 1, spec.Off
			warnings = append(warnings, Warning{"never-opens", "count",
				"is 1, and Sentinel opens only above it, so never: the rule is read as `mode: off`; write a smaller ratio"})
		}
	case breaker.ErrorCount:
		n.Threshold = math.Floor(r.Count) + 1
	}
	return []breaker.Rule{n}, append(warnings, noCallers(r.LimitApp)...), nil
}

// noCallers warns of a caller that Sentinel ignores.
func noCallers(limitApp string) []Warning {
	if blank(limitApp) || limitApp == EveryCaller {
		return nil
	}
	return []Warning{{"no-callers", "limitApp", "is ignored: the rule is for all callers, as in Sentinel, which ignores it in rules of this kind"}}
}

// JavaSystem is a SystemRule. Negative fields are not set.
type JavaSystem struct {
	ID                ID      `yaml:"id,omitempty"`
	HighestSystemLoad float64 `yaml:"highestSystemLoad,omitempty"`
	HighestCPUUsage   float64 `yaml:"highestCpuUsage,omitempty"`
	QPS               float64 `yaml:"qps,omitempty"`
	AvgRT             float64 `yaml:"avgRt,omitempty"` // ms
	MaxThread         float64 `yaml:"maxThread,omitempty"`
}

// JavaSystemUnset holds Java's defaults.
var JavaSystemUnset = JavaSystem{HighestSystemLoad: -1, HighestCPUUsage: -1, QPS: -1, AvgRT: -1, MaxThread: -1}

// JavaSystemField is one threshold of a SystemRule, with its metric.
type JavaSystemField struct {
	Name   string
	Metric system.Metric
	of     func(JavaSystem) float64
}

// JavaSystemFields are the thresholds, in the order in which Java checks them.
var JavaSystemFields = []JavaSystemField{
	{"qps", system.QPS, func(r JavaSystem) float64 { return r.QPS }},
	{"maxThread", system.Concurrency, func(r JavaSystem) float64 { return r.MaxThread }},
	{"avgRt", system.RT, func(r JavaSystem) float64 { return r.AvgRT }},
	{"highestSystemLoad", system.Load, func(r JavaSystem) float64 { return r.HighestSystemLoad }},
	{"highestCpuUsage", system.CPU, func(r JavaSystem) float64 { return r.HighestCPUUsage }},
}

// Check returns an error if the rule has no threshold: in Java such a rule does nothing, and as the
// last rule of a list it turns all of them off.
func (r JavaSystem) Check() error {
	if rules := r.In(secondWindow); len(rules) == 0 {
		return spec.BadField("qps", "or another threshold is required: without one the rule limits nothing, and as the last rule it turns all system rules off in Sentinel; remove the rule")
	}
	return nil
}

// Native translates the rule, with Java's default settings.
func (r JavaSystem) Native() ([]system.Rule, []Warning, error) {
	rules := r.In(secondWindow)
	if len(rules) == 1 {
		rules[0].ID = string(r.ID)
	}
	return rules, nil, nil
}

// In translates the rule for a Java with another second window, into one rule for each threshold.
func (r JavaSystem) In(shape stat.Shape) (rules []system.Rule) {
	for _, f := range JavaSystemFields {
		v := f.of(r)
		if v < 0 {
			continue
		}
		n := system.Rule{Metric: f.Metric, Threshold: v}
		switch f.Metric {
		case system.QPS:
			n.Interval, n.Buckets = unlessDefault(shape.Interval), shape.Buckets
			n.Threshold *= shape.Interval.Seconds()
		case system.RT:
			n.Interval, n.Buckets = unlessDefault(shape.Interval), shape.Buckets
			n.Threshold, n.MaxRT = 0, max(1, milliseconds(v))
		case system.Load:
			n.Strategy = system.BBR
		case system.CPU:
			n.Strategy = system.Gate
		}
		rules = append(rules, n)
	}
	return rules
}

// milliseconds converts a number with a fraction. A number that is out of range stays out of range.
func milliseconds(ms float64) time.Duration {
	return time.Duration(math.Round(min(ms, 1e12) * float64(time.Millisecond)))
}

// JavaAuthority is an AuthorityRule.
type JavaAuthority struct {
	ID       ID     `yaml:"id,omitempty"`
	Resource string `yaml:"resource,omitempty"`
	Regex    bool   `yaml:"regex,omitempty"`
	LimitApp string `yaml:"limitApp,omitempty"` // callers, separated by commas
	Strategy int    `yaml:"strategy,omitempty"` // 0 these only, 1 all but these
}

// JavaLists are the meanings of an AuthorityRule's strategies.
var JavaLists = []authority.List{authority.Allow, authority.Deny}

// Check returns the reason for which Java drops the rule.
func (r JavaAuthority) Check() error {
	var f first
	f.bad(blank(r.Resource), "resource", needsResource)
	f.bad(blank(r.LimitApp), "limitApp", "is required: name the callers, separated by commas")
	return f.err
}

// Native translates the rule: callers without an origin pass, and blanks around names are dropped.
func (r JavaAuthority) Native() ([]authority.Rule, []Warning, error) {
	list, err := meaning("strategy", r.Strategy, JavaLists)
	n := authority.Rule{
		ID: string(r.ID), Resource: r.Resource, Match: matchOf(r.Regex), List: list, AllowAnonymous: list == authority.Allow,
	}
	for _, name := range r.Callers() {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(n.Origins, name) {
			n.Origins = append(n.Origins, name)
		}
	}
	return []authority.Rule{n}, nil, err
}

// Callers returns the names as Java reads them, including blanks.
func (r JavaAuthority) Callers() []string { return strings.Split(r.LimitApp, ",") }
