package flow

import (
	"fmt"
	"iter"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/node"
)

// scope holds the calls of a resource that a rule applies to, and the nodes that count them.
type scope struct {
	rule     Rule
	engine   *engine.Engine
	resource *engine.Resource // the home of a rule that counts all names together
	ref      *engine.Resource // the resource that an enforced associated rule reads; see other

	// node counts every call of the rule. It is nil if the node depends on the call, or if only some
	// calls count, as for a rule with a unit.
	node *node.StatisticNode
}

// oneNode reports whether the rule always counts on the same node. A rule in shadow mode pins no
// node, so any node but the resource's own may be evicted and replaced.
func (s *scope) oneNode() bool {
	return s.node != nil || s.rule.Together || s.rule.Mode != spec.Shadow &&
		(s.rule.Relation == Associated || s.rule.Relation == Direct && s.rule.Origin != OriginOther)
}

// other returns the resource that an associated rule reads, or nil if it doesn't exist.
func (s *scope) other() *engine.Resource {
	if s.ref != nil {
		return s.ref
	}
	r, _ := s.engine.FindResource(s.rule.Ref)
	return r
}

// nodes yields the existing nodes that the rule counts on.
func (s *scope) nodes() iter.Seq[*node.StatisticNode] {
	return func(yield func(*node.StatisticNode) bool) {
		switch {
		case s.rule.Together:
			yield(&s.resource.StatisticNode)
		case s.rule.Relation == Associated:
			if r := s.other(); r != nil {
				yield(&r.StatisticNode)
			}
		case s.rule.Relation == Chain:
			if n, ok := s.resource.Calls().Find(s.rule.Ref); ok {
				yield(&n.StatisticNode)
			}
		case s.rule.Origin == OriginDefault:
			yield(&s.resource.StatisticNode)
		case s.rule.Origin == OriginOther:
			for _, n := range s.resource.Origins().All() {
				if s.meters(n) && !yield(&n.StatisticNode) {
					return
				}
			}
			if n := s.resource.OverflowOrigin(); n != nil && s.meters(n) {
				yield(&n.StatisticNode)
			}
		case s.rule.Mode == spec.Shadow:
			if n, ok := s.resource.Origins().Find(s.rule.Origin); ok {
				yield(&n.StatisticNode)
			}
		default:
			yield(&s.resource.Origins().Pin(s.rule.Origin).StatisticNode)
		}
	}
}

// meters reports whether a caller's node already has meters, of enforced rules if this one is
// enforced.
func (s *scope) meters(n *node.OriginNode) bool {
	return n.Meters().Judged() || s.rule.Mode == spec.Shadow && n.Metered()
}

// selects reports whether the rule, one of rs, applies to calls from origin.
func (s *scope) selects(origin string, rs *checker) bool {
	switch s.rule.Origin {
	case OriginDefault:
		return true
	case OriginOther:
		return origin != "" && !rs.named[s.rule.Mode][origin]
	}
	return origin == s.rule.Origin
}

// counts returns the node that the rule, one of rs, counts the call on, or nil if the rule doesn't
// apply. If the slot that finds the node panicked, the rule doesn't apply; the other rules still
// do.
func (s *scope) counts(inv *engine.Invocation, rs *checker) *node.StatisticNode {
	if s.node != nil {
		return s.node
	}
	return s.find(inv, rs)
}

// find is like counts, but for rules whose node depends on the call.
func (s *scope) find(inv *engine.Invocation, rs *checker) *node.StatisticNode {
	switch {
	case !s.selects(inv.Origin(), rs) || s.rule.amount(inv) == 0:
		return nil
	case s.rule.Together:
		if s.rule.Relation == Chain && inv.ContextName() != s.rule.Ref || !family.AtHome(inv, s.resource, s.rule.Match) {
			return nil
		}
		return &s.resource.StatisticNode
	case s.rule.Relation == Associated:
		if s.rule.Threshold == 0 {
			return &s.resource.StatisticNode // the rule refuses, and reads no node
		}
		if r := s.other(); r != nil && r.Entered() {
			return &r.StatisticNode
		}
		return nil
	case s.rule.Relation == Chain:
		return s.onPath(inv)
	case s.rule.Origin == OriginDefault:
		return &s.resource.StatisticNode
	}
	if inv.OriginNode() == nil {
		return nil
	}
	return &inv.OriginNode().StatisticNode
}

// onPath returns the call node if the call came in through the context that a chain rule names,
// otherwise nil.
func (s *scope) onPath(inv *engine.Invocation) *node.StatisticNode {
	if inv.ContextName() != s.rule.Ref || inv.Node() == nil {
		return nil
	}
	return &inv.Node().StatisticNode
}

// looksAt is like counts, but for a call that hasn't arrived, perhaps for a controller that only
// reads. For a resource that reads itself, the call would be the first.
func (s *scope) looksAt(inv *engine.Invocation, rs *checker) *node.StatisticNode {
	n := s.counts(inv, rs)
	itself := s.rule.Relation == Associated && s.rule.Ref == inv.Resource().Name() && s.selects(inv.Origin(), rs)
	if s.node != nil || itself && n == nil {
		return &inv.Resource().StatisticNode
	}
	return n
}

// concern explains, for a call that the rule doesn't apply to, which calls it applies to.
func (s *scope) concern(inv *engine.Invocation, rs *checker) string {
	if s.rule.Together && s.selects(inv.Origin(), rs) {
		if why := family.NotAtHome(inv, s.resource, s.rule.Match); why != "" {
			return why
		}
	}
	switch {
	case s.rule.Relation == Associated && s.selects(inv.Origin(), rs):
		return fmt.Sprintf("resource %q, whose traffic it counts, has had no calls", s.rule.Ref)
	case s.rule.Unit != "" && s.rule.amount(inv) == 0:
		return fmt.Sprintf("applies only to calls with a cost in %s", s.rule.Unit)
	case s.rule.Origin == OriginOther:
		return "applies only to callers that no other rule names"
	case s.rule.Origin != OriginDefault:
		return fmt.Sprintf("applies only to calls from %q", s.rule.Origin)
	}
	return fmt.Sprintf("applies only to calls in the context %q", s.rule.Ref)
}
