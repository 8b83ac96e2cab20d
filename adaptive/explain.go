package adaptive

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shed"
)

// Explain returns the judgement of each rule on the call.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	for _, c := range slices.Concat(rs.Holding, rs.Shadows) {
		all = append(all, c.explain(inv))
	}
	return all
}

// explain is like ask, but reports the numbers behind the decision and has no side effects. A rule
// in shadow mode counts only the calls that it would have admitted.
func (c *controller) explain(inv *engine.Invocation) core.Judgement {
	owner := c.owner
	if c.rule.Mode == spec.Shadow {
		owner = c.shadowOwner
	}
	n := &inv.Resource().StatisticNode
	g, j := n.LookSemaphore(owner), core.Judgement{Rule: c.rule.ID}
	limit, _ := c.Limit()
	var reserve int64
	if c.judge == nil {
		if !c.limit.fits(n, g, inv.Units(), int64(c.rule.Ceiling)) {
			j.Outcome = core.Refused
		}
	} else {
		var v shed.Verdict
		v, reserve = shed.Look(c.judge, inv, unitsInFlight{n, g, inv.Lane(), inv.Units(), int64(c.rule.Ceiling)})
		if v != shed.Admitted {
			j.Outcome = core.Refused
		}
		j.Why = c.judge.Explain(inv.Level(), reserve)
	}
	j.Measures = []core.Measure{engine.MeasureUnits("units in flight", g.InUse(), int64(limit)-reserve)}
	return j
}
