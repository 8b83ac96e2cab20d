package flow

import (
	"fmt"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
)

// private owns the meters that a rule has to itself: the rule that first had them, and since which
// revision, as the ID may later be another rule's.
type private struct {
	rule     string
	revision uint64
}

func (p private) String() string { return fmt.Sprintf("%s, revision %d", p.rule, p.revision) }

// private reports whether the rule has its window or semaphore to itself, because not every
// call there counts in it: in shadow mode only those that it would admit, and on the overflow
// resource only those whose name it matches. An associated rule only looks, at every call.
func (r Rule) private(resource string) bool {
	return r.Relation != Associated && (r.Mode == spec.Shadow || !r.Info().Named() && resource == node.OverflowName)
}

// meterAfter names the window or semaphore of a rule that comes after old, which may be nil.
// A rule that changes to another shape gets a window that never existed before.
func (r Rule) meterAfter(old *controller, resource string, revision uint64) (m meter.Meter) {
	if r.metered() {
		m.Shape = r.shape()
	}
	goesOn := r.goesOnFrom(old, resource)
	if r.private(resource) {
		owner := private{r.ID, revision}
		if old != nil && r.sameCalls(old.rule) {
			if before, own := ownerOf(old.meter); own {
				owner = before // no other meter knows of those calls, even if the rule was off for a while
			}
		}
		m.Owner = owner
	}
	if r.inShadow(resource) {
		m.Owner = meter.ShadowOwner{Of: m.Owner}
	}
	switch {
	case !goesOn || !r.metered() || !old.rule.metered():
	case m.Shape == old.meter.Shape:
		m.Era = old.meter.Era
	default:
		m.Era = meter.Era{Rule: r.ID, Revision: revision}
	}
	return m
}

// ownerOf is the rule that has the meters to itself, if any rule has.
func ownerOf(m meter.Meter) (owner private, own bool) {
	if r, ok := m.Owner.(meter.ShadowOwner); ok {
		owner, own = r.Of.(private)
		return owner, own
	}
	owner, own = m.Owner.(private)
	return owner, own
}

// owned reports whether a rule has the meters to itself.
func owned(m meter.Meter) bool {
	_, own := ownerOf(m)
	return own
}

// inShadow reports whether the rule's meters keep no node. The node of the overflow resource never
// leaves: a rule that becomes enforced there keeps the meters it had in shadow mode.
func (r Rule) inShadow(resource string) bool {
	return r.Mode == spec.Shadow && (r.Relation == Associated || r.role() != engine.RoleCluster || resource != node.OverflowName)
}

// goesOnFrom reports whether the rule counts the same calls on a resource as the one
// before it, and in meters of the same kind.
func (r Rule) goesOnFrom(old *controller, resource string) bool {
	if old == nil || old.rule.Mode == spec.Off || !r.sameCalls(old.rule) {
		return false
	}
	return r.private(resource) == owned(old.meter) && r.inShadow(resource) == old.rule.inShadow(resource)
}

// sameCalls reports whether the rules are about the same calls of a resource.
func (r Rule) sameCalls(old Rule) bool {
	return r.Origin == old.Origin && r.Relation == old.Relation && r.Ref == old.Ref
}

// windowed reports whether the rule counts in windows.
func (r Rule) windowed() bool { return r.Metric == QPS && r.Behavior.windows() }

// metered reports whether the rule counts in windows of nodes, not in what a cluster shares.
func (r Rule) metered() bool { return r.windowed() && !r.leases() }
