package flow

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// Explain returns the judgement of each rule on the call.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	for _, controllers := range [...][]*controller{rs.Holding, rs.sharing, rs.Shadows} {
		for _, c := range controllers {
			j := core.Judgement{Rule: c.rule.ID}
			if n := c.looksAt(inv, rs); n != nil {
				c.enforcer.explain(inv, n, &j)
			} else {
				j.Outcome, j.Why = core.NotJudged, c.concern(inv, rs)
			}
			if len(j.Measures) > 0 && c.rule.Relation == Associated {
				j.Measures[0].For, j.Measures[0].Remaining = c.rule.Ref, nil // takes nothing from Ref
			}
			all = append(all, j)
		}
	}
	return all
}
