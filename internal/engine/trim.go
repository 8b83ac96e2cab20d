package engine

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
)

// dropUnneeded drops names and meters that only earlier rules needed.
func (e *Engine) dropUnneeded(set *Snapshot, names *Names) {
	e.tree.Entrances().Unpin(func(name string) bool { return names.contexts[name] })
	e.resources.Unpin(names.named)
	looks := set.looks()
	trim(needs(looks[""]), RoleInbound, &e.tree.Inbound().StatisticNode)
	set.trimHomes()
	for r := range e.resources.all() {
		origins := names.resources[r.Name()]
		r.Origins().Unpin(func(origin string) bool { return origins[origin] })
		calls := names.calls[r.Name()]
		r.Calls().Unpin(func(context string) bool { return context == node.OverflowName || calls[context] })
		set.trim(r, looks[r.Name()])
	}
}

// looks returns the meters that rules read on nodes of other resources, by resource; meters of all
// inbound calls have the empty name.
func (s *Snapshot) looks() map[string][]Need {
	looks := make(map[string][]Need)
	for _, family := range s.families {
		if family != nil {
			family.Looks(func(resource string, n Need) { looks[resource] = append(looks[resource], n) })
		}
	}
	return looks
}

// trim drops the meters of a resource's nodes that rules no longer need. It holds the resource's
// lock, because bindings are built there with meters before they are visible. A rule of another
// resource that only reads may be built concurrently; it looks up its meter again if that was
// dropped.
func (s *Snapshot) trim(r *Resource, looks []Need) {
	if !metered(r) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keep, b := needs(looks), r.bound.Load()
	for kind, family := range s.families {
		if family != nil {
			family.Needs(b.heldBy(core.Kind(kind)), b.matchedUpTo(), func(n Need) { keep[n] = struct{}{} })
		}
	}
	for role, n := range nodesOf(r) {
		trim(keep, role, n)
	}
}

// nodesOf yields all nodes of a resource.
func nodesOf(r *Resource) func(yield func(Role, *node.StatisticNode) bool) {
	return func(yield func(Role, *node.StatisticNode) bool) {
		if !yield(RoleCluster, &r.StatisticNode) {
			return
		}
		for _, n := range r.Calls().All() {
			if !yield(RoleCall, &n.StatisticNode) {
				return
			}
		}
		if n := r.Included(); n != nil && !yield(RoleCall, &n.StatisticNode) { // it may have left
			return
		}
		for _, n := range r.Origins().All() {
			if !yield(RoleOrigin, &n.StatisticNode) {
				return
			}
		}
		if n := r.OverflowOrigin(); n != nil {
			yield(RoleOrigin, &n.StatisticNode)
		}
	}
}

func metered(r *Resource) bool {
	for _, n := range nodesOf(r) {
		if n.Metered() {
			return true
		}
	}
	return false
}

// needed are the meters that rules need.
type needed map[Need]struct{}

func needs(list []Need) needed {
	keep := make(needed, len(list))
	for _, n := range list {
		keep[n] = struct{}{}
	}
	return keep
}

func (k needed) has(n Need) bool {
	_, has := k[n]
	return has
}

// trim drops the meters of a node that are not needed.
func trim(keep needed, role Role, n *node.StatisticNode) {
	if !n.Metered() {
		return
	}
	n.KeepMeters(
		func(m meter.Meter) bool { return keep.has(Need{Role: role, Meter: m}) },
		func(owner any) bool {
			return keep.has(Need{Role: role, Semaphore: true, Meter: meter.Meter{Owner: owner}})
		})
}
