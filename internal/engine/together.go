package engine

import (
	"iter"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// # Rules that count many resources together
//
// The state of such a rule is kept at a home: a resource of its own, outside the registry and the
// tree, which no call asks for. So nothing is counted there except what the rule itself takes, and a
// meter of the home needs no owner: every call of the home counts in it.
//
// Calls never bind a home. An update does, after the rules are validated and before it prepares
// resources (see [Engine.Update]): it builds the controller of the next rules, which hands over as at
// a resource, while calls still use the current ones. So a rule has one controller in each set of
// rules, and every resource that the rule applies to uses it. A home stays the same as long as the
// rule goes on.
//
// # Nested calls
//
// A call below another that the rule has counted isn't counted again: it is part of that call, and
// in a semaphore it could wait for a permit that the outer call holds. A call is below another if its
// context comes from that call's entry, whatever goroutine it is made from; and only as long as the
// outer call has not exited. A call that begins later is counted, since by then the outer call may
// hold nothing; one that began earlier and runs on isn't. That is decided once for each call, in the
// order of its rules, and the only shared state is the generation of the outer entry: an outer call
// that exits meanwhile makes the call either nested or counted, and each is true of some instant.

// Homed is a [Family] that may have rules with homes.
type Homed interface {
	// BindHomes builds the controllers of the next rules at their homes, once for a set of rules.
	// It must not call custom code.
	BindHomes(now int64)
	// Homes yields the homes.
	Homes() iter.Seq[*Resource]
}

// NewHome returns a home. Its name is never shown.
func (e *Engine) NewHome() *Resource { return e.alone("(together)") }

// Keep stores a family's state at a home.
func (r *Resource) Keep(kind core.Kind, held any, revision uint64) {
	r.bound.Store(&binding{revision: revision, held: []kept{{kind, held}}, known: revision})
}

// bindHomes binds the homes of all rules in the set.
func (s *Snapshot) bindHomes(now int64) {
	for _, family := range s.families {
		if f, ok := family.(Homed); ok {
			f.BindHomes(now)
		}
	}
}

// trimHomes drops the meters of homes that rules no longer need.
func (s *Snapshot) trimHomes() {
	for _, family := range s.families {
		if f, ok := family.(Homed); ok {
			for home := range f.Homes() {
				s.trim(home, nil)
			}
		}
	}
}

// within lists the calls that a call is nested in, with the homes of the rules that have counted them.
// It is immutable.
type within struct {
	home  *Resource
	entry Entry
	outer *within
}

// CountAt reports whether the rule with that home counts the call: not if the call is nested in one
// that it has counted. From then on the calls nested in this one aren't counted there, if it is
// admitted.
func (inv *Invocation) CountAt(home *Resource) bool {
	if slices.Contains(inv.homes, home) {
		return true
	}
	if inv.NestedAt(home) {
		return false
	}
	inv.homes = append(inv.homes, home)
	return true
}

// NestedAt reports whether the call is nested in one that the rule with that home has counted.
func (inv *Invocation) NestedAt(home *Resource) bool {
	if inv.context == nil {
		return false
	}
	for w := inv.context.within; w != nil; w = w.outer {
		if w.home == home && w.entry.runs() {
			return true
		}
	}
	return false
}

// runs reports whether the call has not exited.
func (e Entry) runs() bool { return e.inv.word.Load()>>flagBits == e.generation }

// below returns the list for calls nested in the one of e.
func (inv *Invocation) below(e Entry) (w *within) {
	if inv.context != nil {
		w = inv.context.within
	}
	if len(inv.homes) == 0 {
		return w
	}
	for w != nil && !w.entry.runs() { // so that a chain of calls, each in the context of the last, stays short
		w = w.outer
	}
	for _, home := range inv.homes {
		w = &within{home, e, w}
	}
	return w
}
