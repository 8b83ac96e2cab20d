package flow

import (
	"fmt"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
)

// private identifies the owner of meters that only one rule uses: the rule that first had them, and
// its revision then, since the ID may later be another rule's.
type private struct {
	rule     string
	revision uint64
}

func (p private) String() string { return fmt.Sprintf("%s, revision %d", p.rule, p.revision) }

// private reports whether the rule has its window or semaphore to itself, because not every call
// there counts in it: in shadow mode only calls that it would admit, with a unit only the calls that
// name it, on the overflow resource only names that it matches, and for all names together only calls
// that aren't nested. An associated rule only reads, for every call.
func (r Rule) private(resource string) bool {
	return r.Relation != Associated && (r.Mode == spec.Shadow || r.Unit != "" || r.Together || !r.Info().Named() && resource == node.OverflowName)
}

// meterAfter names the window or semaphore of a rule that follows old, which may be nil. A rule
// that changes its shape gets a fresh window.
func (r Rule) meterAfter(old *controller, resource string, revision uint64) (m meter.Meter) {
	if r.metered() {
		m.Shape = r.shape()
	}
	goesOn := r.goesOnFrom(old, resource)
	if r.private(resource) {
		owner := private{r.ID, revision}
		if old != nil && r.sameCalls(old.rule) {
			if before, own := ownerOf(old.meter); own {
				owner = before // no other meter counts those calls, even if the rule was off for a while
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

// ownerOf returns the rule that has the meter to itself, if any.
func ownerOf(m meter.Meter) (owner private, own bool) {
	if r, ok := m.Owner.(meter.ShadowOwner); ok {
		owner, own = r.Of.(private)
		return owner, own
	}
	owner, own = m.Owner.(private)
	return owner, own
}

// owned reports whether a rule has the meter to itself.
func owned(m meter.Meter) bool {
	_, own := ownerOf(m)
	return own
}

// inShadow reports whether the rule's meters keep no node alive. The overflow resource's node is
// never evicted, nor is a home: a rule that becomes enforced there keeps the meters it had in shadow
// mode.
func (r Rule) inShadow(resource string) bool {
	return r.Mode == spec.Shadow && !r.Together && (r.Relation == Associated || r.role() != engine.RoleCluster || resource != node.OverflowName)
}

// goesOnFrom reports whether the rule counts the same calls on a resource as its predecessor, in
// meters of the same kind.
func (r Rule) goesOnFrom(old *controller, resource string) bool {
	if old == nil || old.rule.Mode == spec.Off || !r.sameCalls(old.rule) {
		return false
	}
	return r.private(resource) == owned(old.meter) && r.inShadow(resource) == old.rule.inShadow(resource)
}

// sameCalls reports whether the rules apply to the same calls of a resource, in the same unit.
func (r Rule) sameCalls(old Rule) bool {
	return r.Origin == old.Origin && r.Relation == old.Relation && r.Ref == old.Ref && r.Unit == old.Unit
}

// windowed reports whether the rule counts in windows.
func (r Rule) windowed() bool {
	return r.Metric == QPS && r.Behavior.windows() && r.Per == spec.PerNone
}

// metered reports whether the rule counts in windows of nodes, not in a limit that a cluster
// shares.
func (r Rule) metered() bool { return r.windowed() && !r.leases() }
