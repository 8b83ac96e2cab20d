package core

import (
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/node"
)

// Site is a resource as the rules of a revision come to it.
type Site struct {
	Resource *Resource
	Now      int64
	// Held is what the family keeps for the resource, nil if nothing: it comes as the rules
	// that were bound there before left it, and Bind leaves what the next ones will find.
	Held any
	// Common is what the controllers of the family at the resource have in common. It is
	// kept with them.
	Common any

	Name    string          // that the resource stands for: its own, but for the overflow resource
	Matched pattern.Matched // what matches the name; if pending, what is known of that
	Pending bool            // the name has not been matched yet: that is for a call to do
	Asked   bool            // a call has come to the resource
	// Looks says that nobody will be judged by what is built: somebody wants to know what the rules
	// would have at the resource, which stands alone. It is forgotten afterwards: nothing that
	// BeforeUse was told is called, and nothing of other resources may be touched.
	Looks bool

	built map[any]any // controllers, by those that they were built from; nil if nobody asks
	last  []func(now int64)
}

// NewSite returns the site of a resource, which need not be one of the engine's, for rules that
// apply by its name. It is for a family that has a place of its own.
func NewSite(r *Resource, now int64) *Site { return &Site{Resource: r, Now: now, Name: r.Name()} }

// BeforeUse has f called when all is built for the resource, right before the first call
// goes by it: the place for what is to take over from the rules before. f must not call
// anything of the user's, such as the clock.
func (at *Site) BeforeUse(f func(now int64)) { at.last = append(at.last, f) }

// HandOver does what is left to do before the first call.
func (at *Site) HandOver(now int64) {
	for _, f := range at.last {
		f(now)
	}
}

// Settled reports whether the rules that apply to the resource by its own name have been found.
func (at *Site) Settled() bool { return !at.Pending && at.Name == at.Resource.Name() }

// Successor is what the update that is under way has built before from a controller, nil if
// nothing.
func (at *Site) Successor(old any) any { return at.built[old] }

// SetSuccessor notes what is built from a controller.
func (at *Site) SetSuccessor(old, successor any) {
	if at.built != nil {
		at.built[old] = successor
	}
}

// Beyond reports whether the resource stands for a name beyond the cap.
func (at *Site) Beyond() bool { return at.Resource.Name() == node.OverflowName }
