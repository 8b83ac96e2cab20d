package flow

import "github.com/penstock-go/penstock/core/spec"

// Metric is what a threshold counts.
type Metric uint8

// The metrics.
const (
	QPS         Metric = iota // units that pass per interval
	Concurrency               // units in flight: entered, or waiting to, and not exited
)

var metricNames = []string{"qps", "concurrency"}

// String returns the name used in rule files.
func (m Metric) String() string { return spec.EnumName("metric", metricNames, uint8(m)) }

// MarshalText writes the name used in rule files.
func (m Metric) MarshalText() ([]byte, error) {
	return spec.MarshalEnum("metric", metricNames, uint8(m))
}

// UnmarshalText reads the name used in rule files.
func (m *Metric) UnmarshalText(text []byte) error {
	v, err := spec.ParseEnum("metric", metricNames, text)
	*m = Metric(v)
	return err
}

// Relation is whose traffic a rule counts.
type Relation uint8

// The relations.
const (
	Direct     Relation = iota // the resource's own
	Associated                 // that of the resource Ref, at which the rule only looks
	Chain                      // the resource's own, as far as it comes in through the context Ref
)

var relationNames = []string{"direct", "associated", "chain"}

// String returns the name used in rule files.
func (r Relation) String() string { return spec.EnumName("relation", relationNames, uint8(r)) }

// MarshalText writes the name used in rule files.
func (r Relation) MarshalText() ([]byte, error) {
	return spec.MarshalEnum("relation", relationNames, uint8(r))
}

// UnmarshalText reads the name used in rule files.
func (r *Relation) UnmarshalText(text []byte) error {
	v, err := spec.ParseEnum("relation", relationNames, text)
	*r = Relation(v)
	return err
}

// Behavior is what a call over the limit meets.
type Behavior uint8

// The behaviors.
const (
	Reject         Behavior = iota // it is refused
	WarmUp                         // it is refused, and the limit rises with use
	Throttle                       // it queues for its turn
	WarmUpThrottle                 // it queues, and turns come faster with use
)

var behaviorNames = []string{"reject", "warmUp", "throttle", "warmUpThrottle"}

// String returns the name used in rule files.
func (b Behavior) String() string { return spec.EnumName("behavior", behaviorNames, uint8(b)) }

// MarshalText writes the name used in rule files.
func (b Behavior) MarshalText() ([]byte, error) {
	return spec.MarshalEnum("behavior", behaviorNames, uint8(b))
}

// UnmarshalText reads the name used in rule files.
func (b *Behavior) UnmarshalText(text []byte) error {
	v, err := spec.ParseEnum("behavior", behaviorNames, text)
	*b = Behavior(v)
	return err
}

func (b Behavior) warmsUp() bool { return b == WarmUp || b == WarmUpThrottle }
func (b Behavior) queues() bool  { return b == Throttle || b == WarmUpThrottle }
