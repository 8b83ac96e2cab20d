package node

import (
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// The methods below find the nodes that a call would be counted on without adding any to the tree:
// for a missing node they return a new one outside it, for the caller alone.

// HasPlace reports whether [Registry.Obtain] would find or make the member of that name now. If it
// returns false, Obtain may still succeed by evicting idle members.
func (r *Registry[T, V]) HasPlace(name string) bool {
	if _, ok := r.Find(name); ok || !r.budget.full() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pinned[name]
}

// LookCall returns the node of a resource's calls in a context; "" is the default context.
func (t *Tree) LookCall(c *ClusterNode, context string) *DefaultNode {
	if context == "" {
		context = DefaultContext
	}
	entrance, ok := t.entrances.Find(context)
	switch {
	case ok:
	case context == OverflowName || !t.entrances.HasPlace(context):
		context, entrance = OverflowName, t.overflow
	default:
		entrance = &EntranceNode{name: context}
	}
	if n, ok := c.calls.Find(context); ok {
		return n
	}
	if !c.calls.HasPlace(context) {
		if n, ok := c.calls.Find(OverflowName); ok {
			return n
		}
		entrance = t.overflow
	}
	n := &DefaultNode{entrance: entrance, cluster: c}
	n.Init(t.layout)
	return n
}

// LookOrigin returns the node of a caller of the resource.
func (t *Tree) LookOrigin(c *ClusterNode, name string) *OriginNode {
	if o, ok := c.origins.Find(name); ok {
		return o
	}
	if !c.origins.HasPlace(name) {
		if o := c.OverflowOrigin(); o != nil {
			return o
		}
		return t.newOrigin(OverflowName, true)
	}
	return t.newOrigin(name, false)
}

// LookWindow returns the window for m or, if there is none, a new one with the contents that it
// would have.
func (n *StatisticNode) LookWindow(now int64, m meter.Meter) (w *stat.Window, found bool) {
	if w := n.FindWindow(m); w != nil {
		return w, true
	}
	w, err := stat.NewWindow(m.Shape)
	if err != nil {
		panic(err) // as in Window
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.SeedWindow(w, now, n.past)
	return w, false
}

// LookSemaphore returns the node's semaphore for owner or, if there is none, a new one with the
// contents that it would have.
func (n *StatisticNode) LookSemaphore(owner any) *meter.Semaphore {
	if g := n.seeded().Semaphore(owner); g != nil {
		return g
	}
	g := new(meter.Semaphore)
	if meter.CountsAll(owner) {
		g.Acquire(0, n.UnitsInFlight())
	}
	return g
}
