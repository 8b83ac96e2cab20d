package breaker

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// checker holds the compiled breakers of one resource. Safe for concurrent use.
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

// Take lets every breaker decide, and returns the first refusal. For a call that has to wait, the
// decision is made after its wait.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	if inv.Waits() {
		return engine.Verdict{}
	}
	return rs.take(inv)
}

// Recheck decides on a call that has waited. With several breakers, all are asked again before any
// takes, as before the wait.
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

// Direct reports whether Ask can be skipped: if only one breaker is enforced. With several, the
// refusal names the first that refuses, and none before it takes a probe.
func (rs *checker) Direct() bool { return len(rs.Holding) == 1 }

// idle reports whether the breaker can be dropped.
func (c *controller) idle(now int64) bool { return c.machine.idle(now) }
