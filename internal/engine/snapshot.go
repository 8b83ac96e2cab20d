package engine

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/internal/meter"
)

// kinds is how many families there are, and what goes by none.
const kinds = core.KindCustom + 1

// Snapshot is one revision of the rules of all families. It doesn't change once
// made. An engine has one at a time, in one pointer, so that a decision sees one
// whole revision.
type Snapshot struct {
	Revision uint64
	families [kinds]Family
	latest   uint64   // the revision that brought the latest of the expressions
	bare     *binding // of all resources without rules

	pending *binding // see pendingBinding; used only by the update

	completers []Completer // see SnapshotBuilder.OnComplete
	attached   any
}

// Family is the compiled rules of one family.
type Family interface {
	// Match finds the expressions that match a name. held is what the family keeps for the
	// resource of that name, which has been matched with the expressions of the rules up to a
	// revision and is not matched with those again. Known is Match limited to what is already
	// known, and Latest is the revision that brought the latest of the expressions.
	Match(name string, held any, revision uint64) pattern.Matched
	Known(held any, revision uint64) pattern.Matched
	Latest() uint64
	// Bind returns the rules that apply to a resource, nil if there are none, and leaves
	// what they hold there (see Index.Hold of package family). Whatever takes over from older rules
	// does so in [Binding.BeforeUse]. Bind is called under the resource's lock; but an update may call
	// Bind of the next set meanwhile.
	Bind(at *Binding) Checker
	// Names says what the enforced rules name. It has a node outside the caps for as long as they
	// name it.
	Names(*Names)
	// Needs reports which meters on the nodes of a resource the rules count with, given what they
	// hold there and the revision up to which its name has been matched; and, if the resource is
	// pending (see Index.Pending of package family), which meters might be needed by rules that
	// come to apply once its name is matched. Looks reports the same for resources that the rules
	// only look at.
	Needs(held any, known uint64, need func(Need))
	Looks(need func(resource string, n Need))
	// Choices says, for each rule that is about a name, whether it applies there and why. resource
	// is the resource of that name, or another where the name is beyond the cap.
	Choices(name, resource string) []core.Choice
	// Stats says what each rule has done.
	Stats() []core.RuleStats
	// EachError calls f with the refusal of every rule and resource.
	EachError(f func(*core.BlockError))
}

// Need is a meter that a rule counts with on the nodes of a role.
type Need struct {
	Role      Role
	Semaphore bool        // or a window
	Meter     meter.Meter // for a semaphore, only the owner matters
}

// Role says which of a resource's nodes is meant.
type Role uint8

// The roles.
const (
	RoleCluster Role = iota // the resource's node over all contexts
	RoleCall                // its nodes in single contexts
	RoleOrigin              // its nodes for single callers
	RoleInbound             // the node of all inbound calls, whose resource has no name
)

// Rules is the current rule set.
func (e *Engine) Rules() *Snapshot { return e.rules.Load() }

// Attached is what was attached to the set, see [SnapshotBuilder.Attach]; nil if nothing was.
func (s *Snapshot) Attached() any { return s.attached }

// Family returns the compiled rules of a family, or nil.
func (s *Snapshot) Family(kind core.Kind) Family { return s.families[kind] }

// RuleStats are the figures of every rule, family by family, in the order in
// which they were declared.
func (s *Snapshot) RuleStats() []core.RuleStats {
	var figures [kinds][]core.RuleStats
	for kind, family := range s.families {
		if family != nil {
			figures[kind] = family.Stats()
		}
	}
	return slices.Concat(figures[:]...)
}
