package adaptive

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// checker holds the compiled adaptive rules of one resource. Safe for concurrent use.
type checker struct{ family.Rules[controller] }

// Ask returns the first refusal. It takes nothing.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.Holding {
		if !c.ask(inv) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	return engine.Verdict{}
}

// Take lets every rule take, and returns the first refusal. A call that will wait takes after its
// wait: until then it is not in flight.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	if inv.Waits() {
		return engine.Verdict{}
	}
	return rs.take(inv)
}

// Recheck lets every rule take for a call that has waited.
func (rs *checker) Recheck(inv *engine.Invocation) engine.Verdict {
	v := rs.take(inv)
	if v.Block == nil {
		rs.shadow(inv)
	}
	return v
}

func (rs *checker) take(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.Holding {
		if !c.take(inv) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	return engine.Verdict{}
}

// Shadow lets the shadow rules decide on a call that doesn't wait.
func (rs *checker) Shadow(inv *engine.Invocation) {
	if !inv.Waits() {
		rs.shadow(inv)
	}
}

func (rs *checker) shadow(inv *engine.Invocation) {
	for _, c := range rs.Shadows {
		c.shadow(inv)
	}
}
