package flow

import (
	"math"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/sampler"
)

// memoryLimit computes the threshold from the memory in use. It enforces nothing. Safe for
// concurrent use.
//
// Up to the low mark the full threshold holds, from the high mark on the rule's MemoryThreshold,
// and between the two it falls linearly. While the memory in use is unknown, the full threshold
// holds.
//
// The threshold changes when the machine is sampled, concurrently with calls. So a rule reads it
// again after taking: a call that took after the threshold fell sees that, and must fit under the
// new threshold as well. See controller.retake and pacer.take.
type memoryLimit struct {
	reading   *sampler.Reading
	low, high float64 // in the unit of the reading
	most      float64 // the threshold at the low mark
	least     float64 // the threshold at the high mark
}

func newMemoryLimit(s *sampler.Sampler, r Rule) *memoryLimit {
	return &memoryLimit{
		reading: s.Reading(r.quantity()),
		low:     r.LowMemory.value(), high: r.HighMemory.value(),
		most: r.Threshold, least: r.MemoryThreshold,
	}
}

// threshold returns the threshold for the memory in use now.
func (m *memoryLimit) threshold() float64 {
	used := m.reading.Value()
	switch {
	case used <= m.low: // also if unknown
		return m.most
	case used >= m.high:
		return m.least
	}
	return max(m.least, m.most-(m.most-m.least)*((used-m.low)/(m.high-m.low)))
}

// watchesMemory reports whether the rule's threshold follows the memory in use.
func (r Rule) watchesMemory() bool {
	return r.MemoryThreshold != 0 || r.LowMemory != Watermark{} || r.HighMemory != Watermark{}
}

// memoryField returns the first memory field that is set.
func (r Rule) memoryField() string {
	switch none := (Watermark{}); {
	case r.MemoryThreshold != 0:
		return "memoryThreshold"
	case r.LowMemory != none:
		return "lowMemory"
	}
	return "highMemory"
}

// quantity returns the reading that the rule's marks are compared with.
func (r Rule) quantity() sampler.Quantity {
	if r.LowMemory.bytes != 0 {
		return sampler.MemoryBytes
	}
	return sampler.MemoryShare
}

func (r Rule) checkMemory() error {
	if !r.watchesMemory() {
		return nil
	}
	none := Watermark{}
	switch {
	case r.Behavior.warmsUp():
		return spec.BadField(r.memoryField(), "has no meaning for behavior %s, whose threshold already changes by itself: remove it, or set behavior to reject or throttle", r.Behavior)
	case r.Behavior == TokenBucket:
		return spec.BadField(r.memoryField(), "has no meaning for behavior tokenBucket: remove it, or set behavior to reject or throttle")
	case r.MemoryThreshold == 0:
		return spec.BadField("memoryThreshold", "is required by lowMemory and highMemory: set the threshold that holds from highMemory on, above 0")
	case r.LowMemory == none:
		return spec.BadField("lowMemory", "is required by memoryThreshold: set the memory use up to which the full threshold holds, as in 0.6 or 512MiB")
	case r.HighMemory == none:
		return spec.BadField("highMemory", "is required by memoryThreshold: set the memory use from which memoryThreshold holds, as in 0.9 or 1GiB")
	case !(r.MemoryThreshold > 0 && r.MemoryThreshold < r.Threshold):
		return spec.BadField("memoryThreshold", "is %v: use a number above 0 and below the threshold, %v", r.MemoryThreshold, r.Threshold)
	case !r.Behavior.queues() && (r.MemoryThreshold < 1 || math.Floor(r.MemoryThreshold) == math.Floor(r.Threshold)):
		return spec.BadField("memoryThreshold", "is %v: only whole units count here, so use at least 1, and at least one less than the threshold, %v", r.MemoryThreshold, r.Threshold)
	}
	if problem := r.LowMemory.check(); problem != "" {
		return spec.BadField("lowMemory", "%s", problem)
	}
	if problem := r.HighMemory.check(); problem != "" {
		return spec.BadField("highMemory", "%s", problem)
	}
	switch {
	case (r.LowMemory.bytes != 0) != (r.HighMemory.bytes != 0):
		return spec.BadField("highMemory", "is %v and lowMemory %v: use two shares, or bytes for both", r.HighMemory, r.LowMemory)
	case !r.LowMemory.less(r.HighMemory):
		return spec.BadField("highMemory", "is %v: use more than lowMemory, %v", r.HighMemory, r.LowMemory)
	}
	return nil
}

// checkMachine returns an error if the rule can't work on this machine.
func (r Rule) checkMachine(s *sampler.Sampler) error {
	if !r.watchesMemory() || r.Mode == spec.Off {
		return nil
	}
	if err := s.Probe(r.quantity()); err != nil {
		return spec.BadField("memoryThreshold", "the memory in use can't be read on this machine: %v; remove the rule's memory keys here", err)
	}
	limit := s.MemoryLimit()
	switch {
	case limit == 0 && r.quantity() == sampler.MemoryShare && s.Reading(sampler.MemoryBytes).Value() != sampler.Unknown:
		return spec.BadField("lowMemory", "is a share, but the memory limit of this machine is unknown: use bytes, as in 512MiB")
	case limit == 0 || r.quantity() == sampler.MemoryShare:
		return nil
	case r.HighMemory.bytes > limit:
		return spec.BadField("highMemory", "is %v, but at most %v can be used on this machine, so memoryThreshold would never hold: use less, or a share for both marks, as in 0.9", r.HighMemory, Bytes(limit))
	}
	return nil
}
