package adaptive

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shed"
	"github.com/penstock-go/penstock/node"
)

// controller is one revision of a rule in effect on one resource. All its revisions share the
// limit.
type controller struct {
	rule        Rule
	resource    *engine.Resource
	refusal     *core.BlockError
	limit       *limit
	owner       any // of the semaphore of units in flight
	shadowOwner any // of the semaphore of units that a shadow rule would have admitted
	record      *engine.Record
	judge       *shed.Judge // of a rule with a shed order; otherwise nil, as are its refusals
	refusals    *shed.Refusals
}

func (t *table) newController(r Rule, record *engine.Record, resource *engine.Resource, old *controller) *controller {
	c := &controller{rule: r, record: record, resource: resource}
	var before *core.BlockError
	if old != nil {
		before, c.limit = old.refusal, old.limit
	} else {
		c.limit = newLimit(t.nextID(), r)
	}
	c.refusal = engine.NewCounted(family.Refused(core.KindAdaptive, resource.Name(), r.Info()), c, record, before)
	if c.judge = c.limit.judgeOf(r); c.judge != nil {
		c.refusals = shed.NewRefusals(c.refusal, c, record)
	}
	c.owner, c.shadowOwner = c.limit.owners(!r.Info().Named() && resource.Name() == node.OverflowName)
	return c
}

// begin puts the limit under this revision. A rule that is off keeps its state for later.
func (c *controller) begin(int64) {
	if c.rule.Mode != spec.Off {
		c.resource.NeedSemaphore(c.owner) // so that it counts from now on
		c.limit.adopt(c.rule.terms(), &c.resource.StatisticNode, c.owner)
	}
}

// RetryAfter is unknown: it depends on calls that exit.
func (c *controller) RetryAfter() (time.Duration, bool) { return 0, false }

// Limit returns the limit in force.
func (c *controller) Limit() (float64, bool) {
	return float64(claim(c.limit.word.Load(), 0).Limit), true
}

// counts reports whether the controller counts with a semaphore of that owner.
func (c *controller) counts(owner any) bool {
	return c.rule.Mode != spec.Off && owner == c.owner || c.rule.Mode == spec.Shadow && owner == c.shadowOwner
}

// ask reports whether the rule would admit the call as of now.
func (c *controller) ask(inv *engine.Invocation) bool {
	n := &c.resource.StatisticNode
	return c.limit.fits(n, n.NeedSemaphore(c.owner), inv.Units(), int64(c.rule.Ceiling))
}

// take takes units, unless the call has them from before a wait that was not announced. It finds
// the semaphore before it reads the limit: a goroutine that changes the limit after that also
// updates the semaphore.
func (c *controller) take(inv *engine.Invocation) bool {
	if before := c.noted(inv); before != nil {
		before.Token = token(before.Token&inFlightMask, inv)
		return true
	}
	n := &c.resource.StatisticNode
	g := n.NeedSemaphore(c.owner)
	if !c.limit.take(n, g, inv.Lane(), inv.Units(), int64(c.rule.Ceiling)) {
		return false
	}
	inv.ReserveSemaphore(g)
	inv.OnComplete(c.limit, token(g.InUse(), inv))
	return true
}

// shadow is like take, but admits every call: the rule learns from all calls in flight, and counts
// as refused the calls that don't fit together with those it would have admitted.
func (c *controller) shadow(inv *engine.Invocation) {
	if before := c.noted(inv); before != nil {
		before.Token = token(before.Token&inFlightMask, inv)
		return
	}
	n := &c.resource.StatisticNode
	all := n.NeedSemaphore(c.owner)
	inv.OnComplete(c.limit, token(all.InUse()+inv.Units(), inv))
	if _, shared := c.owner.(meter.Shared); !shared {
		all.Acquire(inv.Lane(), inv.Units())
		inv.ReserveSemaphore(all)
	}
	if !c.admitShadow(inv) {
		c.record.ShadowBlocked.Add(inv.Lane(), 1)
	}
}

func (c *controller) noted(inv *engine.Invocation) *engine.Completion { return inv.Left(c.limit) }

// A token holds the units in flight when the call was admitted, and the time from asking to
// admission in microseconds.
const (
	inFlightBits = 31
	inFlightMask = 1<<inFlightBits - 1
	mostWaited   = 1<<(63-inFlightBits) - 1
)

func token(inFlight int64, inv *engine.Invocation) int64 {
	waited := min(max(0, inv.Now()-inv.Began())/1000, mostWaited)
	return waited<<inFlightBits | min(inFlight, inFlightMask)
}

// Complete learns from the end of a call, unless its response time means nothing.
func (l *limit) Complete(inv *engine.Invocation, token int64) {
	if inv.LongLived() {
		return
	}
	waited := token >> inFlightBits * 1000
	took := inv.Now() - inv.Began() - waited
	l.complete(inv.Now(), token&inFlightMask, took, inv.Units(), inv.Failed())
}
