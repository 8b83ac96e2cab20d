package upstream

import (
	"math"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// checker holds the compiled upstream rules of one resource. Safe for concurrent use.
type checker struct{ family.Rules[controller] }

// Ask returns the first refusal that is certain. It takes nothing, and draws nothing.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.Holding {
		if b := c.ask(inv); b != nil {
			return engine.Verdict{Block: b}
		}
	}
	return engine.Verdict{}
}

// Take lets every rule decide, and returns the first refusal. For a call that has to wait, the
// decision is made after its wait.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	if inv.Waits() {
		return engine.Verdict{}
	}
	return rs.take(inv)
}

// Recheck decides on a call that has waited.
func (rs *checker) Recheck(inv *engine.Invocation) engine.Verdict {
	v := rs.take(inv)
	if v.Block == nil {
		rs.shadow(inv)
	}
	return v
}

func (rs *checker) take(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.Holding {
		if b := c.take(inv); b != nil {
			return engine.Verdict{Block: b}
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

// shadow takes nothing for a call that a rule would have refused: the rule sees neither its answer nor
// its end.
func (rs *checker) shadow(inv *engine.Invocation) {
	for _, c := range rs.Shadows {
		if held := inv.Reservations(); c.take(inv) != nil {
			inv.GiveBackFrom(held)
			c.record.ShadowBlocked.Add(inv.Lane(), 1)
		}
	}
}

// Direct reports whether Ask can be skipped: if only one rule is enforced. With several, a call that
// one refuses for certain is no request of the others.
func (rs *checker) Direct() bool { return len(rs.Holding) == 1 }

// ask returns the refusal of a call that is certain to be refused.
func (c *controller) ask(inv *engine.Invocation) *core.BlockError {
	if c.rule.Obey {
		if s, paused := c.pauses.find(c.pausedBy(inv), inv.Now()); paused && s.chance(inv.Now()) == 0 {
			return c.pauseOf(inv)
		}
	}
	if c.rule.Retries.given() && inv.Retry() && inv.Left(c.state) == nil && !c.state.budget.fits(c.rule.Retries) {
		return c.spent
	}
	return nil
}

// take admits the call, or returns its refusal. If the call was admitted before a wait that was not
// announced, only a pause that has begun since can refuse it.
func (c *controller) take(inv *engine.Invocation) *core.BlockError {
	again := inv.Left(c.state) != nil
	if c.rule.Obey && !c.passesPause(inv, again) {
		return c.pauseOf(inv)
	}
	if again {
		return nil
	}
	if r := c.rule.Retries; r.given() {
		held, ok := c.state.budget.take(r, inv.Retry())
		if !ok {
			return c.spent
		}
		inv.Reserve(engine.Reservation{Holder: &c.state.budget, Token: held, UntilExit: true})
	}
	if t := c.rule.Throttle; t.given() {
		first, ok := c.state.throttle.admit(inv.Now(), t.K)
		if !ok {
			return c.throttled
		}
		if first != math.MinInt64 {
			inv.Reserve(engine.Reservation{Holder: c.state.throttle, Token: first})
		}
	}
	inv.OnComplete(c.state, 0)
	return nil
}

// passesPause reports whether no pause refuses the call. Once it has drawn, it doesn't again.
func (c *controller) passesPause(inv *engine.Invocation, again bool) bool {
	name, now := c.pausedBy(inv), inv.Now()
	if again {
		s, paused := c.pauses.find(name, now)
		return !paused || s.chance(now) > 0
	}
	return c.pauses.admit(name, now)
}
