package system

import (
	"cmp"
	"math"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/stat"
)

// Rule limits everything that comes in by one trigger. Metric and Threshold are enough or, for RT,
// Metric and MaxRT:
//
//	system.Rule{Metric: system.CPU, Threshold: 0.8}
//	system.Rule{Metric: system.QPS, Threshold: 5000}
//	system.Rule{Metric: system.RT, MaxRT: 200 * time.Millisecond}
//
// A call must pass every rule. Setting a field that no rule of this metric reads is an error; the
// zero value of a field doesn't set it.
type Rule struct {
	// ID names the rule in errors, logs and figures, and ties it to its
	// predecessor when rules are reloaded. Made from the fields if empty.
	ID string `yaml:"id,omitempty"`
	// Metric is the trigger. Required.
	Metric Metric `yaml:"metric"`
	// Threshold is where the rule begins to refuse: units per Interval for QPS, or units at the
	// same time for Concurrency, where 0 refuses everything; the load average for Load, above 0;
	// the share of the CPU time for CPU, above 0 and below 1. RT has MaxRT instead.
	Threshold float64 `yaml:"threshold"`
	// MaxRT is the mean response time above which an RT rule refuses. Up to 24 h.
	MaxRT time.Duration `yaml:"maxRT,omitempty"`
	// Interval is what a QPS threshold is per, and what an RT rule takes the mean
	// over. 10 ms to 24 h; 0 means one second. Only with QPS and RT.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Buckets divide Interval; as each ends, what it counted is forgotten. 0 means 2 for an
	// interval of one second that isn't Strict, otherwise 10. Only with QPS and RT.
	Buckets int `yaml:"buckets,omitempty"`
	// Strict makes a QPS limit hold in every real interval, not only in those
	// that begin with a bucket (see [stat.Shape]). Only with QPS.
	Strict bool `yaml:"strict,omitempty"`
	// Strategy is what happens above a threshold of Load or CPU. The zero value is
	// Steady.
	Strategy Strategy `yaml:"strategy,omitempty"`
	// Mode says whether the verdict holds. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// The ranges of a rule's fields.
const (
	MinInterval  = stat.MinInterval
	MaxInterval  = stat.MaxInterval
	MaxMaxRT     = 24 * time.Hour
	MaxThreshold = 1e15
)

// Normalized returns the rule with the default of every field that it reads written out,
// or the first field that can't be honoured as a [spec.FieldError].
func (r Rule) Normalized() (Rule, error) {
	if err := r.checkEnums(); err != nil {
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
	}
	return nil
}

// unread says that a field has no meaning for the metric of the rule.
func (r Rule) unread(field, remedy string) error {
	return spec.BadField(field, "has no meaning for metric %s: %s", r.Metric, remedy)
}

func (r Rule) checkNumbers() error {
	switch t := r.Threshold; {
	case !(t >= 0) || t > MaxThreshold:
		return spec.BadField("threshold", "is %v: use a finite number from 0 to %g", t, float64(MaxThreshold))
	case r.Metric == Load && t == 0:
		return spec.BadField("threshold", "is 0, above which every load is: use a load average, about the number of processors")
	case r.Metric == CPU && (t == 0 || t >= 1):
		return spec.BadField("threshold", "is %v: use a share above 0 and below 1, as in 0.8; the use of the CPU is never above 1", t)
	case r.Metric == RT && r.MaxRT == 0:
		return spec.BadField("maxRT", "is required by metric rt: it is the mean response time above which calls are refused")
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

// Info returns what the rule table needs to know. A system rule has no resource.
func (r Rule) Info() spec.Info { return spec.Info{ID: r.ID, Mode: r.Mode} }

func (r Rule) shape() stat.Shape {
	return stat.Shape{Interval: r.Interval, Buckets: r.Buckets, Strict: r.Strict}
}

// limit is the threshold in whole units, which is all that a window or a semaphore can distinguish.
func (r Rule) limit() int64 { return int64(math.Floor(r.Threshold)) }

// Like names a rule by the field that makes it that rule, so that an edited
// threshold is still the same rule.
func (r Rule) Like() string { return "system:" + r.Metric.String() }
