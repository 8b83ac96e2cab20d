package authority

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// Explain returns the judgement of each rule on the caller.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	for _, c := range slices.Concat(rs.Holding, rs.Shadows) {
		j := core.Judgement{Rule: c.rule.ID, Why: c.why(inv.Origin())}
		if !c.admits(inv.Origin()) {
			j.Outcome = core.Refused
		}
		all = append(all, j)
	}
	return all
}

func (c *controller) why(origin string) string {
	list := fmt.Sprintf("the %s list", c.rule.List)
	_, named := c.named[origin]
	switch {
	case origin == "" && c.rule.AllowAnonymous:
		return "the rule allows callers without an origin"
	case origin == "":
		return "the caller has no origin, so it is not on " + list
	case named:
		return "the caller is on " + list
	}
	return "the caller is not on " + list
}
