package adaptive

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// controller is one revision of a rule at work on one resource. The limit is that of
// all its revisions.
type controller struct {
	rule      Rule
	resource  *core.Resource
	refusal   *core.BlockError
	limit     *limit
	owner     any         // of the gauge of what is in flight
	rehearsal any         // of the gauge of what a shadow rule would have admitted
	rehearsed *stat.Tally // refusals of a shadow rule
}

func newController(r Rule, resource *core.Resource, old *controller) *controller {
	c := &controller{rule: r, resource: resource}
	c.refusal = core.NewBlockError(core.KindAdaptive, resource.Name(), r.ID, nil)
	if old != nil {
		c.refusal.Succeed(old.refusal)
		c.limit, c.rehearsed = old.limit, old.rehearsed
	} else {
		c.limit, c.rehearsed = newLimit(r), new(stat.Tally)
	}
	c.owner, c.rehearsal = c.limit.owners(r.Regex && resource.Name() == node.OverflowName)
	return c
}

// begin makes the limit that of this revision. One that is off keeps what it has for
// later.
func (c *controller) begin(int64) {
	if c.rule.Mode != core.Off {
		c.resource.NeedGauge(c.owner) // so that it counts from now on
		c.limit.adopt(c.rule.terms(), &c.resource.StatisticNode, c.owner)
	}
}

// acts is what [core.FamilyTable] asks of every controller.
func (c *controller) acts() (Rule, *core.BlockError, *stat.Tally) {
	return c.rule, c.refusal, c.rehearsed
}

// counts reports whether the controller counts with a gauge of that owner.
func (c *controller) counts(owner any) bool {
	return c.rule.Mode != core.Off && owner == c.owner || c.rule.Mode == core.Shadow && owner == c.rehearsal
}

// ask reports whether the rule would admit the call as things stand.
func (c *controller) ask(inv *core.Invocation) bool {
	n := &c.resource.StatisticNode
	return c.limit.fits(n, n.NeedGauge(c.owner), inv.Units(), int64(c.rule.Ceiling))
}

// take takes units, or has them from before a wait that nobody knew of. The gauge comes
// before the limit: whoever changes that from then on tells the gauge.
func (c *controller) take(inv *core.Invocation) bool {
	if mark := c.marked(inv); mark != nil {
		mark.Token = token(mark.Token&inFlightMask, inv)
		return true
	}
	n := &c.resource.StatisticNode
	g := n.NeedGauge(c.owner)
	if !c.limit.take(n, g, inv.Units(), int64(c.rule.Ceiling)) {
		return false
	}
	inv.ReserveGauge(g)
	inv.Mark(c.limit, token(g.InUse(), inv))
	return true
}

// rehearse does what take does, but admits everybody: from all that are in flight the
// rule learns, and those count as refused that don't fit beside the ones it would have
// admitted.
func (c *controller) rehearse(inv *core.Invocation) {
	if mark := c.marked(inv); mark != nil {
		mark.Token = token(mark.Token&inFlightMask, inv)
		return
	}
	n := &c.resource.StatisticNode
	all := n.NeedGauge(c.owner)
	inv.Mark(c.limit, token(all.InUse()+inv.Units(), inv))
	if _, everybody := c.owner.(node.Everybody); !everybody {
		all.Acquire(inv.Units())
		inv.ReserveGauge(all)
	}
	if g := n.NeedGauge(c.rehearsal); c.limit.take(n, g, inv.Units(), int64(c.rule.Ceiling)) {
		inv.ReserveGauge(g)
	} else {
		c.rehearsed.Add(inv.Lane(), 1)
	}
}

func (c *controller) marked(inv *core.Invocation) *core.Mark {
	marks := inv.Marks()
	for i := range marks {
		if marks[i].Owner == any(c.limit) {
			return &marks[i]
		}
	}
	return nil
}

// A token says what was in flight when the call came in, and how many microseconds
// after it had asked that was.
const (
	inFlightBits = 31
	inFlightMask = 1<<inFlightBits - 1
	mostWaited   = 1<<(63-inFlightBits) - 1
)

func token(inFlight int64, inv *core.Invocation) int64 {
	waited := min(max(0, inv.Now()-inv.Began())/1000, mostWaited)
	return waited<<inFlightBits | min(inFlight, inFlightMask)
}

// Completed learns from the end of a call.
func Completed(inv *core.Invocation) {
	for _, mark := range inv.Marks() {
		if l, ok := mark.Owner.(*limit); ok {
			waited := mark.Token >> inFlightBits * 1000
			took := inv.Now() - inv.Began() - waited
			l.complete(inv.Now(), mark.Token&inFlightMask, took, inv.Units(), inv.Failed())
		}
	}
}
