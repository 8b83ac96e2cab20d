package sentinel

import (
	"math"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
)

// JavaHotspot is a ParamFlowRule.
type JavaHotspot struct {
	ID                ID         `yaml:"id,omitempty"`
	Resource          string     `yaml:"resource,omitempty"`
	LimitApp          string     `yaml:"limitApp,omitempty"`
	Regex             bool       `yaml:"regex,omitempty"`
	Grade             int        `yaml:"grade,omitempty"` // 0 calls in flight, 1 per second
	ParamIdx          int        `yaml:"paramIdx"`
	Count             float64    `yaml:"count"`
	ControlBehavior   int        `yaml:"controlBehavior,omitempty"` // 2 throttle, otherwise reject
	MaxQueueingTimeMs int        `yaml:"maxQueueingTimeMs,omitempty"`
	BurstCount        int        `yaml:"burstCount,omitempty"`
	DurationInSec     int        `yaml:"durationInSec,omitempty"`
	ParamFlowItemList []JavaItem `yaml:"paramFlowItemList,omitempty"`
	ClusterMode       bool       `yaml:"clusterMode,omitempty"`

	ClusterConfig *JavaCluster `yaml:"clusterConfig,omitempty"` // only with ClusterMode
}

// JavaItem is a ParamFlowItem: a value with its own limit.
type JavaItem struct {
	Object    Text   `yaml:"object"`
	ClassType string `yaml:"classType,omitempty"` // such as int or java.lang.Integer; else text
	Count     int    `yaml:"count"`
}

// JavaHotspotUnset holds Java's defaults.
var JavaHotspotUnset = JavaHotspot{Grade: 1, DurationInSec: 1}

// JavaHotspotMetrics are the meanings of a ParamFlowRule's grades.
var JavaHotspotMetrics = []hotspot.Metric{hotspot.Concurrency, hotspot.QPS}

// JavaThrottle is the ControlBehavior of a rule that makes calls wait.
const JavaThrottle = 2

// Check returns the reason for which Java drops the rule.
func (r JavaHotspot) Check() error {
	var f first
	f.bad(blank(r.Resource), "resource", needsResource)
	f.bad(!(r.Count >= 0), "count", "is %v: use 0 or more", r.Count)
	f.bad(r.BurstCount < 0, "burstCount", "is %d: use 0 or more", r.BurstCount)
	f.bad(r.DurationInSec <= 0, "durationInSec", "is %d: use 1 second or more", r.DurationInSec)
	return f.err
}

// Native translates the rule. In Java every threshold is a whole number.
func (r JavaHotspot) Native() (rules []hotspot.Rule, warnings []Warning, err error) {
	n := hotspot.Rule{
		ID: string(r.ID), Resource: r.Resource, Match: matchOf(r.Regex), Index: hotspot.At(r.ParamIdx), Threshold: math.Trunc(r.Count),
	}
	if r.ClusterMode {
		if n.ID, n.Cluster, err = r.ClusterConfig.shared(false); err != nil {
			return nil, nil, err
		}
	}
	warnings = fraction(r.Count)
	if n.Metric, err = meaning("grade", r.Grade, JavaHotspotMetrics); err != nil {
		return nil, nil, err
	}
	if n.Metric == hotspot.QPS {
		n.Interval = unlessDefault(period(r.DurationInSec, time.Second))
		switch r.ControlBehavior {
		case JavaThrottle:
			n.Behavior, n.MaxWait = hotspot.Throttle, patience(r.MaxQueueingTimeMs)
		default:
			n.Burst = r.BurstCount
			if !r.ClusterMode {
				n.Window = hotspot.Refill
			}
			if r.ControlBehavior != 0 {
				warnings = append(warnings, noWarmUp())
			}
		}
	}
	for i, item := range r.ParamFlowItemList {
		v, err := item.value()
		if err != nil {
			return nil, nil, spec.BadField("paramFlowItemList", "number %d: %q is not of type %s", i, item.Object, item.ClassType)
		}
		n.Exceptions = append(n.Exceptions, hotspot.Exception{Value: hotspot.ValueOf(v), Threshold: float64(item.Count)})
	}
	return []hotspot.Rule{n}, append(warnings, noCallers(r.LimitApp)...), nil
}

// fraction warns of a threshold that Java truncates to a whole number.
func fraction(count float64) []Warning {
	if math.Trunc(count) == count {
		return nil
	}
	return []Warning{{"whole-numbers", "count", "has a fraction, which is dropped, as in Sentinel"}}
}

func noWarmUp() Warning {
	return Warning{"no-warm-up", "controlBehavior",
		"is read as 0, reject, as in Sentinel: hotspot rules know only 0 and 2, throttle"}
}

// javaTypes parses values, by Java's names of their types.
var javaTypes = map[string]func(string) (any, error){
	"int": wholeNumber, "java.lang.Integer": wholeNumber,
	"long": wholeNumber, "java.lang.Long": wholeNumber,
	"short": wholeNumber, "java.lang.Short": wholeNumber,
	"byte": wholeNumber, "java.lang.Byte": wholeNumber,
	"double": decimal, "java.lang.Double": decimal,
	"float": decimal, "java.lang.Float": decimal,
	"boolean": boolean, "java.lang.Boolean": boolean,
}

func (i JavaItem) value() (any, error) {
	if parse := javaTypes[i.ClassType]; parse != nil {
		return parse(string(i.Object))
	}
	return string(i.Object), nil
}

func wholeNumber(s string) (any, error) { return strconv.ParseInt(s, 10, 64) }
func decimal(s string) (any, error)     { return strconv.ParseFloat(s, 64) }
func boolean(s string) (any, error)     { return strconv.ParseBool(s) }
