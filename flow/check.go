package flow

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Rules are the flow rules of one resource, compiled. They are safe for concurrent
// use.
type Rules struct {
	controllers []*controller // as declared: the order in which they are asked
	takers      []*controller // the order in which they take, see breadth and abundance
	spared      []*controller // need not take, see spare
	// named are the callers that some rule names, by the mode of the rule that wants
	// to know: one that holds sees what such rules name, a shadow rule all names.
	named [2]map[string]bool
}

// Ask returns the first refusal, or else the longest wait as things stand, taking
// nothing. A shadow rule refuses nobody.
func (rs *Rules) Ask(inv *core.Invocation) core.Verdict {
	var longest core.Verdict
	for _, c := range rs.controllers {
		if c.rule.Mode == core.Shadow {
			continue
		}
		n := c.counts(inv, rs)
		if n == nil {
			continue
		}
		switch wait, ok := c.ask(inv, n); {
		case !ok:
			return c.refuse()
		case wait > longest.Wait:
			longest = core.Verdict{Wait: wait, By: c.refusal}
		}
	}
	return longest
}

// Take lets every rule take. It returns the first refusal, or else the longest
// wait.
func (rs *Rules) Take(inv *core.Invocation) core.Verdict {
	var longest core.Verdict
	for _, c := range rs.takers {
		n := c.counts(inv, rs)
		if n == nil {
			continue
		}
		v := c.take(inv, n)
		switch {
		case c.rule.Mode == core.Shadow:
			if v.Block != nil {
				c.rehearsed.Add(inv.Lane(), 1)
			}
		case v.Block != nil:
			return rs.refusal(inv, c, v)
		case v.Wait > longest.Wait:
			longest = v
		}
	}
	for _, c := range rs.spared {
		if c.next.Load() == nil {
			continue
		}
		if longest = c.takeNext(inv, c.node, c.limit, longest); longest.Block != nil {
			break
		}
	}
	return longest
}

// Idle reports whether all of the rules can be forgotten, see core.Resource.
func (rs *Rules) Idle(now int64) bool {
	for _, c := range rs.controllers {
		if !c.idle(now) {
			return false
		}
	}
	return true
}

// ask reports whether the rule would admit the call as things stand, and after which
// wait.
func (c *controller) ask(inv *core.Invocation, n *node.StatisticNode) (wait time.Duration, ok bool) {
	now, units := inv.Now(), inv.Units()
	switch {
	case c.rule.Threshold == 0:
		return 0, false
	case c.queue != nil:
		return c.queue.fits(now, c.costOf(units, now, n), c.rule.MaxWait)
	case c.rule.Metric == Concurrency:
		return 0, c.hasPermits(n, units, c.limitAt(now, n))
	}
	w, limit := c.windowOn(n, now), c.limitAt(now, n)
	if w.Fits(now, units, limit) {
		return 0, true
	}
	if !c.borrows(inv) {
		return 0, false
	}
	return w.CanBorrow(now, units, limit, c.engine.Config().OccupyTimeout)
}

// take decides, and reserves on the invocation what it grants.
func (c *controller) take(inv *core.Invocation, n *node.StatisticNode) core.Verdict {
	switch {
	case c.plain:
		return c.takeBucket(inv, n, c.window, c.limit)
	case c.rule.Threshold == 0:
		return c.refuse()
	case c.queue != nil:
		return c.takeSlot(inv, n)
	case c.rule.Relation == Associated:
		return c.look(inv, n)
	case c.memory != nil:
		return c.retake(inv, n)
	}
	return c.takeUnits(inv, n, c.limitAt(inv.Now(), n))
}

func (c *controller) takeUnits(inv *core.Invocation, n *node.StatisticNode, limit int64) core.Verdict {
	if c.rule.Metric == Concurrency {
		return c.takePermits(inv, n, limit)
	}
	return c.takeBucket(inv, n, c.windowOn(n, inv.Now()), limit)
}

// retake takes under a limit that moves, and looks whether it has fallen since: then what
// the call holds must be within the lower one. So whoever took after the limit had fallen
// is never beyond it.
func (c *controller) retake(inv *core.Invocation, n *node.StatisticNode) core.Verdict {
	before := inv.Reservations()
	limit := c.limitAt(inv.Now(), n)
	v := c.takeUnits(inv, n, limit)
	for v.Block == nil {
		fallen := c.limitAt(inv.Now(), n)
		if fallen >= limit {
			break
		}
		limit = fallen
		if again := c.takeUnits(inv, n, limit); again.Block != nil || again.Wait > v.Wait {
			v = again
		}
	}
	if v.Block != nil {
		inv.GiveBackFrom(before) // a rule that only rehearses has no other way
	}
	return v
}

func (c *controller) refuse() core.Verdict { return core.Verdict{Block: c.refusal} }

// takeSlot takes a turn of the queue. Where the rate moves, it looks whether that has
// fallen since, as retake does: then the call takes a turn further away.
func (c *controller) takeSlot(inv *core.Invocation, n *node.StatisticNode) core.Verdict {
	now, units := inv.Now(), inv.Units()
	perUnit := c.perUnit(now, n)
	for {
		wait, got, before, ok := c.queue.take(now, cost(units, perUnit), c.rule.MaxWait)
		if !ok {
			return c.refuse()
		}
		if c.memory != nil {
			if slower := c.perUnit(now, n); slower > perUnit {
				c.queue.giveBack(got, before)
				perUnit = slower
				continue
			}
		}
		c.queue.reserve(inv, got, before)
		return core.Verdict{Wait: wait, By: c.refusal}
	}
}

// takePermits takes units of the node's gauge, unless an earlier rule took them
// there: then the total, the call included, must be within this limit too.
func (c *controller) takePermits(inv *core.Invocation, n *node.StatisticNode, limit int64) core.Verdict {
	g := n.NeedGauge(c.meter.Owner)
	if inv.HoldsGauge(g) {
		if !c.hasPermits(n, 0, limit) {
			return c.refuse()
		}
		return core.Verdict{}
	}
	if g.TryAcquire(inv.Units(), limit) || n.Settle(g) && g.TryAcquire(inv.Units(), limit) {
		inv.ReserveGauge(g)
		return core.Verdict{}
	}
	return c.refuse()
}

// hasPermits reports whether units more would be within the limit.
func (c *controller) hasPermits(n *node.StatisticNode, units, limit int64) bool {
	g := n.NeedGauge(c.meter.Owner)
	return g.Fits(units, limit) || n.Settle(g) && g.Fits(units, limit)
}

// takeBucket takes units of the node's window w; a prioritized call may borrow them
// from a coming bucket. A call holds at most one reservation in a window: where an
// earlier rule made one, it must be within this limit too, or move.
//
// A call that took under rules which were replaced meanwhile must fit into the windows
// of those that came after as well. They look for successors after they took: what
// they took before there was one has been handed to it, see [succession].
func (c *controller) takeBucket(inv *core.Invocation, n *node.StatisticNode, w *stat.Window, limit int64) core.Verdict {
	before := inv.Reservations()
	v := c.takeIn(inv, w, limit)
	if v.Block != nil || c.next.Load() == nil {
		return v
	}
	if v = c.takeNext(inv, n, limit, v); v.Block != nil && c.rule.Mode == core.Shadow {
		inv.GiveBackFrom(before) // as in retake
	}
	return v
}

// takeNext takes in the windows of the controllers that came after.
func (c *controller) takeNext(inv *core.Invocation, n *node.StatisticNode, limit int64, v core.Verdict) core.Verdict {
	for next := c.next.Load(); next != nil && v.Block == nil; next = next.next.Load() {
		if again := c.takeIn(inv, next.windowOn(n, inv.Now()), limit); again.Block != nil || again.Wait > v.Wait {
			v = again
		}
	}
	return v
}

func (c *controller) takeIn(inv *core.Invocation, w *stat.Window, limit int64) core.Verdict {
	now, units := inv.Now(), inv.Units()
	if held := inv.HeldBucket(w); held != nil {
		return c.share(inv, w, held, limit)
	}
	if bucket, ok := w.TryAdd(now, units, limit); ok {
		inv.ReserveBucket(w, bucket, limit)
		return core.Verdict{}
	}
	if !c.borrows(inv) {
		return c.refuse()
	}
	wait, bucket, ok := w.TryBorrow(now, units, limit, c.engine.Config().OccupyTimeout)
	if !ok {
		return c.refuse()
	}
	inv.ReserveBucket(w, bucket, limit)
	return core.Verdict{Wait: wait, By: c.refusal, Borrowed: true}
}

func (c *controller) share(inv *core.Invocation, w *stat.Window, held *core.Reservation, limit int64) core.Verdict {
	if w.Within(held.Token, limit) {
		held.Undo = min(held.Undo, limit)
		return core.Verdict{}
	}
	if !c.borrows(inv) {
		return c.refuse()
	}
	limit = min(limit, held.Undo) // of all rules on the window so far
	wait, bucket, ok := w.Rebook(inv.Now(), held.Token, held.Units, limit, c.engine.Config().OccupyTimeout)
	if !ok {
		return c.refuse()
	}
	held.Token, held.Undo = bucket, limit
	return core.Verdict{Wait: wait, By: c.refusal, Borrowed: true}
}

// look is the verdict of an associated rule: the call is not the other resource's,
// so nothing is taken there. A prioritized call waits as if it borrowed.
func (c *controller) look(inv *core.Invocation, n *node.StatisticNode) core.Verdict {
	if c.rule.Metric == Concurrency {
		if !c.hasPermits(n, inv.Units(), c.limitAt(inv.Now(), n)) {
			return c.refuse()
		}
		return core.Verdict{}
	}
	now, units := inv.Now(), inv.Units()
	w, limit := c.windowOn(n, now), c.limitAt(now, n)
	if w.Fits(now, units, limit) {
		return core.Verdict{}
	}
	if !c.borrows(inv) {
		return c.refuse()
	}
	wait, ok := w.CanBorrow(now, units, limit, c.engine.Config().OccupyTimeout)
	if !ok {
		return c.refuse()
	}
	return core.Verdict{Wait: wait, By: c.refusal, Borrowed: true}
}
