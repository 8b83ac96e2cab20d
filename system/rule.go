package system

import (
	"cmp"
	"math"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/stat"
)

// Rule limits all inbound calls by one trigger. Metric and Threshold are enough or, for RT, Metric
// and MaxRT:
//
//	system.Rule{Metric: system.CPU, Threshold: 0.8}
//	system.Rule{Metric: system.QPS, Threshold: 5000}
//	system.Rule{Metric: system.RT, MaxRT: 200 * time.Millisecond}
//
// A call must pass every rule. Setting a field that no rule of this metric reads is an error; the
// zero value leaves a field unset.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields.
	ID string `yaml:"id,omitempty"`
	// Metric is the trigger. Required.
	Metric Metric `yaml:"metric"`
	// Threshold is the value above which the rule refuses: units per Interval for QPS, or units in
	// flight for Concurrency, where 0 refuses every call; the load average for Load, above 0; the
	// share of the CPU time for CPU, above 0 and below 1. RT has MaxRT instead.
	Threshold float64 `yaml:"threshold"`
	// MaxRT is the mean response time above which an RT rule refuses. Up to 24 h.
	MaxRT time.Duration `yaml:"maxRT,omitempty"`
	// Interval is the period of a QPS threshold, and the period over which an RT rule takes the
	// mean. 10 ms to 24 h; 0 means one second. Only with QPS and RT.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Buckets divide Interval; the counts of a bucket expire together. 0 means 2 for an interval of
	// one second that isn't Strict, otherwise 10. Only with QPS and RT.
	Buckets int `yaml:"buckets,omitempty"`
	// Strict makes a QPS limit hold in every real interval, not only in intervals that begin with a
	// bucket (see [stat.Shape]). Only with QPS.
	Strict bool `yaml:"strict,omitempty"`
	// Strategy decides what happens above a threshold of Load or CPU. The zero value is Steady.
	Strategy Strategy `yaml:"strategy,omitempty"`
	// Refusal is the response that adapters give to refused calls. The zero value means that of the
	// family.
	Refusal spec.Response `yaml:"refusal,omitempty"`
	// Shed decides which calls are refused first. The zero value is api.ShedNone. With api.ShedLevels
	// each level of criticality leaves units free for the levels above; see api.Criticality. Only with
	// Concurrency, and with Load and CPU whose strategy is Steady.
	Shed spec.Shed `yaml:"shed,omitempty"`
	// Floors keep levels from starving. Only with Shed.
	Floors spec.Floors `yaml:"floors,omitempty"`
	// Mode determines whether the rule is enforced. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// The ranges of a rule's fields.
const (
	MinInterval  = stat.MinInterval
	MaxInterval  = stat.MaxInterval
	MaxMaxRT     = 24 * time.Hour
	MaxThreshold = 1e15
)

// Normalized returns the rule with defaults filled in for every field that it reads. It returns a
// [spec.FieldError] for the first invalid field.
func (r Rule) Normalized() (Rule, error) {
	if err := cmp.Or(r.checkEnums(), r.Refusal.Check()); err != nil {
		return r, err
	}
	if r.Metric.windowed() {
		r.Interval = cmp.Or(r.Interval, time.Second)
		if r.Buckets == 0 {
			r.Buckets = 10
			if r.Interval == time.Second && !r.Strict {
				r.Buckets = 2
			}
		}
	}
	if err := r.checkNumbers(); err != nil {
		return r, err
	}
	r.ID = cmp.Or(r.ID, r.Like())
	return r, nil
}

func (r Rule) checkEnums() error {
	switch {
	case r.Metric == None:
		return spec.BadField("metric", "is required, a rule without a trigger can never act: use load, cpu, rt, concurrency or qps")
	case !metricNames.Has(r.Metric):
		return spec.BadField("metric", "%d is unknown: use system.Load, system.CPU, system.RT, system.Concurrency or system.QPS", r.Metric)
	case !strategyNames.Has(r.Strategy):
		return spec.BadField("strategy", "%d is unknown: use system.Steady, system.BBR or system.Gate", r.Strategy)
	case r.Mode > spec.Off:
		return spec.BadField("mode", "%d is unknown: use api.Enforce, api.Shadow or api.Off", r.Mode)
	case r.Strategy != Steady && !r.Metric.sampled():
		return r.unread("strategy", "remove it, or set metric to load or cpu")
	case r.Interval != 0 && !r.Metric.windowed():
		return r.unread("interval", "remove it, or set metric to qps or rt")
	case r.Buckets != 0 && !r.Metric.windowed():
		return r.unread("buckets", "remove it, or set metric to qps or rt")
	case r.Strict && r.Metric != QPS:
		return r.unread("strict", "remove it, or set metric to qps")
	case r.Threshold != 0 && r.Metric == RT:
		return r.unread("threshold", "remove it, and use maxRT, as in `maxRT: 200ms`")
	case r.MaxRT != 0 && r.Metric != RT:
		return r.unread("maxRT", "remove it, and use threshold")
	case r.Shed != spec.ShedNone && r.Metric.windowed():
		return r.unread("shed", "no units in flight are limited, so none can be left free; remove it, or set metric to load, cpu or concurrency")
	case r.Shed != spec.ShedNone && r.Strategy != Steady:
		return spec.BadField("shed", "has no meaning for strategy %s, which learns no limit: remove it, or set strategy to steady", r.Strategy)
	}
	return spec.CheckShed(r.Shed, r.Floors)
}

// unread returns the error for a field that the rule's metric doesn't use.
func (r Rule) unread(field, remedy string) error {
	return spec.BadField(field, "has no meaning for metric %s: %s", r.Metric, remedy)
}

func (r Rule) checkNumbers() error {
	switch t := r.Threshold; {
	case !(t >= 0) || t > MaxThreshold:
		return spec.BadField("threshold", "is %v: use a finite number from 0 to %g", t, float64(MaxThreshold))
	case r.Metric == Load && t == 0:
		return spec.BadField("threshold", "is 0, which every load exceeds: use a load average, about the number of processors")
	case r.Metric == CPU && (t == 0 || t >= 1):
		return spec.BadField("threshold", "is %v: use a share above 0 and below 1, as in 0.8; CPU use is never above 1", t)
	case r.Metric == RT && r.MaxRT == 0:
		return spec.BadField("maxRT", "is required by metric rt: set the mean response time above which calls are refused")
	case r.MaxRT < 0 || r.MaxRT > MaxMaxRT:
		return spec.BadField("maxRT", "is %v: use a duration up to %v", r.MaxRT, MaxMaxRT)
	}
	if r.Metric.windowed() {
		if err := spec.CheckDuration("interval", r.Interval, MinInterval, MaxInterval); err != nil {
			return err
		}
		if err := r.shape().Validate(); err != nil {
			return spec.BadField("buckets", "%v", err)
		}
	}
	return nil
}

// MayOmit reports whether a rule file may omit a key that other rules need.
func (r Rule) MayOmit(key string) bool { return key == "threshold" && r.Metric == RT }

// Info returns the rule's data for the rule table. A system rule has no resource.
func (r Rule) Info() spec.Info { return spec.Info{ID: r.ID, Mode: r.Mode, Refusal: r.Refusal} }

func (r Rule) shape() stat.Shape {
	return stat.Shape{Interval: r.Interval, Buckets: r.Buckets, Strict: r.Strict}
}

// limit returns the threshold in whole units; windows and semaphores know no fractions.
func (r Rule) limit() int64 { return int64(math.Floor(r.Threshold)) }

// Like identifies a rule by the field that makes it that rule, so that a rule with an edited
// threshold is still the same.
func (r Rule) Like() string { return "system:" + r.Metric.String() }
