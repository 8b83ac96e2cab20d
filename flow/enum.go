package flow

import (
	"time"

	"github.com/penstock-go/penstock/internal/shown"
)

// Metric is the quantity that a threshold limits.
type Metric uint8

// The metrics.
const (
	QPS         Metric = iota // units that pass per interval
	Concurrency               // units in flight: entered or waiting to enter, and not exited
)

var metricNames = shown.NewEnum[Metric]("metric", "qps", "concurrency")

// String returns the name used in rule files.
func (m Metric) String() string { return metricNames.Name(m) }

// MarshalText writes the name used in rule files.
func (m Metric) MarshalText() ([]byte, error) { return metricNames.Marshal(m) }

// UnmarshalText reads the name used in rule files.
func (m *Metric) UnmarshalText(text []byte) error { return metricNames.Parse(text, m) }

// Relation selects the traffic that a rule counts.
type Relation uint8

// The relations.
const (
	Direct     Relation = iota // the resource's own traffic
	Associated                 // the traffic of resource Ref, which the rule only reads
	Chain                      // the resource's own traffic, if it comes in through the context Ref
)

var relationNames = shown.NewEnum[Relation]("relation", "direct", "associated", "chain")

// String returns the name used in rule files.
func (r Relation) String() string { return relationNames.Name(r) }

// MarshalText writes the name used in rule files.
func (r Relation) MarshalText() ([]byte, error) { return relationNames.Marshal(r) }

// UnmarshalText reads the name used in rule files.
func (r *Relation) UnmarshalText(text []byte) error { return relationNames.Parse(text, r) }

// Behavior decides what happens to a call over the limit.
type Behavior uint8

// The behaviors.
const (
	Reject         Behavior = iota // refuse the call
	WarmUp                         // refuse the call; the limit rises with use
	Throttle                       // queue the call for its turn
	WarmUpThrottle                 // queue the call; turns come faster with use
	TokenBucket                    // refuse the call, but let a burst of up to a bucket's size pass
)

var behaviorNames = shown.NewEnum[Behavior]("behavior", "reject", "warmUp", "throttle", "warmUpThrottle", "tokenBucket")

// String returns the name used in rule files.
func (b Behavior) String() string { return behaviorNames.Name(b) }

// MarshalText writes the name used in rule files.
func (b Behavior) MarshalText() ([]byte, error) { return behaviorNames.Marshal(b) }

// UnmarshalText reads the name used in rule files.
func (b *Behavior) UnmarshalText(text []byte) error { return behaviorNames.Parse(text, b) }

func (b Behavior) warmsUp() bool { return b == WarmUp || b == WarmUpThrottle }
func (b Behavior) queues() bool  { return b == Throttle || b == WarmUpThrottle }
func (b Behavior) windows() bool { return b == Reject || b == WarmUp } // whether it counts calls by time

// Window selects the intervals in which a QPS limit holds. See [stat.Shape] for the bounds of both
// kinds.
type Window uint8

// The windows.
const (
	// Strict holds the limit in every real interval. Under steady overload, n buckets admit n/(n+1)
	// of it: 50 buckets admit 98 %.
	Strict Window = iota
	// Ring holds the limit in every interval that starts with a bucket, and admits all of it; an
	// interval that starts within a bucket can see up to twice the limit. It is the window of
	// alibaba/Sentinel.
	Ring
)

var windowNames = shown.NewEnum[Window]("window", "strict", "ring")

// String returns strict or ring.
func (w Window) String() string { return windowNames.Name(w) }

// MarshalText writes strict or ring.
func (w Window) MarshalText() ([]byte, error) { return windowNames.Marshal(w) }

// UnmarshalText reads strict or ring.
func (w *Window) UnmarshalText(text []byte) error { return windowNames.Parse(text, w) }

// Bool returns the value of the rule-file key strict.
func (w Window) Bool() bool { return w == Strict }

// SetBool sets the window from the value of the rule-file key strict.
func (w *Window) SetBool(strict bool) {
	if *w = Ring; strict {
		*w = Strict
	}
}

// buckets returns the default number of buckets for a window of the interval.
func (w Window) buckets(interval time.Duration) int {
	switch {
	case w == Strict:
		return 50
	case interval == time.Second:
		return 2
	}
	return 10
}
