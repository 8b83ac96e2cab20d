package flow

import (
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// seed returns the window that a new one on node n continues: the rule's window before the rule
// changed, or before its node was replaced. nil means the node's own counts. On the overflow
// resource those would include the calls of all names, not only the ones the rule matches, whose
// first call is under way; a rule with a unit doesn't count calls.
func (e *window) seed(n *node.StatisticNode, old *controller) *stat.Window {
	switch {
	case old == nil && !e.rule.Info().Named() && e.resource.Name() == node.OverflowName:
		return e.empty() // the rule was loaded with it
	case e.rule.Unit != "" && (old == nil || !e.rule.sameCalls(old.rule)):
		return e.empty() // the node counts calls
	case old == nil, old.rule.Mode == spec.Shadow && !e.rule.private(e.resource.Name()):
		return nil // a shadow rule doesn't know which calls really passed
	case !e.rule.sameCalls(old.rule):
		return nil // it counted other calls
	case old.rule.Mode == spec.Off && !owned(old.meter):
		return nil // it counted nothing; another rule's window of that shape may know less than the node
	case old.window != nil && old.window.one != nil:
		return old.window.one
	}
	if w := n.FindWindow(old.meter); w != nil || e.rule.Unit == "" {
		return w
	}
	return e.empty()
}

// empty returns a window to continue that counts nothing.
func (e *window) empty() *stat.Window {
	w, _ := stat.NewWindow(e.meter.Shape) // the shape is valid
	return w
}

// succession is a rule that continues in windows of another shape. Calls under the old rules have
// taken from the old windows since the rule was compiled, and will until they see the new ones.
type succession struct{ old, new *window }

// complete is called before the new rules are published. It hands over the units taken from the old
// windows, including those on nodes first used since the rule was compiled (a window that the old
// rule doesn't have there yet is created first, since calls could create it at the same time). It
// links the new rule to the old one while it holds the locks of all the windows: a call that took
// earlier is part of the handover, and holds its units in the new window too (see
// [stat.Window.Follow]); a call that takes later sees the new rule and takes there as well.
//
// No call takes units from a new window before that: the handover replaces its counts. The new
// windows belong to the new rule alone; see [meter.Era]. So no call that arrived via another rule is
// in one window and not yet in the other.
func (s *succession) complete(now int64) {
	if s.old.rule.Mode == spec.Shadow && s.new.rule.Mode != spec.Shadow {
		s.old.next.Store(s.new) // starting empty; see seed
		return
	}
	var to, from []*stat.Window
	for n := range s.new.nodes() {
		to, from = append(to, s.new.on(n, now)), append(from, s.old.on(n, now))
	}
	s.handOver(to, from, now)
	// If calls have since taken under the old rule for the first time, the new rule gets its window
	// too: it continues the old rule's, which is dropped after this.
	for n := range s.new.nodes() {
		s.new.on(n, now)
	}
}

// handOver locks the windows one after another, and holds all of the locks.
func (s *succession) handOver(to, from []*stat.Window, now int64) {
	if len(to) == 0 {
		s.old.next.Store(s.new)
		return
	}
	to[0].Reseed(from[0], now, func() { s.handOver(to[1:], from[1:], now) })
}
