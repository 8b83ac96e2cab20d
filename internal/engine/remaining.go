package engine

import "github.com/penstock-go/penstock/core"

// Remainer is a [Checker] with rules that limit units in time. Remaining returns what the tightest
// of its enforced rules with that unit has left, as of inv.Now, or false if it has none.
type Remainer interface {
	Remaining(inv *Invocation, unit string) (core.Remaining, bool)
}

// Remaining returns what the decision on the call has left of the tightest rule with a unit. See
// api.Admitted.
func (e Entry) Remaining(unit string) (least core.Remaining, known bool) {
	if e.inv == nil || !e.set(flagBusy) {
		return least, false
	}
	inv := e.inv
	defer inv.word.And(^uint64(flagBusy))
	for _, c := range inv.bound.checkers {
		if r, ok := c.(Remainer); ok {
			LeastRemaining(&least, &known, r, inv, unit)
		}
	}
	return least, known
}

// LeastRemaining replaces least by what r has left, if that is tighter.
func LeastRemaining(least *core.Remaining, known *bool, r Remainer, inv *Invocation, unit string) {
	if next, ok := r.Remaining(inv, unit); ok && (!*known || next.Tighter(*least)) {
		*least, *known = next, true
	}
}
