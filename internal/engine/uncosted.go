package engine

import "slices"

// uncosted counts the calls that name no cost in a unit of the resource's rules, nor ask for more of it
// while they run. So a place in the program that forgot its cost is found: its calls pass rules with
// the unit, or take their estimate.
//
// It learns of a call where rules in shadow mode decide, since no step is added for resources whose
// rules have no unit.
type uncosted struct{ units []string }

func newUncosted(costers []Coster) *uncosted {
	var units []string
	for _, c := range costers {
		units = append(units, c.Units()...)
	}
	slices.Sort(units)
	return &uncosted{slices.Compact(units)}
}

// Modes returns false and true.
func (*uncosted) Modes() (hold, shadow bool) { return false, true }

// Shadow makes a call without one of the costs be counted when it ends.
func (u *uncosted) Shadow(inv *Invocation) {
	for _, unit := range u.units {
		if inv.CostOf(unit) == 0 {
			inv.OnComplete(u, 0)
			return
		}
	}
}

// Complete counts the call.
func (u *uncosted) Complete(inv *Invocation, _ int64) {
	for _, unit := range u.units {
		if i := inv.costAt(unit); i < 0 || inv.costs[i].n+inv.costs[i].more == 0 {
			inv.resource.units.of(unit).addUncosted(inv.now)
		}
	}
}
