package family

import (
	"fmt"
	"math"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// Cost has the fields of a rule that counts what calls cost; Unit is empty for a rule that counts
// the calls.
type Cost struct {
	Unit                               string
	Estimate, MaxReserve, MaxOverdraft float64
}

// MaxOverdraft is the maximum of the field.
const MaxOverdraft = 100

// Amount returns the units that a call takes under a rule with a unit; 0 if the call names no cost
// in that unit, and the rule has no estimate. A running call that asks for more takes just that.
func (c *Cost) Amount(inv *engine.Invocation) int64 {
	return Amount(inv, c.Unit, c.Estimate, c.MaxReserve)
}

// Amount is [Cost.Amount] with the fields by themselves, which is faster than copying them.
func Amount(inv *engine.Invocation, unit string, estimate, maxReserve float64) int64 {
	n := inv.CostOf(unit)
	if inv.AsksMore() {
		return n
	}
	if n == 0 {
		inv.NamesNoCost()
		n = int64(estimate)
	}
	if maxReserve > 0 {
		n = min(n, int64(maxReserve))
	}
	return n
}

// Overdrawn returns what settled calls are charged at most under a limit.
func (c *Cost) Overdrawn(limit int64) int64 {
	if c.MaxOverdraft == 0 {
		return math.MaxInt64
	}
	return limit + int64(float64(limit)*c.MaxOverdraft)
}

// Check returns an error if the unit's name is invalid, or if a field has no meaning without a unit.
func (c Cost) Check() error {
	switch {
	case c.Unit == engine.UnitOfCalls:
		return spec.BadField("unit", "is calls, which a rule counts without a unit: remove it")
	case c.Unit != "":
		if !engine.ValidUnit(c.Unit) {
			return spec.BadField("unit", "is %.100q: use 1 to %d letters, digits, '.', '_' or '-'", c.Unit, engine.MaxUnitName)
		}
		return nil
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"estimate", c.Estimate}, {"maxReserve", c.MaxReserve}, {"maxOverdraft", c.MaxOverdraft}} {
		if f.value != 0 {
			return spec.BadField(f.name, "has no meaning for a rule that counts calls: remove it, or set unit to what the calls cost")
		}
	}
	return nil
}

// CheckNumbers returns an error for the first number out of range.
func (c Cost) CheckNumbers(threshold float64) error {
	whole := func(n, most float64) bool { return n >= 0 && n <= most && n == math.Floor(n) }
	switch {
	case !whole(c.Estimate, min(threshold, engine.MaxCost)) && c.Estimate != 0:
		return spec.BadField("estimate", "is %v: use a whole number from 1 to the threshold, %v, or 0 for none", c.Estimate, threshold)
	case !whole(c.MaxReserve, engine.MaxCost):
		return spec.BadField("maxReserve", "is %v: use a whole number from 1 to %d, or 0 for no maximum", c.MaxReserve, int64(engine.MaxCost))
	case !(c.MaxOverdraft >= 0 && c.MaxOverdraft <= MaxOverdraft):
		return spec.BadField("maxOverdraft", "is %v: use a share of the threshold above 0, up to %d, as in 0.25, or 0 for no bound", c.MaxOverdraft, MaxOverdraft)
	}
	return nil
}

// Units checks how many units the rules of a family name; see engine.MaxUnits. The zero value is
// ready.
type Units struct{ names map[string]bool }

// Add returns an error if the unit of the rule at index i is one too many.
func (u *Units) Add(family string, i int, unit string) error {
	if unit == "" || u.names[unit] {
		return nil
	}
	if u.names == nil {
		u.names = make(map[string]bool)
	}
	u.names[unit] = true
	if len(u.names) > engine.MaxUnits {
		return fmt.Errorf("%s[%d].%w", family, i, spec.BadField("unit", "is one unit too many: the rules of a family count in at most %d", engine.MaxUnits))
	}
	return nil
}
