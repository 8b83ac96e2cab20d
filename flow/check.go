package flow

import (
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// checker is the flow rules of one resource, compiled. It is safe for concurrent
// use.
type checker struct {
	family.Rules[controller] // without those that a cluster shares; they are asked in this order

	takers  []*controller      // the order in which they take, see breadth and abundance
	spared  []*controller      // need not take, see spare
	sole    *controller        // the only enforced one, if it is plain; or nil
	sharing []*controller      // the enforced ones whose limits a cluster shares
	shared  family.SharedRules // the same, as they are asked
	// named are the callers that some rule names, by the mode of the rule that looks: an enforced
	// rule sees what enforced rules name, a shadow rule all names.
	named [2]map[string]bool
}

// Ask returns the first refusal or, if there is none, the longest wait as of now. It takes nothing.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	var longest engine.Verdict
	for _, c := range rs.Holding {
		n := c.counts(inv, rs)
		if n == nil {
			continue
		}
		switch wait, ok := c.ask(inv, n); {
		case !ok:
			return c.refuseUnits(inv)
		case wait > longest.Wait:
			longest = engine.Verdict{Wait: wait, By: c.refusalOf(inv)}
		}
	}
	return longest
}

// Take lets every rule take. It returns the first refusal or, if there is none, the longest wait.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	if c := rs.sole; c != nil && inv.HeldBucket(c.window) == nil { // as below, for most calls
		if bucket, ok := c.window.TryAdd(inv.Lane(), inv.Now(), inv.Units(), c.limit); ok {
			inv.ReserveBucket(c.window, bucket, c.limit)
			if c.next.Load() == nil { // checked after it took, see takeBucket
				return engine.Verdict{}
			}
		} else if !inv.Prioritized() {
			return c.refuse()
		}
	}
	var longest engine.Verdict
	for _, c := range rs.takers {
		n := c.counts(inv, rs)
		if n == nil {
			continue
		}
		v := c.take(inv, n)
		if v.Block != nil {
			return rs.refusal(inv, c, v)
		}
		if v.Wait > 0 {
			longest = longer(inv, v, longest)
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
	if longest.Borrowed || inv.Prioritized() && len(rs.sharing) > 0 { // those are asked later, and lend too
		rs.foresee(inv)
	}
	return longest
}

// foresee makes the windows in which a call that borrows will count because it came by their path,
// though their rules are about other callers. If a window were made by the first of these, it would
// begin with what the node has counted. A borrower is counted when it is let in: too early for its
// bucket if the clock's Sleep returned too early, as a test's may, or a coarse one's, by a tick.
func (rs *checker) foresee(inv *engine.Invocation) {
	for _, c := range rs.takers {
		if c.rule.Relation != Chain || !c.rule.metered() || owned(c.meter) {
			continue
		}
		if n := c.onPath(inv); n != nil {
			c.windowOn(n, inv.Now())
		}
	}
}

// Shadow lets every shadow rule take.
func (rs *checker) Shadow(inv *engine.Invocation) {
	for _, c := range rs.Shadows {
		switch n := c.counts(inv, rs); {
		case n == nil:
		case c.lease != nil:
			s := sharer{c, rs}
			family.Rehearse(inv, c.record, s.SharedLimit)
		case c.take(inv, n).Block != nil:
			c.record.ShadowBlocked.Add(inv.Lane(), 1)
		}
	}
}

// Direct reports whether a single rule takes for all of them and makes no call wait in a queue.
func (rs *checker) Direct() bool { return len(rs.takers) == 1 && rs.takers[0].queue == nil }

// ask reports whether the rule would admit the call as things stand, and after what wait.
func (c *controller) ask(inv *engine.Invocation, n *node.StatisticNode) (wait time.Duration, ok bool) {
	now, units := inv.Now(), inv.Units()
	switch {
	case c.rule.Threshold == 0:
		return 0, false
	case c.queue != nil:
		return c.queue.fits(now, c.costOf(units, now, n), c.rule.MaxWait, inv.Prioritized())
	case c.bucket != nil:
		return 0, c.bucket.fits(now, units, c.size)
	case c.rule.Metric == Concurrency:
		return 0, c.hasPermits(n, units, c.limitAt(now, n))
	}
	w, limit := c.windowOn(n, now), c.limitAt(now, n)
	if c.rule.Relation == Associated {
		ok = w.HasRoom(now, units, limit)
	} else {
		ok = w.Fits(now, units, limit)
	}
	if ok || !c.borrows(inv) {
		return 0, ok
	}
	return w.CanBorrow(now, units, limit, c.engine.Config().OccupyTimeout)
}

// take decides, and reserves on the invocation what it grants.
func (c *controller) take(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	switch {
	case c.plain:
		return c.takeBucket(inv, n, c.window, c.limit)
	case c.rule.Threshold == 0:
		return c.refuse()
	case c.queue != nil:
		return c.takeTurn(inv, n)
	case c.bucket != nil:
		return c.takeTokens(inv)
	case c.rule.Relation == Associated:
		return c.look(inv, n)
	case c.memory != nil:
		return c.retake(inv, n)
	}
	return c.takeUnits(inv, n, c.limitAt(inv.Now(), n))
}

func (c *controller) takeUnits(inv *engine.Invocation, n *node.StatisticNode, limit int64) engine.Verdict {
	if c.rule.Metric == Concurrency {
		return c.takePermits(inv, n, limit)
	}
	return c.takeBucket(inv, n, c.windowOn(n, inv.Now()), limit)
}

// retake takes under a limit that moves, and checks whether it has fallen since: if so, what the
// call holds must be within the lower limit. So a call that took after the limit had fallen is
// never beyond it.
func (c *controller) retake(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
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
		inv.GiveBackFrom(before) // for a rule in shadow mode there is no other way
	}
	return v
}

// longer is a refusal, or the longer of two waits. A call that borrows waits for no turn.
func longer(inv *engine.Invocation, next, longest engine.Verdict) engine.Verdict {
	if next.Borrowed {
		inv.WaitAtLeast(next.Wait)
	}
	if next.Block != nil || next.Outlasts(longest) {
		return next
	}
	return longest
}

func (c *controller) refuse() engine.Verdict { return engine.Verdict{Block: c.refusal} }

// refuseUnits refuses a call, which may be of more units than ever fit.
func (c *controller) refuseUnits(inv *engine.Invocation) engine.Verdict {
	if c.bucket != nil && inv.Units() > c.size && c.rule.Threshold > 0 {
		return engine.Verdict{Block: c.tooMany}
	}
	return engine.Verdict{Block: c.refusalOf(inv)}
}

// takeTurn takes a turn in the queue. Where the rate moves, it checks whether the rate has fallen
// since, as retake does: if so, the call takes a turn further away.
func (c *controller) takeTurn(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	now, before := inv.Now(), inv.Reservations()
	for perUnit := c.perUnit(now, n); ; {
		wait, ok := c.queue.take(inv, meter.Cost(inv.Units(), perUnit), c.rule.MaxWait, c.rule.Mode != spec.Shadow)
		if !ok {
			return c.refuse()
		}
		if c.memory != nil {
			if slower := c.perUnit(now, n); slower > perUnit {
				inv.GiveBackFrom(before)
				perUnit = slower
				continue
			}
		}
		return engine.Verdict{Wait: wait, By: c.refusal}
	}
}

// takeTokens takes units of the bucket.
func (c *controller) takeTokens(inv *engine.Invocation) engine.Verdict {
	n := inv.Units()
	taken, ok := c.bucket.take(inv.Now(), n, c.size)
	if !ok {
		return c.refuseUnits(inv)
	}
	inv.Reserve(engine.Reservation{Holder: c.bucket, Units: n, Token: taken.No, Undo: taken.At})
	return engine.Verdict{}
}

// takePermits takes units of the node's semaphore, unless an earlier rule took them
// there: then the total, the call included, must be within this limit too.
func (c *controller) takePermits(inv *engine.Invocation, n *node.StatisticNode, limit int64) engine.Verdict {
	g := n.NeedSemaphore(c.meter.Owner)
	if inv.HoldsSemaphore(g) {
		if !c.hasPermits(n, 0, limit) {
			return c.refuse()
		}
		return engine.Verdict{}
	}
	if g.TryAcquire(inv.Lane(), inv.Units(), limit) || n.Settle(g) && g.TryAcquire(inv.Lane(), inv.Units(), limit) {
		inv.ReserveSemaphore(g)
		return engine.Verdict{}
	}
	return c.refuse()
}

// hasPermits reports whether units more would be within the limit.
func (c *controller) hasPermits(n *node.StatisticNode, units, limit int64) bool {
	g := n.NeedSemaphore(c.meter.Owner)
	return g.Fits(units, limit) || n.Settle(g) && g.Fits(units, limit)
}

// takeBucket takes units of the node's window w; a prioritized call may borrow them
// from a coming bucket. A call holds at most one reservation in a window: where an
// earlier rule made one, it must be within this limit too, or move.
//
// A call that took under rules which were replaced meanwhile must also fit into the windows of
// their successors. It looks for successors after it took. What it took before there was a
// successor has been handed over to it, see [succession], so the call already holds that there;
// what it took later it takes there as well.
func (c *controller) takeBucket(inv *engine.Invocation, n *node.StatisticNode, w *stat.Window, limit int64) engine.Verdict {
	before := inv.Reservations()
	v := c.takeIn(inv, w, limit)
	if v.Block != nil || c.next.Load() == nil {
		return v
	}
	if v = c.takeNext(inv, n, limit, v); v.Block != nil && c.rule.Mode == spec.Shadow {
		inv.GiveBackFrom(before) // as in retake
	}
	return v
}

// takeNext takes in the windows of later controllers.
func (c *controller) takeNext(inv *engine.Invocation, n *node.StatisticNode, limit int64, v engine.Verdict) engine.Verdict {
	for next := c.next.Load(); next != nil && v.Block == nil; next = next.next.Load() {
		w := next.windowOn(n, inv.Now())
		inv.Follow()
		v = longer(inv, c.takeIn(inv, w, limit), v)
	}
	return v
}

func (c *controller) takeIn(inv *engine.Invocation, w *stat.Window, limit int64) engine.Verdict {
	now, units := inv.Now(), inv.Units()
	if held := inv.FindBucket(w); held != nil {
		return c.share(inv, w, held, limit)
	}
	if bucket, ok := w.TryAdd(inv.Lane(), now, units, limit); ok {
		inv.ReserveBucket(w, bucket, limit)
		return engine.Verdict{}
	}
	if !c.borrows(inv) {
		return engine.Verdict{Block: c.refusalOf(inv)}
	}
	wait, bucket, ok := w.TryBorrow(now, units, limit, c.engine.Config().OccupyTimeout)
	if !ok {
		return engine.Verdict{Block: c.refusalOf(inv)}
	}
	inv.ReserveBucket(w, bucket, limit)
	return engine.Verdict{Wait: wait, By: c.refusalOf(inv), Borrowed: true}
}

func (c *controller) share(inv *engine.Invocation, w *stat.Window, held *engine.Reservation, limit int64) engine.Verdict {
	if w.Within(held.Token, limit) {
		held.Undo = min(held.Undo, limit)
		return engine.Verdict{}
	}
	if !c.borrows(inv) {
		return engine.Verdict{Block: c.refusalOf(inv)}
	}
	wait, ok := inv.Rebook(w, limit, c.engine.Config().OccupyTimeout)
	if !ok {
		return engine.Verdict{Block: c.refusalOf(inv)}
	}
	return engine.Verdict{Wait: wait, By: c.refusalOf(inv), Borrowed: true}
}

// look is the verdict of an associated rule: the call doesn't belong to the other resource, so
// nothing is taken there. A prioritized call waits as if it borrowed.
func (c *controller) look(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	if c.rule.Metric == Concurrency {
		if !c.hasPermits(n, inv.Units(), c.limitAt(inv.Now(), n)) {
			return c.refuse()
		}
		return engine.Verdict{}
	}
	now, units := inv.Now(), inv.Units()
	w, limit := c.windowOn(n, now), c.limitAt(now, n)
	if w.HasRoom(now, units, limit) {
		return engine.Verdict{}
	}
	if !c.borrows(inv) {
		return c.refuse()
	}
	wait, ok := w.CanBorrow(now, units, limit, c.engine.Config().OccupyTimeout)
	if !ok {
		return c.refuse()
	}
	return engine.Verdict{Wait: wait, By: c.refusal, Borrowed: true}
}
