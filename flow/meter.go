package flow

import (
	"fmt"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// apart owns the meters that a rule has to itself: the rule that had them first, and since
// which revision, for the ID may become another's.
type apart struct {
	rule     string
	revision uint64
}

func (a apart) String() string { return fmt.Sprintf("%s, revision %d", a.rule, a.revision) }

// apart reports whether the rule has its window or gauge to itself, because not every
// call there counts in it: in shadow mode only those that it would admit, and on the
// overflow resource only those whose name it matches. An associated rule only looks, at
// everybody.
func (r Rule) apart(resource string) bool {
	return r.Relation != Associated && (r.Mode == core.Shadow || r.Regex && resource == node.OverflowName)
}

// meterAfter names the window or gauge of a rule that comes after old, which may be nil.
// One that comes to another shape gets a window that there never was.
func (r Rule) meterAfter(old *controller, resource string, revision uint64) (m node.Meter) {
	if r.windowed() {
		m.Shape = r.shape()
	}
	goesOn := r.goesOnFrom(old, resource)
	switch {
	case !r.apart(resource):
	case old != nil && old.meter.Owner != nil && r.sameCalls(old.rule):
		m.Owner = old.meter.Owner // nobody else knows of those calls, even if it was off for a while
	default:
		m.Owner = apart{r.ID, revision}
	}
	switch {
	case !goesOn || !r.windowed() || !old.rule.windowed():
	case m.Shape == old.meter.Shape:
		m.Era = old.meter.Era
	default:
		m.Era = node.Era{Rule: r.ID, Revision: revision}
	}
	return m
}

// goesOnFrom reports whether the rule counts the same calls on a resource as the one
// before it.
func (r Rule) goesOnFrom(old *controller, resource string) bool {
	return old != nil && old.rule.Mode != core.Off && r.sameCalls(old.rule) && r.apart(resource) == (old.meter.Owner != nil)
}

// sameCalls reports whether the rules are about the same calls of a resource.
func (r Rule) sameCalls(old Rule) bool {
	return r.Origin == old.Origin && r.Relation == old.Relation && r.Ref == old.Ref
}

// windowed reports whether the rule counts in windows.
func (r Rule) windowed() bool { return r.Metric == QPS && !r.Behavior.queues() }

// seed is the window that a new one on node n goes on from: that of the rule before
// it was changed or its node was replaced. nil leaves that to what the node counted.
func (c *controller) seed(n *node.StatisticNode, old *controller) *stat.Window {
	switch {
	case old == nil, old.rule.Mode == core.Shadow && c.rule.Mode != core.Shadow:
		return nil // a rehearsal doesn't know what really passed
	case !c.rule.sameCalls(old.rule):
		return nil // it counted other calls
	case old.window != nil:
		return old.window
	}
	return n.FindWindow(old.meter)
}

// windowOn returns the rule's window on the node it counts on. One that is made now
// goes on from that of the rule before, in which calls may have taken that were not
// counted yet.
func (c *controller) windowOn(n *node.StatisticNode, now int64) *stat.Window {
	if c.window != nil {
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

// succession is a rule that goes on in windows of another shape. They were seeded when
// the rule was compiled; calls under the old rules have taken from the old windows
// since, and will until they hear of the new.
type succession struct{ old, new *controller }

// complete comes before the new rules are published. It hands over what was taken from
// the old windows, also on nodes that calls have come to since the rule was compiled (and
// where the old rule has none yet it gets one, or calls could make it meanwhile), and
// tells the old rule of the new one while all of them are held: who took earlier is in
// what is handed over, who took later sees the new rule and takes there as well. Who is
// seen both ways counts twice, never not at all.
//
// Nobody takes from a new window before. What is handed over replaces what is there, and
// may stand in an earlier bucket: a call that gave back there what was replaced would
// leave its bucket with less than nothing, and room for more than the limit once the
// earlier one has expired.
//
// The new windows are the new rule's alone, see [node.Era]. So whoever holds something
// of the old rule holds it here too, and nobody who came by another rule stands in one
// and not yet in the other.
func (s *succession) complete(now int64) {
	if s.old.rule.Mode == core.Shadow && s.new.rule.Mode != core.Shadow {
		s.old.next.Store(s.new) // with nothing, see seed
		return
	}
	var to, from []*stat.Window
	for n := range s.new.nodes() {
		to, from = append(to, s.new.windowOn(n, now)), append(from, s.old.windowOn(n, now))
	}
	s.handOver(to, from, now)
	// Where calls took by the old rule for the first time meanwhile, the new one gets its
	// window too: it goes on from the old rule's, which nobody keeps when this is done.
	for n := range s.new.nodes() {
		s.new.windowOn(n, now)
	}
}

// handOver holds one window after the other.
func (s *succession) handOver(to, from []*stat.Window, now int64) {
	if len(to) == 0 {
		s.old.next.Store(s.new)
		return
	}
	to[0].Reseed(from[0], now, func() { s.handOver(to[1:], from[1:], now) })
}
