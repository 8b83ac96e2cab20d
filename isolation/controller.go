package isolation

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
)

// sharedSemaphore owns the semaphore that the enforced rules of a resource share, or that one rule
// has at its home. Flow rules use a different semaphore, in which a queued call counts.
const sharedSemaphore = meter.Shared("isolation")

// controller is one rule in effect on one resource. A semaphore of the resource's node tracks the
// calls that hold permits and the calls that wait; it survives changes of the rule.
type controller struct {
	rule      Rule
	resource  *engine.Resource // the home of a rule that counts all names together
	refusal   *core.BlockError
	owner     any              // of the semaphore
	semaphore *meter.Semaphore // the owner's semaphore when the rule was compiled, or nil if the rule is off
	lease     family.Shared    // the shared lease instead, or nil
	tenants   *family.Tenants  // nil unless the rule has shares

	record *engine.Record
}

func newController(t *table, r Rule, record *engine.Record, resource *engine.Resource, old *controller) *controller {
	c := &controller{rule: r, record: record, resource: resource, owner: r.owner(resource.Name(), old)}
	var before *core.BlockError
	if old != nil {
		before = old.refusal
	}
	c.refusal = engine.NewCounted(family.Refused(core.KindIsolation, resource.Name(), r.Info()), c, record, before)
	switch {
	case r.leases():
		c.share(t.Member)
	case r.Mode != spec.Off:
		c.semaphore = resource.NeedSemaphore(c.owner)            // so that it counts from now on
		if c.owner == sharedSemaphore || r.Mode == spec.Shadow { // otherwise it has no queue
			c.tenants = family.NewTenants(r.Share, r.Shed, r.MaxQueue, t.Engine.Now)
		}
	}
	return c
}

// private owns, by its address, a semaphore that only one rule uses: the ID of the rule may later be
// another rule's.
type private struct{ _ byte }

// owner returns the owner of the rule's semaphore on the node of a resource. A rule has one to
// itself if not every call there counts: in shadow mode only calls that it would admit, with a unit
// only calls that name it, and on the overflow resource only names that it matches. No other
// semaphore counts those calls, so the rule that continues this one in the same unit gets the same
// semaphore.
func (r Rule) owner(resource string, old *controller) any {
	if old != nil && old.rule.Unit != r.Unit {
		old = nil
	}
	switch {
	case r.Unit != "" && old != nil:
		return old.owner
	case r.Unit != "": // in every mode: a node with units in flight has calls in flight, so it stays
		return new(private)
	case r.leases() || r.Mode != spec.Shadow && (r.Info().Named() || resource != node.OverflowName):
		return sharedSemaphore
	case old != nil && old.owner != sharedSemaphore:
		return old.owner
	case resource == node.OverflowName: // which is never evicted
		return new(private)
	}
	return meter.ShadowOwner{Of: new(private)}
}

// claim returns the call's claim under the rule.
func (c *controller) claim(inv *engine.Invocation, revision uint64) meter.Claim {
	claim := meter.Claim{
		Units: inv.Units(), First: inv.Prioritized(),
		Limit: int64(c.rule.Threshold), Revision: revision,
	}
	if c.queues(inv) {
		claim.Queue = c.rule.MaxQueue
		claim.Until = inv.Now() + int64(c.rule.MaxWait)
	}
	return claim
}

// queues reports whether the call may wait in the rule's queue. A call waits in only one queue, so
// rules that share the calls beyond the cap have none.
func (c *controller) queues(inv *engine.Invocation) bool {
	return c.rule.Mode == spec.Shadow || c.owner == sharedSemaphore && !inv.Awaits()
}

// RetryAfter is unknown: it depends on calls that exit.
func (c *controller) RetryAfter() (time.Duration, bool) { return 0, false }

// Limit returns the threshold.
func (c *controller) Limit() (float64, bool) { return float64(c.rule.Threshold), true }
