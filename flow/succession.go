package flow

import (
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// seed is the window that a new one on node n continues: that of the rule before it was changed or
// its node was replaced. nil means what the node counted. On the overflow resource that would be
// the calls of all names, not only of those that the rule matches, the first of which is under way.
func (e *window) seed(n *node.StatisticNode, old *controller) *stat.Window {
	switch {
	case old == nil && !e.rule.Info().Named() && e.resource.Name() == node.OverflowName:
		empty, _ := stat.NewWindow(e.meter.Shape) // which the rule was loaded with
		return empty
	case old == nil, old.rule.Mode == spec.Shadow && !e.rule.private(e.resource.Name()):
		return nil // a shadow rule doesn't know what really passed
	case !e.rule.sameCalls(old.rule):
		return nil // it counted other calls
	case old.rule.Mode == spec.Off && !owned(old.meter):
		return nil // it counted nothing; another rule's window of that shape may know less than the node
	case old.window != nil && old.window.one != nil:
		return old.window.one
	}
	return n.FindWindow(old.meter)
}

// succession is a rule that continues in windows of another shape. Calls under the old rules have
// taken from the old windows since the rule was compiled, and will until they learn of the new
// ones.
type succession struct{ old, new *window }

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
		to, from = append(to, s.new.on(n, now)), append(from, s.old.on(n, now))
	}
	s.handOver(to, from, now)
	// Where calls took by the old rule for the first time meanwhile, the new rule gets its window
	// too: it continues the old rule's, which is not kept once this is done.
	for n := range s.new.nodes() {
		s.new.on(n, now)
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
