package core

import "github.com/penstock-go/penstock/node"

// Ruleset is one revision of the rules of all families. It doesn't change once
// made. An engine has one at a time, in one pointer, so that a decision sees one
// whole revision.
type Ruleset struct {
	Revision uint64
	families [kinds]Family
	bare     *binding // of all resources without rules
}

// Family is the compiled rules of one family.
type Family interface {
	// Bind returns the rules that apply to a resource, in whatever form the
	// family's slot wants them (see [Invocation.Rules]), or nil if there are none.
	// name is the resource's, except for the overflow resource, which stands for
	// many (see [Table.BindAs]).
	Bind(r *Resource, name string) any
	// Names says what the rules name. It has a node outside the caps for as long.
	Names(*Names)
	// Keeps reports whether a rule needs this meter on nodes of this role of the
	// resource.
	Keeps(resource string, role Role, meter node.Meter) bool
	// KeepsGauge is Keeps for gauges.
	KeepsGauge(resource string, role Role, owner any) bool
	// Figures says what each rule has done.
	Figures() []RuleFigures
	// EachError calls f with the refusal of every rule and resource.
	EachError(f func(*BlockError))
	// Forget drops what the family keeps for a resource that has left. If it was in
	// use and comes back, Adopt is given what Bind had returned for it, perhaps under
	// older rules.
	Forget(resource string)
	Adopt(r *Resource, rules any)
}

// Role is which of a resource's nodes is meant.
type Role uint8

// The roles.
const (
	RoleCluster Role = iota // the resource's node over all contexts
	RoleCall                // its nodes in single contexts
	RoleOrigin              // its nodes of single callers
	RoleInbound             // the node of all inbound calls, whose resource has no name
)

// Rules is the present rule set.
func (e *Engine) Rules() *Ruleset { return e.rules.Load() }

// Family returns the compiled rules of a family, or nil.
func (s *Ruleset) Family(kind Kind) Family { return s.families[kind] }
