package engine

import (
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/node"
)

// Binding connects a resource with the rules of a revision.
type Binding struct {
	Resource *Resource
	Now      int64
	// Held is the family's state at the resource, or nil if there is none. Bind receives the state
	// of the previous rules and replaces it with the state for the next ones.
	Held any
	// Common is state shared by the controllers of the family at the resource. It is kept with
	// them.
	Common any

	Name    string          // name that the resource stands for: its own, except for the overflow resource
	Matched pattern.Matched // expressions that match the name; incomplete if pending
	Pending bool            // the name has not been matched yet; a call does that
	Asked   bool            // a call has asked for the resource
	// Looks is true if the result decides on no call: a reader asks for the state that the rules
	// would have at the resource, which is outside the tree. The result is dropped afterwards:
	// functions passed to BeforeUse are not called, and other resources must not be touched.
	Looks bool

	built map[any]any // controllers, by their predecessors; nil if not needed
	last  []func(now int64)
}

// NewBinding returns a binding of a resource, which need not be one of the engine's, for rules that
// apply by its name. It is for a family that keeps its own resource.
func NewBinding(r *Resource, now int64) *Binding {
	return &Binding{Resource: r, Now: now, Name: r.Name()}
}

// BeforeUse registers f to be called when everything is built for the resource, right before the
// first call uses it, to take over from earlier rules. f must not call custom code, such as the
// clock.
func (at *Binding) BeforeUse(f func(now int64)) { at.last = append(at.last, f) }

// HandOver calls the functions registered with BeforeUse.
func (at *Binding) HandOver(now int64) {
	for _, f := range at.last {
		f(now)
	}
}

// Settled reports whether the rules that apply to the resource by its own name have been found.
func (at *Binding) Settled() bool { return !at.Pending && at.Name == at.Resource.Name() }

// Successor returns the controller that the update under way has already built from another, or
// nil.
func (at *Binding) Successor(old any) any { return at.built[old] }

// SetSuccessor records the controller built from another.
func (at *Binding) SetSuccessor(old, successor any) {
	if at.built != nil {
		at.built[old] = successor
	}
}

// Beyond reports whether the resource stands for a name beyond the cap.
func (at *Binding) Beyond() bool { return at.Resource.Name() == node.OverflowName }
