package flow

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// An enforcer decides, for one rule at one resource, whether a call fits into the rule's allowance.
// There is one for each way to count: window, permits, pacer, tokens, quota, and leased for limits that a
// cluster shares. Safe for concurrent use.
type enforcer interface {
	// ask returns the verdict on the call as of now. It takes nothing.
	ask(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict
	// take decides, and reserves the granted units on the invocation.
	take(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict
	// retryAfter returns the time from now until n more units would be admitted, if known.
	retryAfter(now, n int64) (wait time.Duration, known bool)
	// explain is like ask, but reports the numbers behind the verdict and has no side effects.
	explain(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement)
	// idle reports whether a fresh enforcer would admit nothing that this one would refuse.
	idle(now int64) bool
}

// closed enforces a threshold of 0: it refuses every call. The enforcer behind it keeps the history
// for the next threshold.
type closed struct {
	*controller
	before enforcer
}

func (e closed) ask(*engine.Invocation, *node.StatisticNode) engine.Verdict  { return e.refuse() }
func (e closed) take(*engine.Invocation, *node.StatisticNode) engine.Verdict { return e.refuse() }
func (e closed) retryAfter(_, _ int64) (wait time.Duration, known bool)      { return 0, false }
func (e closed) idle(now int64) bool                                         { return e.before.idle(now) }

func (e closed) explain(_ *engine.Invocation, _ *node.StatisticNode, j *core.Judgement) {
	j.Outcome, j.Why = core.Refused, "the threshold is 0, so every call is refused"
}

// retake takes under a limit that follows the memory in use, then checks whether the limit has
// fallen: if so, the call's units must fit under the lower limit. So a call that took after the
// limit fell never exceeds it.
func (c *controller) retake(inv *engine.Invocation, n *node.StatisticNode, take func(*engine.Invocation, *node.StatisticNode, int64) engine.Verdict) engine.Verdict {
	before := inv.Reservations()
	limit := c.limitAt(inv.Now(), n)
	v := take(inv, n, limit)
	for v.Block == nil {
		fallen := c.limitAt(inv.Now(), n)
		if fallen >= limit {
			break
		}
		limit = fallen
		if again := take(inv, n, limit); again.Block != nil || again.Wait > v.Wait {
			v = again
		}
	}
	if v.Block != nil {
		inv.GiveBackFrom(before) // a shadow rule's refusal makes the engine give nothing back
	}
	return v
}
