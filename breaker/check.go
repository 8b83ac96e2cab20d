package breaker

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// checker is the breakers of one resource, compiled. It is safe for concurrent use.
type checker struct{ family.Rules[controller] }

// Ask returns the first refusal, taking nothing.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.Holding {
		if !c.ask(inv) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	return engine.Verdict{}
}

// Take lets every breaker decide, and returns the first refusal. For a call that has to wait, the
// decision is made when its wait is over.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	if inv.Waits() {
		return engine.Verdict{}
	}
	return rs.take(inv)
}

// Recheck decides on a call that has waited. Several breakers are all asked again before any takes,
// as they were before the wait.
func (rs *checker) Recheck(inv *engine.Invocation) engine.Verdict {
	if len(rs.Holding) > 1 {
		for _, c := range rs.Holding {
			if !c.stands(inv) && !c.ask(inv) {
				return engine.Verdict{Block: c.refusal}
			}
		}
	}
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
		c.take(inv)
	}
}

// Direct reports whether Ask can be skipped, which is when only one breaker is enforced. With
// several, the first that refuses is named in the refusal, and none before it takes a probe.
func (rs *checker) Direct() bool { return len(rs.Holding) == 1 }

// idle reports whether the breaker can be forgotten.
func (c *controller) idle(now int64) bool { return c.machine.idle(now) }
