package breaker

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// Rules are the breakers of one resource, compiled. They are safe for concurrent use.
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

// Take lets every breaker decide, and returns the first refusal. About a call that
// will wait it is decided when the wait is over.
func (rs *Rules) Take(inv *core.Invocation) core.Verdict {
	if inv.Waits() {
		return core.Verdict{}
	}
	return rs.Recheck(inv)
}

// Recheck decides about a call that has waited.
func (rs *Rules) Recheck(inv *core.Invocation) core.Verdict {
	for _, c := range rs.controllers {
		if !c.take(inv) && c.rule.Mode != core.Shadow {
			return core.Verdict{Block: c.refusal}
		}
	}
	return core.Verdict{}
}

// DecidesAtOnce reports whether Decide does what Ask and Take do: where there is one rule,
// which holds.
func (rs *Rules) DecidesAtOnce() bool {
	return len(rs.controllers) == 1 && rs.controllers[0].rule.Mode == core.Enforce
}

// Decide lets the breaker decide about a call that it was not asked about.
func (rs *Rules) Decide(inv *core.Invocation) *core.BlockError {
	c := rs.controllers[0]
	if state, number := c.machine.state(); state == Closed && len(inv.Marks()) == 0 {
		inv.Mark(c.machine, int64(number)) // as take does
		return nil
	}
	if !c.take(inv) {
		return c.refusal
	}
	return nil
}

// Completed counts the end of a call with every breaker that had let it in.
func Completed(inv *core.Invocation) {
	rt := time.Duration(max(0, inv.Now()-inv.Began()))
	for i, mark := range inv.Marks() {
		m, ok := mark.Owner.(*machine)
		if ok && !m.countGood(uint64(mark.Token), inv.Now(), rt, inv.Failed()) {
			completeFrom(inv, i, rt)
			return
		}
	}
}

// completeFrom is Completed for the marks from number i on, which may change the state of
// breakers. Listeners are told when all have counted: one that ends the goroutine takes
// nothing from the others.
func completeFrom(inv *core.Invocation, i int, rt time.Duration) {
	var few [2]Change // seldom do more change at once
	changes := few[:0]
	for _, mark := range inv.Marks()[i:] {
		if m, ok := mark.Owner.(*machine); ok {
			if change := m.complete(uint64(mark.Token), inv.Now(), rt, inv.Failed()); change.of != nil {
				changes = append(changes, change)
			}
		}
	}
	for _, change := range changes {
		change.notify()
	}
}

// Idle reports whether all of the breakers can be forgotten, see core.Resource.
func (rs *Rules) Idle(now int64) bool {
	for _, c := range rs.controllers {
		if !c.machine.idle(now) {
			return false
		}
	}
	return true
}
