package flow

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
)

// MaxPerShareQueue is the maximum of a share's PerShareQueue.
const MaxPerShareQueue = 1_000_000

// checkShare refuses shares and shed orders that can't be.
func (r *Rule) checkShare() error {
	if err := spec.CheckShed(r.Shed, spec.Floors{}); err != nil {
		return err
	}
	field := "share"
	if !r.Share.Given() {
		field = "shed"
	}
	switch {
	case !r.fair() && !r.Share.Given():
		return nil
	case r.Behavior != Throttle:
		return spec.BadField(field, "has no meaning for behavior %s, which has no queue of calls in turn: remove it, or set behavior to throttle", r.Behavior)
	case r.Shared():
		return spec.BadField(field, "has no meaning for cluster, whose members have separate queues: remove %s or cluster", field)
	case r.Unit != "":
		return spec.BadField(field, "has no meaning for a unit, whose debts are nobody's share: remove %s or unit", field)
	}
	return r.Share.Check(MaxPerShareQueue, "")
}

// fair reports whether the rule divides its turns between tenants or levels.
func (r *Rule) fair() bool { return r.Share.By != "" || r.Shed == spec.ShedLevels }

// fairPacer is a pacer whose turns are divided between tenants, or between levels: see
// [meter.Pacer.QueueShare].
type fairPacer struct {
	*pacer
	tenants  *family.Tenants
	revision uint64 // of the rules that the tenants come from
}

// turn returns the call's request for a turn.
func (e *fairPacer) turn(inv *engine.Invocation, perUnit float64) meter.ShareTurn {
	return meter.ShareTurn{
		Cost: meter.Cost(inv.Units(), perUnit), First: inv.Prioritized(), MaxWait: e.rule.MaxWait,
		Sharing: &e.tenants.Sharing, Tenant: e.tenants.Of(inv), Revision: e.revision,
	}
}

func (e *fairPacer) ask(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	c := e.turn(inv, e.perUnit(inv.Now(), n))
	e.queue.mu.Lock()
	defer e.queue.mu.Unlock()
	least, ok := e.queue.turns.MayQueueShare(inv.Now(), &c)
	if !ok {
		e.queue.turns.RefusedShare(&c)
		return e.refuse()
	}
	return engine.Verdict{Wait: least, By: e.refusal}
}

// take is like that of a pacer.
func (e *fairPacer) take(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	now, before := inv.Now(), inv.Reservations()
	for perUnit := e.perUnit(now, n); ; {
		c := e.turn(inv, perUnit)
		wait, ok := e.queue.takeShare(inv, &c, e)
		if !ok {
			return e.refuse()
		}
		if e.memory != nil {
			if slower := e.perUnit(now, n); slower > perUnit {
				inv.GiveBackFrom(before)
				perUnit = slower
				continue
			}
		}
		return engine.Verdict{Wait: wait, By: e.refusal}
	}
}

// takeShare takes a turn, or a place in the queue of the call's share. In shadow mode nobody waits
// for the turn: it stays in the queue until it is due, or would have come too late.
func (q *queue) takeShare(inv *engine.Invocation, c *meter.ShareTurn, e *fairPacer) (least time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.rule.Mode != spec.Shadow {
		return inv.TakeShareTurn(&q.turns, c, e.refusal)
	}
	q.turns.ExpireShares(inv.Now())
	x, lane, blocked := new(meter.Turn), inv.Lane(), &e.record.ShadowBlocked // the call may end first
	if _, _, ok = q.turns.QueueShare(x, inv.Now(), c); ok {
		x.OnLoss(func() { blocked.Add(lane, 1) })
	}
	return 0, ok
}

// retryAfter is unknown: it depends on the calls of other tenants.
func (e *fairPacer) retryAfter(_, _ int64) (wait time.Duration, known bool) { return 0, false }

func (e *fairPacer) explain(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement) {
	c := e.turn(inv, e.lookPerUnit(inv.Now(), n))
	e.queue.mu.Lock()
	look, wait := e.queue.turns.LookShare(inv.Now(), &c)
	e.queue.mu.Unlock()
	switch {
	case look.Waits:
		inv.JudgeWait(j, wait, true, e.rule.MaxWait)
		j.About, j.Why = true, family.PlaceInShare(&look)
	case !look.Runs:
		inv.JudgeRefused(j, 0, false)
	}
	j.Measures = []core.Measure{engine.MeasureTurns(wait, e.rule.MaxWait, nil), {
		Of: "calls queued in its share", For: e.tenants.Name(&look.ShareStats), Measured: float64(look.Queued), Limit: float64(e.tenants.Sharing.PerShare),
	}}
}

// sharesOf returns the details of a rule with shares.
func sharesOf(controllers []*controller) core.Details {
	var f family.Shares
	for _, c := range controllers {
		e, ok := c.enforcer.(*fairPacer)
		if !ok {
			continue
		}
		q := e.queue
		q.mu.Lock()
		if c.rule.Mode == spec.Shadow {
			q.turns.ExpireShares(c.engine.Now())
		}
		all, gone := q.turns.SharesOfTurns()
		q.mu.Unlock()
		f.Add(c.refusal.Resource, e.tenants, all, gone, c.rule.Threshold)
	}
	return f.Details()
}
