package engine

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/internal/meter"
)

// kinds is the number of families, including custom slots and none.
const kinds = core.KindCustom + 1

// Snapshot is one revision of the rules of all families. It is immutable. An engine has one at a
// time, behind one pointer, so that a decision sees one whole revision.
type Snapshot struct {
	Revision uint64
	families [kinds]Family
	latest   uint64   // revision that added the latest expression
	bare     *binding // of all resources without rules

	pending *binding // see pendingBinding; used only by the update

	completers []Completer // see SnapshotBuilder.OnComplete
	attached   any
	hears      bool // see [SnapshotBuilder.HearAnswers]
}

// Family is the compiled rules of one family.
type Family interface {
	// Match finds the expressions that match a name. held is the family's state at the resource of
	// that name, which has been matched with the expressions of the rules up to revision and is not
	// matched with those again. Known is Match limited to earlier matches, and Latest returns the
	// revision that added the latest expression.
	Match(name string, held any, revision uint64) pattern.Matched
	Known(held any, revision uint64) pattern.Matched
	Latest() uint64
	// Bind returns the rules that apply to a resource, or nil if there are none, and stores their
	// state there (see Index.Hold of package family). Taking over from older rules happens in
	// [Binding.BeforeUse]. Bind is called under the resource's lock, but an update may concurrently
	// call Bind of the next set.
	Bind(at *Binding) Checker
	// Names adds the names in the enforced rules. They have nodes outside the caps as long as rules
	// name them.
	Names(*Names)
	// Needs calls need for each meter that the rules use on a resource's nodes, given their state
	// there and the revision up to which its name has been matched; and, if the resource is pending
	// (see Index.Pending of package family), for meters that might be needed by rules that come to
	// apply once its name is matched. Looks does the same for resources that the rules only read.
	Needs(held any, known uint64, need func(Need))
	Looks(need func(resource string, n Need))
	// Choices returns, for each rule that matches a name, whether it applies there and why.
	// resource is the resource of that name, or another if the name is beyond the cap.
	Choices(name, resource string) []core.Choice
	// Stats returns the stats of each rule.
	Stats() []core.RuleStats
	// EachError calls f with the rejection of every rule and resource.
	EachError(f func(*core.BlockError))
}

// Need is a meter that a rule uses on the nodes of a role.
type Need struct {
	Role      Role
	Semaphore bool        // otherwise a window
	Meter     meter.Meter // for a semaphore, only the owner matters
}

// Role selects nodes of a resource.
type Role uint8

// The roles.
const (
	RoleCluster Role = iota // the resource's node over all contexts
	RoleCall                // its nodes in single contexts
	RoleOrigin              // its nodes for single callers
	RoleInbound             // the node of all inbound calls, whose resource has no name
)

// Rules returns the current rule set.
func (e *Engine) Rules() *Snapshot { return e.rules.Load() }

// Attached returns the value attached to the set (see [SnapshotBuilder.Attach]), or nil if there is
// none.
func (s *Snapshot) Attached() any { return s.attached }

// Family returns the compiled rules of a family, or nil.
func (s *Snapshot) Family(kind core.Kind) Family { return s.families[kind] }

// RuleStats returns the stats of every rule, family by family, in the order of declaration.
func (s *Snapshot) RuleStats() []core.RuleStats {
	var stats [kinds][]core.RuleStats
	for kind, family := range s.families {
		if family != nil {
			stats[kind] = family.Stats()
		}
	}
	return slices.Concat(stats[:]...)
}
