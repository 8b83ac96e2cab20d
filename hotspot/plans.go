package hotspot

import (
	"cmp"
	"maps"
	"slices"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// checkPlans refuses plans that can't be.
func (r Rule) checkPlans() error {
	if len(r.Plans) > MaxPlans {
		return spec.BadField("plans", "has %d items: a rule can have at most %d", len(r.Plans), MaxPlans)
	}
	for name, threshold := range r.Plans {
		if r.checkPlan(name, threshold) == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r.Plans)) { // always the same error
			if err := r.checkPlan(name, r.Plans[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r Rule) checkPlan(name string, threshold float64) error {
	if name == "" || len(name) > argument.MaxText {
		return spec.BadField("plans", "names %.80q: use 1 to %d bytes", name, argument.MaxText)
	}
	return cmp.Or(r.checkThreshold("plans", threshold), r.checkSharedLimit(threshold))
}

// plan is a plan that a rule lists, with the limit of its values.
//
// A call's own plan decides on it, so two calls of one value may be decided under two limits. The
// value's cell has the plan of the latest of them, for decisions that no call makes: eviction, the rate
// of its tokens, the limit in its statistics, and the limit that settled costs are charged to. Values without a cell share the rest under the limits of their plans, and its
// tokens fill as slowly as those of the slowest plan (see restQuota): so a value in the rest gets no
// more than it would in a cell.
type plan struct {
	name  argument.Value
	quota quota
	rule  *controller // whose code has set the limit; nil for a plan that a rule lists
}

// setPlans sets the plans of a new controller.
func (c *controller) setPlans() {
	if len(c.rule.Plans) == 0 {
		return
	}
	c.mixed = true
	c.plans = make(map[argument.Value]*plan, len(c.rule.Plans))
	all := make([]plan, 0, len(c.rule.Plans))
	for name, threshold := range c.rule.Plans {
		all = append(all, plan{name: argument.Of(name), quota: c.rule.quota(threshold)})
		p := &all[len(all)-1]
		p.quota.plan = p
		c.plans[p.name] = p
		c.restQuota.unit = c.restQuota.unit.Later(p.quota.unit)
	}
}

// planOf returns the plan of a call, or nil if it has none that the rule lists.
func (c *controller) planOf(inv *engine.Invocation) *plan {
	if c.plans == nil {
		return nil
	}
	return c.plans[inv.Plan()]
}

// watchPlan counts a call whose plan the rule doesn't list.
func (c *controller) watchPlan(inv *engine.Invocation) {
	if name := inv.Plan(); !name.IsNone() && c.plans[name] == nil {
		c.values.unknownPlans.Add(1)
	}
}

// mixedQuota is quotaOf for a rule whose values have several limits.
func (c *controller) mixedQuota(v argument.Value, p *plan) *quota {
	if v.IsNone() {
		return &c.restQuota
	}
	if c.starred != nil {
		if q := c.starredQuota(v); q != nil {
			return q
		}
	}
	if p.isAnswer() {
		if q := c.answered(p); c.asks && q != nil {
			return q
		}
	} else if p != nil {
		if own := c.plans[p.name]; own != nil { // p may be another revision's
			return &own.quota
		}
	}
	return &c.quota
}

// planLocked makes p the plan of a cell's value, as a call under a rule with plans names it, or none. A
// limit from code stays.
func (x *cell) planLocked(p *plan, now int64) {
	if x.plan == p || x.isRest() || x.plan.isAnswer() {
		return
	}
	x.shard.cool(x)
	if x.plan = p; x.tokens != nil {
		x.fillAsLocked(x.shard.rule.quotaOf(x.value, p), now)
	}
}
