package flow

import (
	"fmt"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
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

// seed is the window that a new one on node n continues: that of the rule before it was changed or
// its node was replaced. nil means what the node counted. On the overflow resource that would be
// the calls of all names, not only of those that the rule matches, the first of which is under way.
func (c *controller) seed(n *node.StatisticNode, old *controller) *stat.Window {
	switch {
	case old == nil && !c.rule.Info().Named() && c.resource.Name() == node.OverflowName:
		empty, _ := stat.NewWindow(c.meter.Shape) // which the rule was loaded with
		return empty
	case old == nil, old.rule.Mode == spec.Shadow && !c.rule.private(c.resource.Name()):
		return nil // a shadow rule doesn't know what really passed
	case !c.rule.sameCalls(old.rule):
		return nil // it counted other calls
	case old.rule.Mode == spec.Off && !owned(old.meter):
		return nil // it counted nothing; another rule's window of that shape may know less than the node
	case old.window != nil:
		return old.window
	}
	return n.FindWindow(old.meter)
}

// windowOn returns the rule's window on the node it counts on. A window made now continues that of
// the rule before, where calls that were not counted yet may have taken.
//
// The window of an associated rule is looked up each time: it is at another resource, where it may
// be dropped at the moment that the rule comes into force.
func (c *controller) windowOn(n *node.StatisticNode, now int64) *stat.Window {
	if c.window != nil && c.rule.Relation != Associated {
		return c.window
	}
	if c.before == nil {
		return n.Window(now, c.meter, nil)
	}
	if w := n.FindWindow(c.meter); w != nil {
		return w
	}
	return n.Window(now, c.meter, n.FindWindow(*c.before))
}

// succession is a rule that continues in windows of another shape. Calls under the old rules have
// taken from the old windows since the rule was compiled, and will until they learn of the new
// ones.
type succession struct{ old, new *controller }

// complete is called before the new rules are published. It hands over what was taken from the old
// windows, including on nodes that calls have reached since the rule was compiled (where the old
// rule has no window yet it gets one, since calls could make it meanwhile), and links the new rule
// to the old one while all of the windows are held: a call that took earlier is in what is handed
// over, and holds it there too (see [stat.Window.Follow]); a call that took later sees the new rule
// and takes there as well.
//
// No call takes from a new window before that: what is handed over replaces what is there. The new
// windows belong to the new rule alone, see [meter.Era]. So no call that came by another rule is in
// one window and not yet in the other.
func (s *succession) complete(now int64) {
	if s.old.rule.Mode == spec.Shadow && s.new.rule.Mode != spec.Shadow {
		s.old.next.Store(s.new) // with nothing, see seed
		return
	}
	var to, from []*stat.Window
	for n := range s.new.nodes() {
		to, from = append(to, s.new.windowOn(n, now)), append(from, s.old.windowOn(n, now))
	}
	s.handOver(to, from, now)
	// Where calls took by the old rule for the first time meanwhile, the new rule gets its window
	// too: it continues the old rule's, which is not kept once this is done.
	for n := range s.new.nodes() {
		s.new.windowOn(n, now)
	}
}

// handOver locks the windows one after another, and holds them all.
func (s *succession) handOver(to, from []*stat.Window, now int64) {
	if len(to) == 0 {
		s.old.next.Store(s.new)
		return
	}
	to[0].Reseed(from[0], now, func() { s.handOver(to[1:], from[1:], now) })
}
