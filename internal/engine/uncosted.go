package engine

import "slices"

// uncosted counts the calls that name no cost in a unit of the resource's rules, nor ask for more of it
// while they run. So a place in the program that forgot its cost is found: its calls pass rules with
// the unit, or take their estimate.
//
// It learns of a call from a rule that finds no cost, and counts the call when it ends.
type uncosted struct{ units []string }

// newUncosted returns nil if no rule has a unit.
func newUncosted(costers []Coster) *uncosted {
	if len(costers) == 0 {
		return nil
	}
	var units []string
	for _, c := range costers {
		units = append(units, c.Units()...)
	}
	slices.Sort(units)
	return &uncosted{slices.Compact(units)}
}

// NamesNoCost makes the call be counted, once, as one that names no cost in a unit of a rule.
func (inv *Invocation) NamesNoCost() {
	if u := inv.bound.uncosted; u != nil && !inv.uncosted {
		inv.uncosted = true
		inv.OnComplete(u, 0)
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
