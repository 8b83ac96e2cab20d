package isolation

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// everybody owns the gauge of a resource's node that the rules in force look at. It is
// not the one that flow's rules look at: there a call that waits in line counts.
const everybody = node.Everybody("isolation")

// controller is one rule at work on one resource. Who holds permits and who waits is
// known to a gauge of the resource's node, which outlives the rule's changes.
type controller struct {
	rule     Rule
	resource *core.Resource
	refusal  *core.BlockError
	owner    any         // of the gauge
	gauge    *stat.Gauge // of that owner when the rule was compiled, nil if it is off

	rehearsed *stat.Tally // refusals of a shadow rule
}

func newController(r Rule, resource *core.Resource, old *controller) *controller {
	c := &controller{rule: r, resource: resource, owner: r.owner(resource.Name(), old), rehearsed: new(stat.Tally)}
	c.refusal = core.NewBlockError(core.KindIsolation, resource.Name(), r.ID, nil)
	if old != nil {
		c.refusal.Succeed(old.refusal)
		c.rehearsed = old.rehearsed
	}
	if r.Mode != core.Off {
		c.gauge = resource.NeedGauge(c.owner) // so that it counts from now on
	}
	return c
}

// apart owns a gauge that a rule has to itself, by its address: the ID of the rule may
// become another's.
type apart struct{ _ byte }

// owner names the rule's gauge on the node of a resource. It has one to itself if not
// every call there counts: in shadow mode only those it would admit, and on the
// overflow resource only those whose name it matches. Nobody else knows of those, so
// that gauge is also that of the rule which goes on from it.
func (r Rule) owner(resource string, old *controller) any {
	switch {
	case r.Mode != core.Shadow && !(r.Regex && resource == node.OverflowName):
		return everybody
	case old != nil && old.owner != everybody:
		return old.owner
	}
	return new(apart)
}

// claim is what a call wants under the rule.
func (c *controller) claim(inv *core.Invocation, revision uint64) stat.Claim {
	claim := stat.Claim{
		Units: inv.Units(), First: inv.Prioritized(),
		Limit: int64(c.rule.Threshold), Revision: revision,
	}
	if c.queues(inv) {
		claim.Queue = c.rule.MaxQueue
		claim.Until = inv.Now() + int64(c.rule.MaxWait)
	}
	return claim
}

// queues reports whether the call may wait in the rule's line. A call waits in one
// line only, so the rules that share the calls beyond the cap have none.
func (c *controller) queues(inv *core.Invocation) bool {
	return c.rule.Mode == core.Shadow || c.owner == everybody && !inv.Awaits()
}

// acts is what [core.FamilyTable] asks of every controller.
func (c *controller) acts() (Rule, *core.BlockError, *stat.Tally) {
	return c.rule, c.refusal, c.rehearsed
}
