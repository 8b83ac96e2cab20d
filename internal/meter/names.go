package meter

import "github.com/penstock-go/penstock/stat"

// Meter names one window of a node. Rules that agree on the shape share a
// window, in which every call of the node counts. A rule that must not count all calls has a
// window to itself, named by Owner, in which only what it admits counts. A rule that changed its
// shape has one too, but there every call counts; see [Era].
type Meter struct {
	Shape stat.Shape
	Owner any // nil for the shared window; otherwise a comparable value
	Era   Era
}

// Era distinguishes windows of one shape. A rule that changes to another shape continues in a
// window that no rule had before it and that it shares with none: this holds exactly what was
// handed over and what the rule took. Calls that are still judged by older rules may use the older
// rules' windows.
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

// MeteredSemaphore is a semaphore of a node. Owner names the rule it is for, as in [Meter]. If it
// has no owner, or its owner is [Shared], every call of the node counts in it.
type MeteredSemaphore struct {
	*Semaphore
	Owner any
	all   bool
}

// Shared is the owner of a semaphore in which every call of the node counts, in addition to the one
// without an owner: for a family whose permits a call does not hold while it waits for them. The
// text distinguishes families.
type Shared string

// All reports whether every call of the node counts in the semaphore.
func (g *MeteredSemaphore) All() bool { return g.all }

// ShadowOwner owns a meter for a rule in shadow mode. Of is the owner that the meter would have
// otherwise: if that is nil, every call of the node counts there, separately from what enforced
// rules look at. A node may leave whatever such a meter holds, as if the meter didn't exist.
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
