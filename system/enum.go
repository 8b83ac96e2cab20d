package system

import (
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/internal/shown"
)

// Metric is the trigger of a rule.
type Metric uint8

// The metrics. A rule must have one.
const (
	None        Metric = iota // no trigger; not valid in a rule
	Load                      // the machine's load average over a minute, as in uptime
	CPU                       // the used share of the available CPU time, 0 to 1
	RT                        // the mean response time of inbound calls
	Concurrency               // inbound units in flight: entered or waiting to enter, and not exited
	QPS                       // inbound units that pass per interval
)

var metricNames = shown.NewEnum[Metric]("metric", "none", "load", "cpu", "rt", "concurrency", "qps")

// String returns the name used in rule files.
func (m Metric) String() string { return metricNames.Name(m) }

// MarshalText writes the name used in rule files.
func (m Metric) MarshalText() ([]byte, error) { return metricNames.Marshal(m) }

// UnmarshalText reads the name used in rule files.
func (m *Metric) UnmarshalText(text []byte) error { return metricNames.ParseFrom(Load, text, m) }

// sampled reports whether the metric is read off the machine.
func (m Metric) sampled() bool { return m == Load || m == CPU }

// quantity returns the reading for a sampled metric.
func (m Metric) quantity() sampler.Quantity {
	if m == Load {
		return sampler.MachineLoad
	}
	return sampler.MachineCPU
}

// windowed reports whether the metric is counted in a window.
func (m Metric) windowed() bool { return m == QPS || m == RT }

// Strategy decides what a rule on load or CPU does above its threshold.
type Strategy uint8

// The strategies.
const (
	// Steady limits the units in flight to the number that the process has shown it can serve. It
	// keeps limiting, and adjusts the limit to the reading, until there is nothing left to refuse.
	// It settles. Most rules want this.
	Steady Strategy = iota
	// BBR is alibaba/Sentinel's load rule: while the reading is above the threshold, it allows no
	// more calls in flight than throughput times lowest response time. When the reading falls, it
	// admits every call.
	BBR
	// Gate refuses every call while the reading is above the threshold, like alibaba/Sentinel's CPU
	// rule. Under a lasting overload the traffic oscillates between all and nothing.
	Gate
)

var strategyNames = shown.NewEnum[Strategy]("strategy", "steady", "bbr", "gate")

// String returns the name used in rule files.
func (s Strategy) String() string { return strategyNames.Name(s) }

// MarshalText writes the name used in rule files.
func (s Strategy) MarshalText() ([]byte, error) { return strategyNames.Marshal(s) }

// UnmarshalText reads the name used in rule files.
func (s *Strategy) UnmarshalText(text []byte) error { return strategyNames.Parse(text, s) }
