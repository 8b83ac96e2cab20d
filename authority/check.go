package authority

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

// controller is one rule at work on one resource.
type controller struct {
	rule      Rule
	named     map[string]struct{} // the callers; not changed once made
	few       []string            // the same, if they are so few that to compare is quicker
	refusal   *core.BlockError
	rehearsed *stat.Tally // refusals of a shadow rule
}

const fewCallers = 8

func newController(r Rule, resource *core.Resource, old *controller) *controller {
	c := &controller{rule: r, named: make(map[string]struct{}, len(r.Origins))}
	for _, name := range r.Origins {
		c.named[name] = struct{}{}
	}
	if len(r.Origins) <= fewCallers {
		c.few = r.Origins
	}
	c.refusal = core.NewBlockError(core.KindAuthority, resource.Name(), r.ID, nil)
	c.rehearsed = new(stat.Tally)
	if old != nil {
		c.refusal.Succeed(old.refusal)
		c.rehearsed = old.rehearsed
	}
	return c
}

// admits reports whether the rule lets a caller in.
func (c *controller) admits(origin string) bool {
	if origin == "" {
		return c.rule.List == Black || c.rule.AllowAnonymous
	}
	named := slices.Contains(c.few, origin)
	if c.few == nil {
		_, named = c.named[origin]
	}
	return named == (c.rule.List == White)
}

// Rules are the authority rules of one resource, compiled. They are safe for
// concurrent use.
type Rules struct {
	controllers []*controller // as declared
}

// Ask returns the first refusal. A shadow rule refuses nobody.
func (rs *Rules) Ask(inv *core.Invocation) core.Verdict {
	for _, c := range rs.controllers {
		if c.rule.Mode == core.Enforce && !c.admits(inv.Origin()) {
			return core.Verdict{Block: c.refusal}
		}
	}
	return core.Verdict{}
}

// Take takes nothing: neither the caller nor the rules have changed since it was
// asked. It counts what shadow rules would have refused.
func (rs *Rules) Take(inv *core.Invocation) core.Verdict {
	for _, c := range rs.controllers {
		if c.rule.Mode == core.Shadow && !c.admits(inv.Origin()) {
			c.rehearsed.Add(inv.Lane(), 1)
		}
	}
	return core.Verdict{}
}

// DecidesAtOnce reports whether Decide does what Ask and Take do: where no rule rehearses.
func (rs *Rules) DecidesAtOnce() bool {
	return !slices.ContainsFunc(rs.controllers, func(c *controller) bool { return c.rule.Mode == core.Shadow })
}

// Decide returns the first refusal.
func (rs *Rules) Decide(inv *core.Invocation) *core.BlockError {
	for _, c := range rs.controllers {
		if !c.admits(inv.Origin()) {
			return c.refusal
		}
	}
	return nil
}

// acts is what [core.FamilyTable] asks of every controller.
func (c *controller) acts() (Rule, *core.BlockError, *stat.Tally) {
	return c.rule, c.refusal, c.rehearsed
}
