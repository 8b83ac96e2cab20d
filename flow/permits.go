package flow

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// permits enforces a limit on the units in flight, with the semaphore of the node that the rule
// counts on. An associated rule takes nothing: it reads the semaphore of another resource.
type permits struct{ *controller }

func (e permits) ask(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	if !e.has(n, e.rule.amount(inv), e.limitAt(inv.Now(), n)) {
		return e.refuse()
	}
	return engine.Verdict{}
}

func (e permits) take(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	switch {
	case e.rule.Relation == Associated:
		return e.ask(inv, n)
	case e.memory != nil:
		return e.retake(inv, n, e.takeAt)
	}
	return e.takeAt(inv, n, e.limitAt(inv.Now(), n))
}

// takeAt takes units of the node's semaphore, unless an earlier rule took them already: then the
// total, including the call, must be within this limit too.
func (e permits) takeAt(inv *engine.Invocation, n *node.StatisticNode, limit int64) engine.Verdict {
	s := n.NeedSemaphore(e.meter.Owner)
	if inv.HoldsSemaphore(s) {
		if !e.has(n, 0, limit) {
			return e.refuse()
		}
		return engine.Verdict{}
	}
	units := e.rule.amount(inv)
	if s.TryAcquire(inv.Lane(), units, limit) || n.Settle(s) && s.TryAcquire(inv.Lane(), units, limit) {
		if e.rule.Unit != "" {
			inv.ReserveSemaphoreFor(s, units, e.rule.Unit)
		} else {
			inv.ReserveSemaphore(s)
		}
		return engine.Verdict{}
	}
	return e.refuse()
}

// has reports whether the given number of further units is within the limit.
func (e permits) has(n *node.StatisticNode, units, limit int64) bool {
	s := n.NeedSemaphore(e.meter.Owner)
	return s.Fits(units, limit) || n.Settle(s) && s.Fits(units, limit)
}

// retryAfter is unknown: it depends on calls that exit.
func (permits) retryAfter(_, _ int64) (wait time.Duration, known bool) { return 0, false }

func (permits) idle(int64) bool { return true } // the node owns the semaphore

func (e permits) explain(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement) {
	s, limit := n.LookSemaphore(e.meter.Owner), e.lookLimit(inv.Now(), n)
	n.Settle(s)
	if !s.Fits(e.rule.amount(inv), limit) {
		j.Outcome = core.Refused
	}
	j.Measures = []core.Measure{engine.MeasureUnits(cmp.Or(e.rule.Unit, "units")+" in flight", s.InUse(), limit)}
}
