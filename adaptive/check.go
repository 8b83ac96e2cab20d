package adaptive

import "github.com/penstock-go/penstock/core"

// Rules are the adaptive rules of one resource, compiled. They are safe for concurrent
// use.
type Rules struct {
	controllers []*controller // as declared
}

// Ask returns the first refusal, taking nothing. A shadow rule refuses nobody.
func (rs *Rules) Ask(inv *core.Invocation) core.Verdict {
	for _, c := range rs.controllers {
		if c.rule.Mode != core.Shadow && !c.ask(inv) {
			return core.Verdict{Block: c.refusal}
		}
	}
	return core.Verdict{}
}

// Take lets every rule take, and returns the first refusal. A call that will wait takes
// when the wait is over: until then it is not in flight.
func (rs *Rules) Take(inv *core.Invocation) core.Verdict {
	if inv.Waits() {
		return core.Verdict{}
	}
	return rs.Recheck(inv)
}

// Recheck lets every rule take for a call that has waited.
func (rs *Rules) Recheck(inv *core.Invocation) core.Verdict {
	for _, c := range rs.controllers {
		if c.rule.Mode != core.Shadow && !c.take(inv) {
			return core.Verdict{Block: c.refusal}
		}
	}
	for _, c := range rs.controllers {
		if c.rule.Mode == core.Shadow {
			c.rehearse(inv)
		}
	}
	return core.Verdict{}
}
