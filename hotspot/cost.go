package hotspot

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
)

// Rules with a unit count the costs of calls, for each value; settle.go settles them. They lend
// nothing to lanes.

// cost returns the fields that go with a unit.
func (r *Rule) cost() family.Cost {
	return family.Cost{Unit: r.Unit, Estimate: r.Estimate, MaxReserve: r.MaxReserve, MaxOverdraft: r.MaxOverdraft}
}

// checkUnit refuses fields that a rule with this unit, or without one, doesn't read.
func (r Rule) checkUnit() error {
	switch err := r.cost().Check(); {
	case err != nil || r.Unit == "":
		return err
	case r.MaxReserve != 0 && r.Behavior == Throttle:
		return spec.BadField("maxReserve", "has no meaning for behavior throttle, whose calls wait for what they reserve: remove it, or set behavior to reject or tokenBucket")
	case r.MaxOverdraft != 0 && (r.Metric == Concurrency || r.Behavior == Throttle):
		return spec.BadField("maxOverdraft", "has no meaning for metric concurrency and behavior throttle: remove it, or set behavior to reject or tokenBucket")
	case r.Window != Strict:
		return spec.BadField("unit", "has no meaning for strict: false, which lets up to twice the limit pass: remove it, or set strict to true")
	case r.MaxOverdraft != 0 && r.Shared():
		return spec.BadField("maxOverdraft", "has no meaning for cluster: no member knows what all of them are charged; remove maxOverdraft or cluster")
	}
	return nil
}

// checkUnitNumbers returns an error for the first number out of range.
func (r Rule) checkUnitNumbers() error {
	if err := r.cost().CheckNumbers(r.Threshold); err != nil {
		return err
	}
	if size := family.BucketSize(r.Burst); r.Behavior == TokenBucket && r.Estimate > float64(size) {
		return spec.BadField("estimate", "is %v: the bucket of a value holds %d, so use at most that, or a larger burst", r.Estimate, size)
	}
	return nil
}

// amount returns the units that the call takes of each of its values; 0 if the rule isn't about it.
func (c *controller) amount(inv *engine.Invocation) int64 {
	if c.rule.Unit == "" && c.home == nil {
		return inv.Units()
	}
	n := inv.Units()
	if c.rule.Unit != "" {
		cost := c.rule.cost()
		n = cost.Amount(inv)
	}
	if c.home != nil && n > 0 && !c.countsAtHome(inv) {
		return 0
	}
	return n
}

// countsAtHome reports whether a rule with a home is about the call. One without a value isn't
// counted there: a call nested in it may have the value.
func (c *controller) countsAtHome(inv *engine.Invocation) bool {
	if len(c.occurrences(inv)) == 0 {
		return c.rule.Match != spec.MatchExact || inv.Inbound()
	}
	return family.AtHome(inv, c.home, c.rule.Match)
}

// unitsOf returns the units that the call takes of a value: n for each time that it names the value,
// but a cost counts once, since it is settled once.
func (c *controller) unitsOf(o engine.Occurrence, n int64) int64 {
	if c.rule.Unit != "" {
		return n
	}
	return n * o.Times
}

// maxHeat bounds how much a single call heats a value, so that no sum overflows.
const maxHeat = 1 << 20

// takeCost is like take, but for a rule with a unit. The call reserves the units, to settle them.
func (c *controller) takeCost(inv *engine.Invocation, v argument.Value, n int64) (wait time.Duration, block *core.BlockError) {
	p := c.planOf(inv)
	now, q, hash := inv.Now(), c.quotaOf(v, p), v.Hash()
	s := c.values.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.obtainLocked(v, hash, now, q, c)
	if c.moves {
		q = c.limitLocked(x, p, q, now)
	}
	x.heat.add(now, min(n, maxHeat))
	var held engine.Reservation
	ok := false
	if _, locked := c.lockedOutLocked(x, now); !locked {
		held, wait, ok = c.takeCostLocked(inv, x, n, q)
	}
	if !ok {
		c.refusedLocked(x, now)
		return 0, c.refuseLocked(x, n, q)
	}
	x.passed++
	if x.isRest() {
		held.Holder = costOfRest{held.Holder.(engine.Settler), s, v, hash}
	}
	inv.Reserve(held)
	inv.SettleBy(c.rule.Unit)
	return wait, nil
}

// takeCostLocked completes takeCost after the cell is found.
func (c *controller) takeCostLocked(inv *engine.Invocation, x *cell, n int64, q *quota) (held engine.Reservation, wait time.Duration, ok bool) {
	switch {
	case c.rule.Behavior == Reject:
		held, ok = c.takeFromLocked(x, inv.Now(), n, q)
	case q.none:
	case c.rule.Behavior == TokenBucket:
		b := x.tokenBucketLocked(inv.Now(), q)
		held.Holder, held.Units = (*tokenCosts)(x), n
		held.Token, ok = b.TakeFor(x.refunds, inv.Now(), n, q.size)
	default:
		if wait, ok = inv.TakeTurn(x.turnsLocked(inv.Now(), q), q.cost(n), c.maxWait(inv), c.rule.Mode != spec.Shadow); ok {
			x.shard.largest = max(x.shard.largest, n)
		}
		held.Holder, held.Units = (*turnCosts)(x), n
		held.Undo = int64(math.Float64bits(q.perUnit))
	}
	return held, wait, ok
}

// maxWait returns the longest wait of a call. A running call that asks for more is slowed down, not cut
// off. In shadow mode it isn't: without a bound its turns would come ever later, also once the rule is
// enforced.
func (c *controller) maxWait(inv *engine.Invocation) time.Duration {
	if inv.AsksMore() && c.rule.Mode != spec.Shadow {
		return meter.Longest
	}
	return c.rule.MaxWait
}

// need is the refusal of a number of units of a value.
type need struct {
	*refusal
	n int64
}

// RetryAfter returns the time until the units would pass, if no other call comes first. It is unknown
// if they never do.
func (x need) RetryAfter() (wait time.Duration, known bool) {
	if x.rule.rule.Behavior != Throttle && x.n > x.quota.size {
		return 0, false
	}
	return x.retryAfter(x.n)
}

// costs are the rules with a unit at a resource.
type costs struct {
	holding, asked, shadows []*controller
	shared                  family.SharedRules
	units                   []string
}

// newCosts returns nil if no rule has a unit.
func newCosts(rs *checker) engine.Coster {
	calls := func(c *controller) bool { return c.rule.Unit == "" }
	x := &costs{
		holding: slices.DeleteFunc(slices.Clone(rs.Holding), calls),
		shadows: slices.DeleteFunc(slices.Clone(rs.Shadows), calls),
	}
	for _, c := range rs.sharing {
		if !calls(c) {
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
	// A running call waits in a throttle for as long as it takes.
	x.asked = slices.DeleteFunc(slices.Clone(x.holding), func(c *controller) bool { return c.rule.Behavior == Throttle })
	return x
}

// Shares returns the rules with a unit whose limits a cluster shares, or nil.
func (x *costs) Shares() engine.Sharer { return x.shared.Sharer() }

// Costs returns the rules with a unit, or nil.
func (rs *checker) Costs() engine.Coster { return rs.costs }

// Units returns the units of the rules.
func (x *costs) Units() []string { return x.units }

// AskCost returns the first refusal.
func (x *costs) AskCost(inv *engine.Invocation) engine.Verdict { return ask(x.asked, inv) }

// TakeCost lets every rule with the cost's unit take.
func (x *costs) TakeCost(inv *engine.Invocation) engine.Verdict { return take(x.holding, inv) }

// ShadowCost lets the rules in shadow mode take.
func (x *costs) ShadowCost(inv *engine.Invocation) { shadow(x.shadows, inv) }
