package flow

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Rules with a unit count what calls cost, such as tokens, instead of the calls. Their amounts differ
// from call to call and from rule to rule, so each has meters of its own; see private.

// cost returns the fields that go with a unit.
func (r *Rule) cost() family.Cost {
	return family.Cost{Unit: r.Unit, Estimate: r.Estimate, MaxReserve: r.MaxReserve, MaxOverdraft: r.MaxOverdraft}
}

// checkUnit refuses fields that a rule with this unit, or without one, doesn't read.
func (r Rule) checkUnit() error {
	switch err := r.cost().Check(); {
	case err != nil || r.Unit == "":
		return err
	case r.Relation == Associated:
		return spec.BadField("unit", "has no meaning for relation associated, which counts another resource's calls: remove it, or set relation to direct")
	case r.Behavior.warmsUp():
		return spec.BadField("unit", "has no meaning for behavior %s, which follows calls: remove it, or set behavior to reject, throttle or tokenBucket", r.Behavior)
	case r.MaxReserve != 0 && r.Behavior.queues():
		return spec.BadField("maxReserve", "has no meaning for behavior %s, whose calls wait for what they reserve: remove it, or set behavior to reject or tokenBucket", r.Behavior)
	case r.MaxOverdraft != 0 && (r.Metric == Concurrency || r.Behavior.queues()):
		return spec.BadField("maxOverdraft", "has no meaning for metric concurrency and behavior throttle: remove it, or set behavior to reject or tokenBucket")
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
	if r.Behavior == TokenBucket && r.Estimate > float64(r.size()) {
		return spec.BadField("estimate", "is %v: the bucket holds %d, so use at most that, or a larger burst", r.Estimate, r.size())
	}
	return nil
}

// amount returns the units that the call takes under the rule: 0 if the rule has a unit that the
// call doesn't name, and no estimate.
func (r *Rule) amount(inv *engine.Invocation) int64 {
	if r.Unit == "" {
		return inv.Units()
	}
	return r.costOf(inv)
}

// costOf is amount for a rule with a unit. It is not inlined, so that amount is.
//
//go:noinline
func (r *Rule) costOf(inv *engine.Invocation) int64 {
	return family.Amount(inv, r.Unit, r.Estimate, r.MaxReserve)
}

// reserve records n units of the window w on the call.
func (e *window) reserve(inv *engine.Invocation, w *stat.Window, receipt stat.Receipt, n, limit int64) {
	if e.rule.Unit == "" {
		inv.ReserveBucket(w, receipt, n, limit)
		return
	}
	var bound engine.Overdraft
	if e.rule.MaxOverdraft > 0 {
		bound = overdraft{e}
	}
	inv.ReserveCost(w, receipt, n, limit, e.rule.Unit, bound)
}

// takeCost is a shortcut of take for a fixed window of all calls: it reports whether the rule doesn't
// apply to the call, or has reserved its units.
func (e *window) takeCost(inv *engine.Invocation) bool {
	n := e.rule.costOf(inv)
	if n == 0 {
		return true
	}
	if inv.FindBucket(e.one) != nil {
		return false
	}
	receipt, ok := e.one.TryAdd(inv.Lane(), inv.Now(), n, e.limit)
	if !ok {
		return false
	}
	e.reserve(inv, e.one, receipt, n, e.limit)
	return e.next.Load() == nil // read after taking; see takeIn
}

// overdraft bounds what settled calls are charged in the rule's windows.
type overdraft struct{ *window }

// GiveBack is not called: the window takes the units back itself.
func (overdraft) GiveBack(*engine.Reservation, int64) {}

// Most returns the limit and the overdraft beyond it.
func (o overdraft) Most(now int64) int64 {
	return o.rule.overdrawn(o.limitAt(now, nil))
}

// overdrawn returns what settled calls are charged at most under a limit.
func (r *Rule) overdrawn(limit int64) int64 {
	c := r.cost()
	return c.Overdrawn(limit)
}

// refuseNeed returns the refusal of a call that n units don't fit for: unlike the refusal of a rule
// without a unit it knows how long that many will take.
func (e *window) refuseNeed(w *stat.Window, n int64) engine.Verdict {
	return engine.Verdict{Block: engine.Needing(e.refusal, need{e, w, n})}
}

// refuseUnits returns the refusal of n units by a rule that counts in one place.
func (c *controller) refuseUnits(n int64) engine.Verdict {
	if c.rule.Unit == "" {
		return c.refuse()
	}
	return engine.Verdict{Block: engine.Needing(c.refusal, needOf{c, n})}
}

// needOf is a number of units that a rule refused.
type needOf struct {
	*controller
	n int64
}

// RetryAfter returns the time until the units would be admitted, if known.
func (x needOf) RetryAfter() (wait time.Duration, known bool) {
	return x.enforcer.retryAfter(x.engine.Now(), x.n)
}

// need is a number of units that a window refused.
type need struct {
	*window
	in *stat.Window
	n  int64
}

// RetryAfter returns the time until the units would be admitted. It is unknown if they are more than
// the limit.
func (x need) RetryAfter() (wait time.Duration, known bool) {
	now := x.engine.Now()
	return x.in.RetryAfter(now, x.n, x.lookLimit(now, nil))
}

// costs are the rules with a unit at a resource.
type costs struct {
	of      *checker
	holding []*controller
	shadows []*controller
	shared  family.SharedRules
	units   []string
}

// newCosts returns nil if no rule has a unit.
func newCosts(rs *checker) engine.Coster {
	calls := func(c *controller) bool { return c.rule.Unit == "" }
	x := &costs{
		of:      rs,
		holding: slices.DeleteFunc(slices.Clone(rs.takers), calls),
		shadows: slices.DeleteFunc(slices.Clone(rs.Shadows), calls),
	}
	for _, c := range rs.sharing {
		if !calls(c) {
			x.shared = append(x.shared, &sharer{c.enforcer.(*leased), rs})
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

// Shares returns the rules with a unit whose limits a cluster shares, or nil.
func (x *costs) Shares() engine.Sharer { return x.shared.Sharer() }

// Costs returns the rules with a unit, or nil.
func (rs *checker) Costs() engine.Coster { return rs.costs }

// Units returns the units of the rules.
func (x *costs) Units() []string { return x.units }

// AskCost returns the first refusal or, if there is none, the longest wait as of now.
func (x *costs) AskCost(inv *engine.Invocation) engine.Verdict {
	return x.each(inv, enforcer.ask)
}

// TakeCost lets every rule with the cost's unit take.
func (x *costs) TakeCost(inv *engine.Invocation) engine.Verdict {
	return x.each(inv, enforcer.take)
}

func (x *costs) each(inv *engine.Invocation, f func(enforcer, *engine.Invocation, *node.StatisticNode) engine.Verdict) (longest engine.Verdict) {
	for _, c := range x.holding {
		n := c.counts(inv, x.of)
		if n == nil {
			continue
		}
		v := f(c.enforcer, inv, n)
		if v.Block != nil {
			return v
		}
		if v.Wait > 0 {
			longest = longer(inv, v, longest)
		}
	}
	return longest
}

// ShadowCost lets the rules in shadow mode take.
func (x *costs) ShadowCost(inv *engine.Invocation) {
	for _, c := range x.shadows {
		if n := c.counts(inv, x.of); n != nil && c.enforcer.take(inv, n).Block != nil {
			c.record.ShadowBlocked.Add(inv.Lane(), 1)
		}
	}
}

// longestRefusal returns the refusal with the longest wait: v, by the rule at index i, or that of a
// later rule with a unit. A caller that waits as long as any of them needs isn't refused again by
// the next.
func (rs *checker) longestRefusal(inv *engine.Invocation, i int, v engine.Verdict) engine.Verdict {
	longest, known := v.Block.RetryAfter()
	for _, c := range rs.Holding[i+1:] {
		if c.rule.Unit == "" || !known {
			continue
		}
		if n := c.counts(inv, rs); n != nil {
			if next := c.enforcer.ask(inv, n); next.Block != nil {
				if wait, ok := next.Block.RetryAfter(); !ok || wait > longest {
					v, longest, known = next, wait, ok
				}
			}
		}
	}
	return v
}
