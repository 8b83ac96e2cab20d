package engine

import (
	"iter"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// Resource is a guarded name, with its node over all contexts and the rules that apply to it. It is
// safe for concurrent use.
type Resource struct {
	*node.ClusterNode
	engine *Engine

	// mu is held while rules in force are bound to the resource.
	mu   shared.Mutex
	next prepared // guarded by mu

	// bound is the state of the rules here. A call that finds the engine's rule set in it uses it;
	// other calls look further; see [Engine.lookUp]. So one set of rules serves a whole decision,
	// and the hot path looks nothing up.
	bound shared.Pointer[binding]

	// askUntil is the time until which rules are asked before any takes; see [Invocation.direct].
	askUntil shared.Int64

	reasons shared.Pointer[map[cause]*core.BlockError] // see Invocation.Refuse; replaced as a whole
	recent  shared.Pointer[recent]                     // nil if none are kept
	units   unitStats
}

// binding is the rules of one resource in one rule set, with their state there. It is immutable.
type binding struct {
	set      *Snapshot // nil if no call can use it: it only keeps state for the next binding
	revision uint64    // of the rules that hold it
	held     []kept
	known    uint64 // revision up to whose expressions the name has been matched

	rules       [kinds]Checker  // of the families
	checkers    []Checker       // checkers of the chain that decide on calls here, in order
	recheckers  []Rechecker     // checkers that are asked again after a wait
	shadows     []ShadowChecker // checkers with rules in shadow mode
	sharers     []sharer        // the last of the checkers: may have to fetch units
	costers     []Coster        // checkers that have rules with a unit
	costSharers []Sharer        // those of their rules that have shared limits
	uncosted    *uncosted       // nil if there are no costers
	direct      bool            // each can take without being asked: see Invocation.direct
	asksFirst   bool            // as there are several, they are asked for a while after a rejection
}

// kept is a family's state at a resource.
type kept struct {
	kind core.Kind
	held any
}

// heldBy returns a family's state at the resource, or nil if there is none. b may be nil.
func (b *binding) heldBy(kind core.Kind) any {
	if b != nil {
		for _, k := range b.held {
			if k.kind == kind {
				return k.held
			}
		}
	}
	return nil
}

// matchedUpTo is known, even for a nil binding.
func (b *binding) matchedUpTo() uint64 {
	if b == nil {
		return 0
	}
	return b.known
}

// Held returns a family's state at the resource, or nil if there is none.
func (r *Resource) Held(kind core.Kind) any { return r.bound.Load().heldBy(kind) }

// bind finds the slots of the chain that have rules in the binding.
func (c *Chain) bind(b *binding) *binding {
	b.direct = true
	for _, slot := range c.checking {
		slot, holds, shadows := slot.in(b)
		if shadows != nil {
			b.shadows = append(b.shadows, shadows)
		}
		if holds {
			b.checkers = append(b.checkers, slot.checker)
			direct, ok := slot.checker.(interface{ Direct() bool })
			b.direct = b.direct && ok && direct.Direct()
		}
		if slot.rechecker != nil {
			b.recheckers = append(b.recheckers, slot.rechecker)
		}
		if sharing, ok := slot.checker.(interface{ Shares() Sharer }); ok {
			if s := sharing.Shares(); s != nil {
				b.sharers = append(b.sharers, sharer{s, slot.name})
			}
		}
		b.addCoster(slot.checker)
	}
	for _, s := range b.sharers {
		b.checkers = append(b.checkers, s.Sharer)
		direct, ok := s.Sharer.(interface{ Direct() bool })
		b.direct = b.direct && len(b.checkers) == 1 && ok && direct.Direct()
	}
	b.asksFirst = b.direct && len(b.checkers) > 1
	b.uncosted = newUncosted(b.costers)
	return b
}

// Idle reports whether the resource can leave: its nodes are idle, and so is the state of its
// rules.
func (r *Resource) Idle(now int64) bool {
	if !r.ClusterNode.Idle(now) {
		return false
	}
	if b := r.bound.Load(); b != nil {
		for _, k := range b.held {
			if busy, ok := k.held.(interface{ Idle(now int64) bool }); ok && !busy.Idle(now) {
				return false
			}
		}
	}
	return true
}

// depart drops the rule set when the resource leaves, because a long time may pass until the
// resource returns or is forgotten. The state of the rules here is dropped with it.
func (r *Resource) depart() {
	r.recent.Store(nil)
	for {
		b := r.bound.Load()
		if b == nil || b.set == nil || r.bound.CompareAndSwap(b, &binding{revision: b.revision, held: b.held, known: b.known}) {
			return
		}
	}
}

// resources are the engine's resources and their cap.
type resources struct {
	*node.Registry[Resource, *Resource]
	overflow *Resource // for names beyond the cap
}

// Clusters yields the nodes of all resources.
func (r *resources) Clusters() iter.Seq[*node.ClusterNode] {
	return func(yield func(*node.ClusterNode) bool) {
		for resource := range r.all() {
			if !yield(resource.ClusterNode) {
				return
			}
		}
	}
}

func (r *resources) all() iter.Seq[*Resource] {
	return func(yield func(*Resource) bool) {
		for _, resource := range r.All() {
			if resource != r.overflow && !yield(resource) {
				return
			}
		}
		yield(r.overflow)
	}
}
