package flow

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// An enforcer decides, for one rule at one resource, whether calls fit into what the rule grants.
// There is one for each way to count: window, permits, pacer, tokens, and leased for limits that a
// cluster shares. It is safe for concurrent use.
type enforcer interface {
	// ask returns the verdict on the call as things stand. It takes nothing.
	ask(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict
	// take decides, and reserves on the invocation what it grants.
	take(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict
	// retryAfter returns how long after now one more unit would be admitted, if that is known.
	retryAfter(now int64) (wait time.Duration, known bool)
	// explain is ask with the figures it goes by, and leaves no trace.
	explain(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement)
	// idle reports whether a new enforcer would admit nothing that this one would refuse.
	idle(now int64) bool
}

// closed enforces a threshold of 0: it refuses every call. The enforcer that it stands before
// keeps what has passed, for the next threshold.
type closed struct {
	*controller
	before enforcer
}

func (e closed) ask(*engine.Invocation, *node.StatisticNode) engine.Verdict  { return e.refuse() }
func (e closed) take(*engine.Invocation, *node.StatisticNode) engine.Verdict { return e.refuse() }
func (e closed) retryAfter(int64) (wait time.Duration, known bool)           { return 0, false }
func (e closed) idle(now int64) bool                                         { return e.before.idle(now) }

func (e closed) explain(_ *engine.Invocation, _ *node.StatisticNode, j *core.Judgement) {
	j.Outcome, j.Why = core.Refused, "its threshold is 0: it refuses every call"
}

// retake takes under a limit that moves with the memory in use, and checks whether it has fallen
// since: if so, what the call holds must be within the lower limit. So a call that took after the
// limit had fallen is never beyond it.
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
		inv.GiveBackFrom(before) // for a rule in shadow mode there is no other way
	}
	return v
}
