package authority

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// controller is one rule in effect on one resource.
type controller struct {
	rule    Rule
	named   map[string]struct{} // the callers; never changed
	few     []string            // the same callers, if so few that comparing is faster
	refusal *core.BlockError
	record  *engine.Record
}

const fewCallers = 8

func newController(r Rule, record *engine.Record, resource *engine.Resource, old *controller) *controller {
	c := &controller{rule: r, record: record, named: make(map[string]struct{}, len(r.Origins))}
	for _, name := range r.Origins {
		c.named[name] = struct{}{}
	}
	if len(r.Origins) <= fewCallers {
		c.few = r.Origins
	}
	var before *core.BlockError
	if old != nil {
		before = old.refusal
	}
	c.refusal = engine.NewCounted(family.Refused(core.KindAuthority, resource.Name(), r.Info()), nil, record, before)
	return c
}

// admits reports whether the rule admits a caller.
func (c *controller) admits(origin string) bool {
	if origin == "" {
		return c.rule.List == Deny || c.rule.AllowAnonymous
	}
	named := slices.Contains(c.few, origin)
	if c.few == nil {
		_, named = c.named[origin]
	}
	return named == (c.rule.List == Allow)
}

// checker holds the compiled authority rules of one resource. Safe for concurrent use.
type checker struct{ family.Rules[controller] }

// Ask returns the first refusal.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	origin := inv.Origin()
	for _, c := range rs.Holding {
		if !c.admits(origin) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	return engine.Verdict{}
}

// Take does the same as Ask: there is nothing to take.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict { return rs.Ask(inv) }

// Direct returns true: asking first would save nothing.
func (rs *checker) Direct() bool { return true }

// Shadow counts the calls that shadow rules would have refused.
func (rs *checker) Shadow(inv *engine.Invocation) {
	for _, c := range rs.Shadows {
		if !c.admits(inv.Origin()) {
			c.record.ShadowBlocked.Add(inv.Lane(), 1)
		}
	}
}
