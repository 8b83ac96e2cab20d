package flow

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
)

// pacer spaces calls evenly: each takes the next turn in the rule's queue and waits for it, at most
// the rule's MaxWait.
type pacer struct {
	*controller
	queue *queue
}

func (e *pacer) ask(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	now := inv.Now()
	units := e.rule.amount(inv)
	wait, ok := e.queue.fits(now, e.costOf(units, now, n), e.maxWait(inv), inv.Prioritized())
	if !ok {
		return e.refuseUnits(units)
	}
	return engine.Verdict{Wait: wait, By: e.refusal}
}

// maxWait returns the longest wait. A running call that asks for more is slowed down, not cut off. In
// shadow mode it isn't: without a bound its turns would come ever later, also once the rule is enforced.
func (e *pacer) maxWait(inv *engine.Invocation) time.Duration {
	if inv.AsksMore() && e.rule.Mode != spec.Shadow {
		return meter.Longest
	}
	return e.rule.MaxWait
}

// take takes a turn in the queue. If the rate can change, it checks afterwards whether the rate has
// fallen, as retake does: if so, the call takes a later turn.
func (e *pacer) take(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	now, units, before := inv.Now(), e.rule.amount(inv), inv.Reservations()
	for perUnit := e.perUnit(now, n); ; {
		wait, ok := e.queue.take(inv, meter.Cost(units, perUnit), e.maxWait(inv), e.rule.Mode != spec.Shadow)
		if !ok {
			return e.refuseUnits(units)
		}
		if e.memory != nil {
			if slower := e.perUnit(now, n); slower > perUnit {
				inv.GiveBackFrom(before)
				perUnit = slower
				continue
			}
		}
		if e.rule.Unit != "" {
			e.queue.reserve(inv, units, perUnit, e.rule.Unit)
		}
		return engine.Verdict{Wait: wait, By: e.refusal}
	}
}

func (e *pacer) retryAfter(now, n int64) (wait time.Duration, known bool) {
	cost := meter.Cost(n, e.lookPerUnit(now, &e.resource.StatisticNode))
	return e.queue.retryAfter(now, cost, e.rule.MaxWait), true
}

func (e *pacer) idle(now int64) bool {
	return e.queue.idle(now, e.slowest(now, &e.resource.StatisticNode))
}

func (e *pacer) explain(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement) {
	perUnit := e.lookPerUnit(inv.Now(), n)
	wait, ok := e.queue.fits(inv.Now(), meter.Cost(e.rule.amount(inv), perUnit), e.rule.MaxWait, inv.Prioritized())
	inv.JudgeWait(j, wait, ok, e.rule.MaxWait)
	j.About = !ok && (e.moves() || inv.Prioritized())
	left := e.queue.left(inv.Now(), meter.Cost(1, perUnit), e.rule.MaxWait, inv.Prioritized())
	j.Measures = []core.Measure{engine.MeasureTurns(wait, e.rule.MaxWait, left)}
}
