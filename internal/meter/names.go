package meter

import "github.com/penstock-go/penstock/stat"

// Meter names one window of a node. Rules that agree on the shape share a window, in which every
// call of the node counts. A rule that must not count all calls has its own window, named by Owner,
// in which only the calls that it admits count. A rule that changed its shape has its own window
// too, but every call counts there; see [Era].
type Meter struct {
	Shape stat.Shape
	Owner any // nil for the shared window; otherwise comparable
	Era   Era
}

// Era distinguishes windows of one shape. A rule that changes its shape continues in a new window
// of its own, which holds exactly the units that were handed over and the units that the rule took.
// Calls still under older rules may use the older rules' windows.
type Era struct {
	Rule     string // empty for the first
	Revision uint64
}

// MeteredWindow is a window of a node.
type MeteredWindow struct {
	*stat.Window
	Meter
	all bool
}

// All reports whether every call of the node counts in the window.
func (w *MeteredWindow) All() bool { return w.all }

// MeteredSemaphore is a semaphore of a node. Owner names its rule, as in [Meter]. If it has no
// owner, or its owner is [Shared], every call of the node counts in it.
type MeteredSemaphore struct {
	*Semaphore
	Owner any
	all   bool
}

// Shared is the owner of a semaphore in which every call of the node counts, in addition to the
// semaphore without an owner. It is for a family whose calls hold no permits while they wait for
// them. The text distinguishes families.
type Shared string

// All reports whether every call of the node counts in the semaphore.
func (g *MeteredSemaphore) All() bool { return g.all }

// ShadowOwner owns a meter for a rule in shadow mode. Of is the owner that the meter would have
// otherwise: if Of is nil, every call of the node counts in the meter, separately from the meters
// of enforced rules. A node may drop such a meter, regardless of its contents.
type ShadowOwner struct{ Of any }

// isShadow reports whether the meter of that owner is for a rule in shadow mode.
func isShadow(owner any) bool {
	_, is := owner.(ShadowOwner)
	return is
}

// CountsAll reports whether every call of the node counts in the meter of that owner.
func CountsAll(owner any) bool {
	switch owner := owner.(type) {
	case nil, Shared:
		return true
	case ShadowOwner:
		return CountsAll(owner.Of)
	}
	return false
}
