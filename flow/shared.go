package flow

import (
	"cmp"
	"fmt"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/family"
)

// Shared reports whether a cluster shares the limit of the rule.
func (r Rule) Shared() bool { return r.Cluster.Shared() }

// leases reports whether calls take from a lease: a rule that refuses every call needs none.
func (r Rule) leases() bool { return r.Shared() && r.Threshold > 0 && r.Mode != spec.Off }

// checkShared refuses fields that depend on the state of a single process.
func (r Rule) checkShared() error {
	local := ""
	switch {
	case !r.Shared():
	case r.Relation != Direct:
		local = fmt.Sprintf("relation %s: each process counts other resources and single contexts on its own; remove it, or set relation to direct", r.Relation)
	case r.Behavior.warmsUp():
		local = fmt.Sprintf("behavior %s: each process warms up on its own; remove it, or set behavior to reject, throttle or tokenBucket", r.Behavior)
	case r.Per != spec.PerNone:
		local = "per: stores know intervals, but not the periods of a calendar; remove it, or replace per by interval"
	case r.MemoryThreshold != 0:
		local = "memoryThreshold: memory use differs between processes; remove cluster or memoryThreshold"
	}
	if local != "" {
		return spec.BadField("cluster", "has no meaning for %s", local)
	}
	return r.Cluster.Check(r.ID)
}

// checkSharedNumbers returns an error if members can't share the limit.
func (r Rule) checkSharedNumbers() error {
	switch {
	case !r.Shared():
		return nil
	case r.Unit != "" && r.windowed():
		return cmp.Or(r.Cluster.CheckWindow(r.shape(), 0), family.CheckSharedUnits(r.Threshold))
	case r.Behavior == TokenBucket:
		return family.CheckSharedBucket(r.Cluster, r.Threshold, r.Interval, r.Burst, r.Unit != "")
	case r.Unit != "":
		return family.CheckSharedUnits(r.Threshold)
	case r.Metric == Concurrency:
		return r.Cluster.CheckThreshold(r.Threshold)
	case r.Behavior == Throttle:
		return r.Cluster.CheckTurns(r.Threshold, r.Interval)
	}
	return r.Cluster.CheckWindow(r.shape(), r.Threshold)
}
