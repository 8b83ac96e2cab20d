package isolation

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// checker holds the compiled isolation rules of one resource. Safe for concurrent use.
type checker struct {
	revision    uint64
	controllers []*controller // all rules
	// private holds enforced rules with their own semaphore. They come first: most have no queue, so
	// a call that they refuse hasn't waited in vain. A rule that counts all names together may have
	// one; a call that waits there gets no place in the queue of the resource.
	private []*controller
	// tightest is the strictest enforced rule on the common semaphore, or nil if there is none.
	// Calls that it admits, the others admit too.
	tightest *controller
	// shared holds the enforced rules whose permits a cluster shares.
	shared  family.SharedRules
	shadows []*controller
	costs   engine.Coster // rules with a unit; nil if there are none
}

// Ask returns the first refusal. It takes nothing.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.private {
		if !c.askPrivate(inv, rs.revision) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	if c := rs.tightest; c != nil && !c.ask(inv, rs.revision) {
		return engine.Verdict{Block: c.refusal}
	}
	return engine.Verdict{}
}

// Take lets every rule take. It returns the first refusal.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.private {
		if !c.takePrivate(inv, rs.revision) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	if c := rs.tightest; c != nil && !c.take(inv, rs.revision) {
		return engine.Verdict{Block: c.refusal}
	}
	return engine.Verdict{}
}

// Modes reports whether any rules are enforced and whether any are in shadow mode.
func (rs *checker) Modes() (hold, shadow bool) {
	return rs.tightest != nil || len(rs.private) > 0, len(rs.shadows) > 0
}

// Shadow lets every shadow rule take.
func (rs *checker) Shadow(inv *engine.Invocation) {
	for _, c := range rs.shadows {
		c.shadow(inv, rs.revision)
	}
}

// Direct reports whether no call is queued, and all count on one semaphore.
func (rs *checker) Direct() bool {
	return rs.tightest != nil && rs.tightest.rule.MaxQueue == 0 && len(rs.private) == 0
}

// ask reports whether the rule would admit the call as of now, perhaps after a wait.
func (c *controller) ask(inv *engine.Invocation, revision uint64) bool {
	n := &c.resource.StatisticNode
	g, claim := n.NeedSemaphore(c.owner), c.claim(inv, revision)
	return g.MayJoin(claim) || n.Settle(g) && g.MayJoin(claim)
}

// take acquires units, or a place in the queue. If the controller's semaphore was removed from the
// node because the rules changed, TryJoin grants nothing.
func (c *controller) take(inv *engine.Invocation, revision uint64) bool {
	n, limit := inv.Units(), int64(c.rule.Threshold)
	if !c.semaphore.TryJoin(n, limit, revision) && !c.semaphore.TryJoinOn(inv.Lane(), n, limit, revision) {
		return c.join(inv, revision)
	}
	inv.ReserveSemaphore(c.semaphore)
	return true
}

// join completes take where the fast path doesn't suffice.
func (c *controller) join(inv *engine.Invocation, revision uint64) bool {
	n := &c.resource.StatisticNode
	g, claim := n.NeedSemaphore(c.owner), c.claim(inv, revision)
	got, place := g.Join(inv.Lane(), claim)
	if !got && n.Settle(g) && place == nil { // a call that has a place got the units that Settle freed
		got, place = g.Join(inv.Lane(), claim)
	}
	switch {
	case got:
		inv.ReserveSemaphore(g)
	case place != nil:
		inv.Await(place, c.rule.MaxWait, c.refusal)
	}
	return got || place != nil
}

// shadow is like take, but doesn't wait: a call that would wait stays in the queue until it gets its
// units, exits, or would have been refused; a refusal is only noticed when the next call arrives.
func (c *controller) shadow(inv *engine.Invocation, revision uint64) {
	switch {
	case c.lease != nil:
		family.Rehearse(inv, c.record, c.rule.Unit, c.SharedLimit)
		return
	case c.rule.Unit != "":
		c.shadowCost(inv)
		return
	case c.amount(inv) == 0:
		return
	}
	g := c.resource.NeedSemaphore(c.owner)
	if expired := g.Expire(inv.Now()); expired > 0 {
		c.record.ShadowBlocked.Add(inv.Lane(), int64(expired))
	}
	if g.Queued() > 0 { // maybe under another limit; if calls wait, Bind sets it
		g.SetLimit(revision, int64(c.rule.Threshold))
	}
	switch got, place := g.Join(inv.Lane(), c.claim(inv, revision)); {
	case got:
		inv.ReserveSemaphore(g)
	case place != nil:
		inv.ReservePlace(place)
	default:
		c.record.ShadowBlocked.Add(inv.Lane(), 1)
	}
}
