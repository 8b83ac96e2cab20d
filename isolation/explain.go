package isolation

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// Explain returns the judgement of each rule on the call.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	asked := slices.Clone(rs.private)
	if rs.tightest != nil {
		asked = append(asked, rs.tightest)
	}
	for _, c := range slices.Concat(asked, rs.shadows) {
		all = append(all, c.explain(inv, rs.revision))
	}
	for _, c := range rs.controllers {
		if c.rule.Mode != spec.Enforce {
			continue
		}
		if c.lease != nil {
			all = append(all, c.explain(inv, rs.revision))
		} else if !slices.Contains(asked, c) {
			all = append(all, core.Judgement{
				Rule: c.rule.ID, Outcome: core.NotJudged, Why: fmt.Sprintf("rule %q is at least as strict", rs.tightest.rule.ID),
			})
		}
	}
	return all
}

// node returns the node whose semaphore the rule uses.
func (c *controller) node(inv *engine.Invocation) *node.StatisticNode {
	if c.rule.Together {
		return &c.resource.StatisticNode
	}
	return &inv.Resource().StatisticNode
}

// explain is like ask, but reports the numbers behind the decision and has no side effects.
func (c *controller) explain(inv *engine.Invocation, revision uint64) core.Judgement {
	switch {
	case c.lease != nil:
		j, n := core.Judgement{Rule: c.rule.ID}, c.amount(inv)
		if n == 0 {
			return c.notJudged(inv, j)
		}
		j.Measures = []core.Measure{c.lease.Explain(inv, n, &j)}
		return j
	case c.rule.Unit != "":
		return c.explainCost(inv)
	case c.amount(inv) == 0:
		return c.notJudged(inv, core.Judgement{Rule: c.rule.ID})
	}
	n := c.node(inv)
	g, claim := n.LookSemaphore(c.owner), c.claim(inv, revision)
	n.Settle(g)
	at := claim
	at.Queue = 0
	j, queued := core.Judgement{Rule: c.rule.ID}, g.Queued()
	switch {
	case g.MayJoin(at):
	case g.MayJoin(claim):
		j.Outcome = core.Waits
	default:
		j.Outcome = core.Refused
	}
	used := engine.MeasureUnits("units in flight", g.InUse(), claim.Limit)
	if queued > 0 {
		*used.Remaining = 0
	}
	j.Measures = []core.Measure{used}
	if c.rule.MaxQueue > 0 && c.queues(inv) {
		j.Measures = append(j.Measures, engine.MeasureUnits("calls queued", queued, int64(c.rule.MaxQueue)))
	}
	return j
}
