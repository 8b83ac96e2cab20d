package core

import (
	"iter"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// Resource is something guarded: a name, its node over all contexts, and the
// rules that apply to it. It is safe for concurrent use.
type Resource struct {
	*node.ClusterNode
	engine *Engine

	// bound is a cache: a call that finds another rule set in it than the engine
	// has looks its rules up anew. So one set of rules serves a whole decision, and
	// the hot path looks nothing up.
	bound shared.Pointer[binding]

	// wary is the time until which rules are asked before any takes, see [Decider].
	wary shared.Int64
}

// binding is the rules of one resource in one rule set. It doesn't change.
type binding struct {
	set   *Ruleset // nil when the resource has left: the set doesn't know these rules
	rules [kinds]any

	// judges are the checkers that have something to say here, see [FamilyChecker].
	judges   []Checker
	deciders []Decider // in place of them if atOnce, see [Decider]
	atOnce   bool

	completed *completers // who record the end of a call
}

// lookUp finds the rules that are in force for a resource by that name. It waits while
// these are being replaced: the next set takes over what there is of this one, once, and
// what calls made of this one after that would stand beside it. Calls that have found
// their rules go by them until the next set is in force, and wait for nothing.
func (e *Engine) lookUp(r *Resource, name string) *binding {
	e.binding.Lock()
	defer e.binding.Unlock()
	set := e.rules.Load()
	if r == e.resources.overflow {
		return e.bindAs(r, name, set)
	}
	if last := r.bound.Load(); last != nil && last.set == set {
		return last
	}
	b := e.rebind(r, set)
	r.bound.Store(b)
	return b
}

// rebind finds the rules of a resource anew.
func (e *Engine) rebind(r *Resource, set *Ruleset) *binding {
	last := r.bound.Load()
	if last != nil && last.set == nil {
		for kind, family := range set.families {
			if family != nil && last.rules[kind] != nil {
				family.Adopt(r, last.rules[kind])
			}
		}
	}
	return e.bindAs(r, r.Name(), set)
}

// rebound is what a resource is bound to when the next set comes into force.
type rebound struct {
	resource   *Resource
	last, next *binding
}

// take binds the resource, unless a call did, or it has left meanwhile.
func (b rebound) take() { b.resource.bound.CompareAndSwap(b.last, b.next) }

// depart makes the resource bring its rules along when it comes back.
func (r *Resource) depart() {
	for {
		b := r.bound.Load()
		if b == nil || r.bound.CompareAndSwap(b, &binding{rules: b.rules}) {
			return
		}
	}
}

// bindAs finds the rules for a name that a resource stands for. For the overflow
// resource that is done for each call: the calls share its node and its limits, but
// each is subject to the rules of its own name.
func (e *Engine) bindAs(r *Resource, name string, set *Ruleset) *binding {
	b, ruled := binding{set: set}, false
	for kind, family := range set.families {
		if family != nil {
			b.rules[kind] = family.Bind(r, name)
			ruled = ruled || b.rules[kind] != nil
		}
	}
	if !ruled {
		return set.bare
	}
	return e.staff(&b)
}

// bare is the binding of the resources to which no rule of the set applies.
func (e *Engine) bare(set *Ruleset) *binding {
	return e.staff(&binding{set: set})
}

// staff finds who of the chain has to do with the rules.
func (e *Engine) staff(b *binding) *binding {
	b.judges = e.chain.judges(&b.rules)
	b.deciders, b.atOnce = e.chain.deciders(&b.rules, b.judges)
	b.completed = e.completers(&b.rules)
	return b
}

// Idle reports whether the resource can leave: its nodes are idle, and so is
// whatever its rules hold.
func (r *Resource) Idle(now int64) bool {
	if !r.ClusterNode.Idle(now) {
		return false
	}
	if b := r.bound.Load(); b != nil {
		for _, rules := range b.rules {
			if busy, ok := rules.(interface{ Idle(now int64) bool }); ok && !busy.Idle(now) {
				return false
			}
		}
	}
	return true
}

// resources are the engine's, with the cap that goes for them.
type resources struct {
	*node.Registry[Resource, *Resource]
	overflow *Resource         // of names beyond the cap
	forget   func(name string) // told about names that have left
	departed []string          // names that left in the present search; one runs at a time
}

// Evict removes every idle resource and returns how many.
func (r *resources) Evict(now int64) int {
	n := r.Registry.Evict(now)
	departed := r.departed
	r.departed = nil // or it would keep as many names as there were nodes
	for _, name := range departed {
		r.forget(name)
	}
	return n
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
