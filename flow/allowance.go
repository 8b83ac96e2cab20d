package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/node"
)

// allowance computes how much a rule grants: its threshold, or less while the resource warms up or
// memory is short. It enforces nothing. Safe for concurrent use.
type allowance struct {
	of     *Rule
	limit  int64        // of a fixed rule, in whole units
	warm   *warmUp      // nil unless the rule warms up
	memory *memoryLimit // nil unless the threshold follows the memory in use
}

func newAllowance(r *Rule, s *sampler.Sampler) allowance {
	a := allowance{of: r, limit: r.limit()}
	if r.Behavior.warmsUp() && r.Threshold > 0 {
		a.warm = newWarmUp(*r)
	}
	if r.watchesMemory() {
		a.memory = newMemoryLimit(s, *r)
	}
	return a
}

// moves reports whether the limit changes over time.
func (a *allowance) moves() bool { return a.warm != nil || a.memory != nil }

// limitAt returns the limit at now, in whole units per interval.
func (a *allowance) limitAt(now int64, n *node.StatisticNode) int64 {
	switch {
	case a.memory != nil:
		return int64(a.memory.threshold())
	case a.warm == nil:
		return a.limit
	}
	return a.warmLimit(a.warm.at(now, n))
}

// warmLimit returns the limit for a warm-up rate.
func (a *allowance) warmLimit(rate float64) int64 {
	if rate >= a.warm.perSecond {
		return a.limit // the conversion through seconds may come out slightly lower
	}
	limit := max(rate*a.of.Interval.Seconds(),
		a.of.Threshold/float64(a.of.ColdFactor),
		min(a.of.Threshold, 1)) // a cold resource gets at least one call
	return int64(min(limit, a.of.Threshold))
}

// costOf returns the time that the units take up in the queue at now.
func (a *allowance) costOf(units, now int64, n *node.StatisticNode) meter.Moment {
	return meter.Cost(units, a.perUnit(now, n))
}

func (a *allowance) perUnit(now int64, n *node.StatisticNode) float64 {
	switch {
	case a.memory != nil:
		return float64(a.of.Interval) / a.memory.threshold()
	case a.warm != nil:
		return float64(time.Second) / a.warm.at(now, n)
	case a.of.Threshold == 0:
		return math.Inf(1)
	}
	return float64(a.of.Interval) / a.of.Threshold
}

// slowest returns perUnit at the lowest rate.
func (a *allowance) slowest(now int64, n *node.StatisticNode) float64 {
	if a.memory != nil {
		return float64(a.of.Interval) / a.memory.least
	}
	return a.lookPerUnit(now, n)
}

// lookLimit is like limitAt, but has no side effects.
func (a *allowance) lookLimit(now int64, n *node.StatisticNode) int64 {
	if a.warm != nil && a.memory == nil {
		return a.warmLimit(a.warm.look(now, n))
	}
	return a.limitAt(now, n)
}

// lookPerUnit is like perUnit, but has no side effects.
func (a *allowance) lookPerUnit(now int64, n *node.StatisticNode) float64 {
	if a.warm != nil && a.memory == nil {
		return float64(time.Second) / a.warm.look(now, n)
	}
	return a.perUnit(now, n)
}
