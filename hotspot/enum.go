package hotspot

import (
	"fmt"
	"strconv"

	"github.com/penstock-go/penstock/internal/shown"
)

// Metric is the quantity that a threshold limits.
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

// Behavior decides what happens to a call over the limit.
type Behavior uint8

// The behaviors.
const (
	Reject      Behavior = iota // refuse the call
	Throttle                    // queue the call for its turn
	TokenBucket                 // refuse the call, but let a burst of up to a bucket's size pass
)

var behaviorNames = shown.NewEnum[Behavior]("behavior", "reject", "throttle", "tokenBucket")

// String returns the name used in rule files.
func (b Behavior) String() string { return behaviorNames.Name(b) }

// MarshalText writes the name used in rule files.
func (b Behavior) MarshalText() ([]byte, error) { return behaviorNames.Marshal(b) }

// UnmarshalText reads the name used in rule files.
func (b *Behavior) UnmarshalText(text []byte) error { return behaviorNames.Parse(text, b) }

// Window selects the intervals in which a limit on QPS of behavior [Reject] holds.
type Window uint8

// The windows.
const (
	// Strict holds the limit in every real interval, with a window of ten buckets for each value.
	// Under steady overload it admits ten elevenths of the limit.
	Strict Window = iota
	// Refill is the bucket of alibaba/Sentinel: it holds threshold + burst units, and the first call
	// that arrives more than an interval after the last filling refills it. It admits the whole
	// limit, but up to twice the limit and burst in a real interval that begins right before a
	// filling.
	Refill
)

var windowNames = shown.NewEnum[Window]("window", "strict", "refill")

// String returns strict or refill.
func (w Window) String() string { return windowNames.Name(w) }

// MarshalText writes strict or refill.
func (w Window) MarshalText() ([]byte, error) { return windowNames.Marshal(w) }

// UnmarshalText reads strict or refill.
func (w *Window) UnmarshalText(text []byte) error { return windowNames.Parse(text, w) }

// Bool returns the value of the "strict" key in rule files.
func (w Window) Bool() bool { return w == Strict }

// SetBool sets the window from the value of the "strict" key in rule files.
func (w *Window) SetBool(strict bool) {
	if *w = Refill; strict {
		*w = Strict
	}
}

// Missing decides how a rule treats a call without the value: the argument or the attachment is
// absent, nil, an empty list or empty text.
type Missing uint8

// Treatments of a call without the value.
const (
	MissingNone      Missing = iota // the zero value: the call is not limited, but empty text is a value like any other
	MissingUnlimited                // the call is not limited
	MissingShared                   // all such calls share one limit
	MissingRefuse                   // the call is refused
)

var missingNames = shown.NewEnum[Missing]("missing", "none", "unlimited", "shared", "refuse")

// String returns the name used in rule files; "none" for the zero value, which has no name there.
func (m Missing) String() string { return missingNames.Name(m) }

// MarshalText writes the name used in rule files.
func (m Missing) MarshalText() ([]byte, error) { return missingNames.Marshal(m) }

// UnmarshalText reads the name used in rule files.
func (m *Missing) UnmarshalText(text []byte) error {
	return missingNames.ParseFrom(MissingUnlimited, text, m)
}

// At returns the position n of an argument: 0 is the first, -1 the last.
type Index struct {
	given bool
	at    int
}

// At returns the position n of an argument: 0 is the first, -1 the last.
func At(n int) Index { return Index{true, n} }

// String returns the position, or "" if there is none.
func (i Index) String() string {
	if !i.given {
		return ""
	}
	return strconv.Itoa(i.at)
}

// Scalar returns the position as the value in a rule file.
func (i Index) Scalar() any { return int64(i.at) }

// SetScalar sets the position from its value in a rule file.
func (i *Index) SetScalar(v any) error {
	n, ok := v.(int64)
	if f, decimal := v.(float64); decimal && f == float64(int64(f)) { // as in 1.0
		n, ok = int64(f), true
	}
	if !ok || n < -MaxIndex || n > MaxIndex {
		return fmt.Errorf("must be a whole number like 0 (the first argument) or -1 (the last), at most %d", MaxIndex)
	}
	*i = At(int(n))
	return nil
}
