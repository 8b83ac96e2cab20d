package outlier

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// Explain returns the judgement of each rule on the call to its endpoint.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	for _, c := range slices.Concat(rs.Holding, rs.Shadows) {
		j := core.Judgement{Rule: c.rule.ID}
		c.explain(inv, &j)
		all = append(all, j)
	}
	return all
}

// explain is like asks, but reports the numbers behind the decision. Like any access to the pool, it
// applies the effects of the time that has passed; it changes nothing else.
func (c *controller) explain(inv *engine.Invocation, j *core.Judgement) {
	addr := inv.Endpoint()
	if addr == "" {
		j.Outcome, j.Why = core.NotJudged, "the call names no endpoint"
		return
	}
	p := c.pool
	p.site.mu.Lock()
	defer p.site.mu.Unlock()
	p.tidy(inv.Now())
	who := p.known[addr]
	if who == nil {
		j.Why = "the rule has seen no call to this endpoint"
		return
	}
	who.breaker.Explain(inv, j)
	for i := range j.Measures {
		j.Measures[i].For = addr
	}
}
