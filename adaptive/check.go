package adaptive

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/family"
)

// Rules are the adaptive rules of one resource, compiled. They are safe for concurrent
// use.
type Rules struct{ family.Rules[controller] }

// Ask returns the first refusal, taking nothing.
func (rs *Rules) Ask(inv *core.Invocation) core.Verdict {
	for _, c := range rs.Holding {
		if !c.ask(inv) {
			return core.Verdict{Block: c.refusal}
		}
	}
	return core.Verdict{}
}

// Take lets every rule take, and returns the first refusal. A call that will wait takes when the
// wait is over: until then it is not in flight.
func (rs *Rules) Take(inv *core.Invocation) core.Verdict {
	if inv.Waits() {
		return core.Verdict{}
	}
	return rs.take(inv)
}

// Recheck lets every rule take for a call that has waited.
func (rs *Rules) Recheck(inv *core.Invocation) core.Verdict {
	v := rs.take(inv)
	if v.Block == nil {
		rs.shadow(inv)
	}
	return v
}

func (rs *Rules) take(inv *core.Invocation) core.Verdict {
	for _, c := range rs.Holding {
		if !c.take(inv) {
			return core.Verdict{Block: c.refusal}
		}
	}
	return core.Verdict{}
}

// Shadow lets the shadow rules decide on a call that doesn't wait.
func (rs *Rules) Shadow(inv *core.Invocation) {
	if !inv.Waits() {
		rs.shadow(inv)
	}
}

func (rs *Rules) shadow(inv *core.Invocation) {
	for _, c := range rs.Shadows {
		c.shadow(inv)
	}
}
