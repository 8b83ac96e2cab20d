package core

import "github.com/penstock-go/penstock/node"

// letGo ends what only other rules named or metered.
func (e *Engine) letGo(set *Ruleset, names *Names) {
	e.tree.Entrances().Unpin(func(name string) bool { return names.contexts[name] })
	e.unbinding(func() { set.trim("", RoleInbound, &e.tree.Inbound().StatisticNode) })
	e.resources.Unpin(names.named)
	for r := range e.resources.all() {
		origins := names.resources[r.Name()]
		r.Origins().Unpin(func(origin string) bool { return origins[origin] })
		calls := names.calls[r.Name()]
		r.Calls().Unpin(func(context string) bool { return context == node.OverflowName || calls[context] })
		e.unbinding(func() { set.trimAll(r) })
	}
}

// unbinding calls f while no rules are found. What is built for them meters before
// anybody knows of it; and who finds rules holds the lock of their table and wants that
// of a node, which trim does the other way round.
func (e *Engine) unbinding(f func()) {
	e.binding.Lock()
	defer e.binding.Unlock()
	f()
}

// trimAll drops the meters of a resource's nodes that no rule needs any more.
func (s *Ruleset) trimAll(r *Resource) {
	s.trim(r.Name(), RoleCluster, &r.StatisticNode)
	for _, n := range r.Calls().All() {
		s.trim(r.Name(), RoleCall, &n.StatisticNode)
	}
	if n := r.Included(); n != nil { // it may have left, and comes back as it is
		s.trim(r.Name(), RoleCall, &n.StatisticNode)
	}
	for _, n := range r.Origins().All() {
		s.trim(r.Name(), RoleOrigin, &n.StatisticNode)
	}
	if n := r.OverflowOrigin(); n != nil {
		s.trim(r.Name(), RoleOrigin, &n.StatisticNode)
	}
}

// trim drops the meters of a node that no rule needs any more.
func (s *Ruleset) trim(resource string, role Role, n *node.StatisticNode) {
	if !n.Metered() {
		return
	}
	n.KeepMeters(
		func(m node.Meter) bool {
			return s.keeps(func(f Family) bool { return f.Keeps(resource, role, m) })
		},
		func(owner any) bool {
			return s.keeps(func(f Family) bool { return f.KeepsGauge(resource, role, owner) })
		})
}

func (s *Ruleset) keeps(needs func(Family) bool) bool {
	for _, family := range s.families {
		if family != nil && needs(family) {
			return true
		}
	}
	return false
}
