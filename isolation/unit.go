package isolation

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
)

// Rules with a unit count what calls cost, such as bytes in memory, on a semaphore of their own. It
// has no queue: a call that doesn't fit is refused.

// cost returns the fields that go with a unit.
func (r *Rule) cost() family.Cost {
	return family.Cost{Unit: r.Unit, Estimate: r.Estimate, MaxReserve: r.MaxReserve}
}

// checkUnit refuses fields that a rule with this unit, or without one, doesn't read.
func (r Rule) checkUnit() error {
	switch err := r.cost().Check(); {
	case err != nil || r.Unit == "":
		return err
	case r.MaxQueue != 0:
		return spec.BadField("maxQueue", "has no meaning for a rule with a unit, which refuses calls that don't fit: remove maxQueue and maxWait, or unit")
	}
	return nil
}

// amount returns the units that the call takes; 0 if the rule doesn't apply to it.
func (c *controller) amount(inv *engine.Invocation) int64 {
	if c.rule.Unit == "" && !c.rule.Together {
		return inv.Units()
	}
	return c.amountOf(inv)
}

// amountOf is amount for a rule that doesn't apply to every call. It is not inlined, so that amount
// is.
//
//go:noinline
func (c *controller) amountOf(inv *engine.Invocation) int64 {
	n := inv.Units()
	if c.rule.Unit != "" {
		n = family.Amount(inv, c.rule.Unit, c.rule.Estimate, c.rule.MaxReserve)
	}
	if n > 0 && c.rule.Together && !family.AtHome(inv, c.resource, c.rule.Match) {
		return 0
	}
	return n
}

// units returns the semaphore of a rule with a unit.
func (c *controller) units() *meter.Semaphore { return c.resource.NeedSemaphore(c.owner) }

// askPrivate is like ask, but for a rule with its own semaphore.
func (c *controller) askPrivate(inv *engine.Invocation, revision uint64) bool {
	switch {
	case c.rule.Unit != "":
		return c.askCost(inv)
	case c.amount(inv) == 0:
		return true
	case c.shares():
		return c.askShare(inv, revision)
	}
	return c.ask(inv, revision)
}

// askCost reports whether the units of a rule with a unit would fit as of now.
func (c *controller) askCost(inv *engine.Invocation) bool {
	n := c.amount(inv)
	return n == 0 || c.units().Fits(n, int64(c.rule.Threshold))
}

// takePrivate is like take, but for a rule with its own semaphore.
func (c *controller) takePrivate(inv *engine.Invocation, revision uint64) bool {
	switch {
	case c.rule.Unit != "":
		return c.takeCost(inv)
	case c.amount(inv) == 0:
		return true
	case c.shares():
		return c.joinShare(inv, revision)
	}
	return c.take(inv, revision)
}

// takeCost acquires units for a rule with a unit.
func (c *controller) takeCost(inv *engine.Invocation) bool {
	n := c.amount(inv)
	if n == 0 {
		return true
	}
	g := c.units()
	if !g.TryAcquire(inv.Lane(), n, int64(c.rule.Threshold)) {
		return false
	}
	inv.ReserveSemaphoreFor(g, n, c.rule.Unit)
	return true
}

// shadowCost is takeCost for a rule in shadow mode.
func (c *controller) shadowCost(inv *engine.Invocation) {
	if !c.takeCost(inv) {
		c.record.ShadowBlocked.Add(inv.Lane(), 1)
	}
}

// explainCost is explain for a rule with a unit.
func (c *controller) explainCost(inv *engine.Invocation) core.Judgement {
	j, n := core.Judgement{Rule: c.rule.ID}, c.amount(inv)
	if n == 0 {
		return c.notJudged(inv, j)
	}
	g, limit := c.node(inv).LookSemaphore(c.owner), int64(c.rule.Threshold)
	if !g.Fits(n, limit) {
		j.Outcome = core.Refused
	}
	j.Measures = []core.Measure{engine.MeasureUnits(c.rule.Unit+" in flight", g.InUse(), limit)}
	return j
}

// notJudged is the judgement on a call that the rule doesn't apply to.
func (c *controller) notJudged(inv *engine.Invocation, j core.Judgement) core.Judgement {
	j.Outcome, j.Why = core.NotJudged, "applies only to calls with a cost in "+c.rule.Unit
	if c.rule.Together {
		j.Why = cmp.Or(family.NotAtHome(inv, c.resource, c.rule.Match), j.Why)
	}
	return j
}

// costs are the rules with a unit at a resource.
type costs struct {
	holding, shadows []*controller
	shared           family.SharedRules
	units            []string
}

// newCosts returns nil if no rule has a unit.
func newCosts(rs *checker) engine.Coster {
	calls := func(c *controller) bool { return c.rule.Unit == "" }
	x := &costs{
		holding: slices.DeleteFunc(slices.Clone(rs.private), calls),
		shadows: slices.DeleteFunc(slices.Clone(rs.shadows), calls),
	}
	for _, r := range rs.shared {
		if c, ok := r.(*controller); ok && !calls(c) {
			x.shared = append(x.shared, c)
			x.units = append(x.units, c.rule.Unit)
		}
	}
	for _, c := range slices.Concat(x.holding, x.shadows) {
		x.units = append(x.units, c.rule.Unit)
	}
	if len(x.units) == 0 {
		return nil
	}
	return x
}

// Shares returns the rules with a unit whose permits a cluster shares, or nil.
func (x *costs) Shares() engine.Sharer { return x.shared.Sharer() }

// Costs returns the rules with a unit, or nil.
func (rs *checker) Costs() engine.Coster { return rs.costs }

// Units returns the units of the rules.
func (x *costs) Units() []string { return x.units }

// AskCost returns the first refusal.
func (x *costs) AskCost(inv *engine.Invocation) engine.Verdict {
	for _, c := range x.holding {
		if !c.askCost(inv) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	return engine.Verdict{}
}

// TakeCost lets every rule with the cost's unit take.
func (x *costs) TakeCost(inv *engine.Invocation) engine.Verdict {
	for _, c := range x.holding {
		if !c.takeCost(inv) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	return engine.Verdict{}
}

// ShadowCost lets the rules in shadow mode take.
func (x *costs) ShadowCost(inv *engine.Invocation) {
	for _, c := range x.shadows {
		c.shadowCost(inv)
	}
}
