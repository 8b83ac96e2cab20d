package hotspot

import (
	"fmt"
	"strconv"

	"github.com/penstock-go/penstock/internal/shown"
)

// Metric is what a threshold counts.
type Metric uint8

// The metrics.
const (
	QPS         Metric = iota // units of a value that pass per interval
	Concurrency               // units of a value in flight
)

var metricNames = shown.NewEnum[Metric]("metric", "qps", "concurrency")

// String returns the name used in rule files.
func (m Metric) String() string { return metricNames.Name(m) }

// MarshalText writes the name used in rule files.
func (m Metric) MarshalText() ([]byte, error) { return metricNames.Marshal(m) }

// UnmarshalText reads the name used in rule files.
func (m *Metric) UnmarshalText(text []byte) error { return metricNames.Parse(text, m) }

// Behavior is what a call over the limit meets.
type Behavior uint8

// The behaviors.
const (
	Reject      Behavior = iota // it is refused
	Throttle                    // it queues for its turn
	TokenBucket                 // it is refused, but so many may come at once as are in the bucket
)

var behaviorNames = shown.NewEnum[Behavior]("behavior", "reject", "throttle", "tokenBucket")

// String returns the name used in rule files.
func (b Behavior) String() string { return behaviorNames.Name(b) }

// MarshalText writes the name used in rule files.
func (b Behavior) MarshalText() ([]byte, error) { return behaviorNames.Marshal(b) }

// UnmarshalText reads the name used in rule files.
func (b *Behavior) UnmarshalText(text []byte) error { return behaviorNames.Parse(text, b) }

// Index is the place of an argument; see [At]. The zero Index is none.
type Index struct {
	given bool
	at    int
}

// At returns the place n of an argument: 0 is the first one, -1 the last one.
func At(n int) Index { return Index{true, n} }

// String returns the place, "" if there is none.
func (i Index) String() string {
	if !i.given {
		return ""
	}
	return strconv.Itoa(i.at)
}

// Scalar returns the place as the value that a rule file has for it.
func (i Index) Scalar() any { return int64(i.at) }

// SetScalar sets the place from its value in a rule file.
func (i *Index) SetScalar(v any) error {
	n, ok := v.(int64)
	if !ok || n < -MaxIndex || n > MaxIndex {
		return fmt.Errorf("must be a whole number like 0 (the first argument) or -1 (the last), at most %d", MaxIndex)
	}
	*i = At(int(n))
	return nil
}
