package hotspot

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// Rules with a unit count what calls cost, in a strict window for each value.

// cost returns the fields that go with a unit.
func (r *Rule) cost() family.Cost {
	return family.Cost{Unit: r.Unit, Estimate: r.Estimate, MaxReserve: r.MaxReserve, MaxOverdraft: r.MaxOverdraft}
}

// checkUnit refuses fields that a rule with this unit, or without one, doesn't read.
func (r Rule) checkUnit() error {
	switch err := r.cost().Check(); {
	case err != nil || r.Unit == "":
		return err
	case r.Metric == Concurrency:
		return spec.BadField("unit", "has no meaning for metric concurrency, which counts calls in flight: remove it, or set metric to qps")
	case r.Behavior != Reject:
		return spec.BadField("unit", "has no meaning for behavior %s: remove it, or set behavior to reject", r.Behavior)
	case r.Window != Strict:
		return spec.BadField("unit", "has no meaning for strict: false, which lets up to twice the limit pass: remove it, or set strict to true")
	case r.MaxOverdraft != 0 && r.Shared():
		return spec.BadField("maxOverdraft", "has no meaning for cluster: no member knows what all of them are charged; remove maxOverdraft or cluster")
	}
	return nil
}

// amount returns the units that the call takes of each of its values; 0 if the rule isn't about it.
func (c *controller) amount(inv *engine.Invocation) int64 {
	if c.rule.Unit == "" {
		return inv.Units()
	}
	cost := c.rule.cost()
	return cost.Amount(inv)
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

// Refund returns the units that a call didn't use.
func (w *window) Refund(r *engine.Reservation, n, _ int64) {
	s := w.cell.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(w.cell)
	w.cancel(r.Token, n)
}

// Charge counts units that a call used beyond its reservation; see [shard.charge].
func (w *window) Charge(_ *engine.Reservation, n, now int64) (forgiven int64) {
	return w.cell.shard.charge(w.cell.value, w.cell.hash, n, now)
}

// charge counts n units in a value's current window: the value may have been evicted since it took
// units, or have got a cell, or have another. So it is found like that of a new call, and the units
// count in the rest if there is no room for a cell. A rule that no longer has windows is not
// charged.
func (s *shard) charge(v argument.Value, hash uint64, n, now int64) (forgiven int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.rule
	if !c.strict {
		return n
	}
	q := c.quotaOf(v)
	x := s.obtainLocked(v, hash, now, q, c)
	s.settle(x)
	current, cost := c.windowOf(x, now), c.rule.cost()
	counted := max(0, min(n, cost.Overdrawn(q.size)-current.used, maxUsed-current.used))
	current.add(counted)
	return n - counted
}

// maxUsed is the number of units at which a window stops counting, so that no sum overflows.
const maxUsed = 1 << 62

// settled identifies the value for which a call's units are counted, in whichever cell.
type settled struct {
	shard *shard
	value argument.Value
}

// Counts returns what the reservations of one value have in common.
func (w *window) Counts() any { return settled{w.cell.shard, w.cell.value} }

// costOfRest holds units that a value without a cell took from the window of the rest. They go back
// there, but the value is charged: it may have a cell by then.
type costOfRest struct {
	*window
	value argument.Value
	hash  uint64
}

// Charge charges the value.
func (u costOfRest) Charge(_ *engine.Reservation, n, now int64) (forgiven int64) {
	return u.cell.shard.charge(u.value, u.hash, n, now)
}

// Counts is like [window.Counts].
func (u costOfRest) Counts() any { return settled{u.cell.shard, u.value} }

// need is the refusal of a number of units of a value.
type need struct {
	*refusal
	n int64
}

// RetryAfter returns the time until the units would pass, if no other call comes first. It is unknown
// if they never do.
func (x *need) RetryAfter() (wait time.Duration, known bool) {
	if x.n > x.rule.quotaOf(x.cell.value).size {
		return 0, false
	}
	return x.retryAfter(x.n)
}

// costs are the rules with a unit at a resource.
type costs struct {
	holding, shadows []*controller
	shared           family.SharedRules
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
		}
	}
	if len(x.holding)+len(x.shadows)+len(x.shared) == 0 {
		return nil
	}
	return x
}

// Shares returns the rules with a unit whose limits a cluster shares, or nil.
func (x *costs) Shares() engine.Sharer { return x.shared.Sharer() }

// Costs returns the rules with a unit, or nil.
func (rs *checker) Costs() engine.Coster { return rs.costs }

// AskCost returns the first refusal.
func (x *costs) AskCost(inv *engine.Invocation) engine.Verdict { return ask(x.holding, inv) }

// TakeCost lets every rule with the cost's unit take.
func (x *costs) TakeCost(inv *engine.Invocation) engine.Verdict { return take(x.holding, inv) }

// ShadowCost lets the rules in shadow mode take.
func (x *costs) ShadowCost(inv *engine.Invocation) { shadow(x.shadows, inv) }
