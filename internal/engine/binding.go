package engine

import (
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/node"
)

// Binding is a resource as the rules of a revision are bound to it.
type Binding struct {
	Resource *Resource
	Now      int64
	// Held is what the family keeps for the resource, nil if nothing: it is what the rules bound
	// there before have left, and Bind replaces it with what the next rules will find.
	Held any
	// Common is what the controllers of the family at the resource have in common. It is
	// kept with them.
	Common any

	Name    string          // that the resource stands for: its own, except for the overflow resource
	Matched pattern.Matched // what matches the name; if pending, as far as known
	Pending bool            // the name has not been matched yet, which is left to a call
	Asked   bool            // a call has asked for the resource
	// Looks says that no call will be judged by what is built: a reader wants to know what the
	// rules would have at the resource, which is outside the tree. The result is forgotten
	// afterwards: no function passed to BeforeUse is called, and nothing of other resources may be
	// touched.
	Looks bool

	built map[any]any // controllers, by those that they were built from; nil if not needed
	last  []func(now int64)
}

// NewSite returns the site of a resource, which need not be one of the engine's, for rules that
// apply by its name. It is for a family that keeps a resource of its own.
func NewBinding(r *Resource, now int64) *Binding {
	return &Binding{Resource: r, Now: now, Name: r.Name()}
}

// BeforeUse registers f to be called when everything is built for the resource, right before the
// first call goes by it: the place to take over from the rules before. f must not call the user's
// code, such as the clock.
func (at *Binding) BeforeUse(f func(now int64)) { at.last = append(at.last, f) }

// HandOver calls what BeforeUse registered.
func (at *Binding) HandOver(now int64) {
	for _, f := range at.last {
		f(now)
	}
}

// Settled reports whether the rules that apply to the resource by its own name have been found.
func (at *Binding) Settled() bool { return !at.Pending && at.Name == at.Resource.Name() }

// Successor is what the update under way has already built from a controller, nil if nothing.
func (at *Binding) Successor(old any) any { return at.built[old] }

// SetSuccessor notes what was built from a controller.
func (at *Binding) SetSuccessor(old, successor any) {
	if at.built != nil {
		at.built[old] = successor
	}
}

// Beyond reports whether the resource stands for a name beyond the cap.
func (at *Binding) Beyond() bool { return at.Resource.Name() == node.OverflowName }
