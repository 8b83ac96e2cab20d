package flow

import (
	"cmp"
	"iter"
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// controller is one rule at work on one resource. How it computes its limit (fixed, warm-up, or by
// the memory in use) and how it enforces it (a window or a semaphore of a node, or a queue) are
// independent.
type controller struct {
	rule     Rule
	engine   *engine.Engine
	resource *engine.Resource
	ref      *engine.Resource // that an associated rule looks at if enforced, see other
	refusal  *core.BlockError

	limit  int64        // of a fixed rule, in whole units
	warm   *warmUp      // nil unless it warms up
	memory *memoryLimit // nil unless it goes by the memory in use
	queue  *throttle    // nil unless calls queue
	bucket *bucket      // nil unless it is a token bucket
	lease  *lease       // nil unless a cluster shares the limit
	spare  spare        // what the rule had before its behavior changed
	meter  meter.Meter

	size    int64            // of the bucket, in units
	tooMany *core.BlockError // for calls of more units than it holds; nil without a bucket
	callers *callers         // nil unless each caller has a window of its own

	// node is the node that the rule counts every call on; nil if the node, or whether a call is
	// counted at all, depends on the call.
	node *node.StatisticNode

	// window is the window of the one node that the rule always counts on; nil if the node depends
	// on the call.
	window *stat.Window

	// plain says that the rule enforces a fixed limit in window, for every call of the resource.
	plain bool

	record *engine.Record

	// next is the controller that continued this one in windows of another shape. All successive
	// controllers that meter in the same windows share it: a call may still go by the first of
	// them.
	next *shared.Pointer[controller]
	// before is the meter of the controller that this one continued, if that had another shape;
	// otherwise nil.
	before *meter.Meter
}

func newController(t *table, at *engine.Site, r Rule, record *engine.Record, old *controller) (*controller, *succession) {
	e, revision := t.Engine, t.Revision
	resource := at.Resource
	c := &controller{rule: r, record: record, engine: e, resource: resource, meter: r.meterAfter(old, resource.Name(), revision), limit: r.limit()}
	c.next = new(shared.Pointer[controller])
	if r.Relation == Direct && r.Origin == OriginDefault {
		c.node = &resource.StatisticNode
	}
	var before *core.BlockError
	if old != nil {
		before = old.refusal
	}
	c.refusal = engine.NewCounted(core.BlockError{Kind: core.KindFlow, Resource: resource.Name(), Rule: r.ID, Origin: r.Origin}, c, record, before)
	if r.Relation == Associated && r.Mode == spec.Enforce && !at.Looks {
		c.ref = e.PinResource(r.Ref)
	}
	if r.Behavior.warmsUp() && r.Threshold > 0 {
		c.warm = newWarmUp(r)
		if old != nil && old.warm != nil {
			c.warm.inherit(old.warm)
		}
	}
	if r.watchesMemory() {
		c.memory = newMemoryLimit(e.Sampler(), r)
	}
	if old != nil {
		c.spare = spare{cmp.Or(old.queue, old.spare.queue), cmp.Or(old.bucket, old.spare.bucket)}
	}
	switch {
	case r.Behavior.queues():
		// The turns that were given remain; only the next cost changes.
		c.queue, c.spare.queue = cmp.Or(c.spare.queue, newThrottle()), nil
	case r.Behavior == TokenBucket:
		c.bucket, c.spare.bucket = cmp.Or(c.spare.bucket, newBucket(r)), nil
		c.size = r.size()
		c.tooMany = engine.NewCounted(*c.refusal, never{c}, record, c.refusal)
	}
	if r.leases() {
		c.lease = newLease(c, t.Member)
		return c, nil
	}
	if r.Mode == spec.Off || at.Looks { // it only keeps what it has for later, or only looks
		return c, nil
	}
	s := c.openMeters(at.Now, old)
	if r.Relation == Direct && r.Origin == OriginOther && r.metered() && r.Threshold > 0 {
		c.callers = new(callers)
	}
	c.plain = r.Mode == spec.Enforce && r.Threshold > 0 && c.node != nil && c.window != nil && c.warm == nil && c.memory == nil
	return c, s
}

// openMeters makes the meters of the existing nodes, so that they count from now on. If the rule
// before counted in windows of another shape, it returns how the calls are handed over.
func (c *controller) openMeters(now int64, old *controller) *succession {
	if c.queue != nil || c.bucket != nil {
		return nil
	}
	var s *succession
	switch {
	case !c.rule.metered() || !c.rule.goesOnFrom(old, c.resource.Name()) || !old.rule.metered():
	case c.meter == old.meter:
		c.next = old.next
	default:
		meter := old.meter // a copy, so that it keeps nothing of the old rule alive
		c.before = &meter
		s = &succession{old: old, new: c}
	}
	for n := range c.nodes() {
		if c.rule.Metric == Concurrency {
			n.NeedSemaphore(c.meter.Owner)
			continue
		}
		var seed *stat.Window
		if s == nil { // otherwise it is handed over before any call is decided by it
			seed = c.seed(n, old)
		}
		if w := n.Window(now, c.meter, seed); c.fixed() {
			c.window = w
		}
	}
	return s
}

// fixed reports whether the rule always counts on the same node. A rule in shadow mode names no
// node, so any but the resource's own may leave and come back as a different one.
func (c *controller) fixed() bool {
	return c.node != nil || c.rule.Mode != spec.Shadow &&
		(c.rule.Relation == Associated || c.rule.Relation == Direct && c.rule.Origin != OriginOther)
}

// other is the resource that an associated rule looks at, nil if it doesn't exist.
func (c *controller) other() *engine.Resource {
	if c.ref != nil {
		return c.ref
	}
	r, _ := c.engine.FindResource(c.rule.Ref)
	return r
}

// nodes yields the existing nodes that the rule counts on.
func (c *controller) nodes() iter.Seq[*node.StatisticNode] {
	return func(yield func(*node.StatisticNode) bool) {
		switch {
		case c.rule.Relation == Associated:
			if r := c.other(); r != nil {
				yield(&r.StatisticNode)
			}
		case c.rule.Relation == Chain:
			if n, ok := c.resource.Calls().Find(c.rule.Ref); ok {
				yield(&n.StatisticNode)
			}
		case c.rule.Origin == OriginDefault:
			yield(&c.resource.StatisticNode)
		case c.rule.Origin == OriginOther:
			for _, n := range c.resource.Origins().All() {
				if c.meters(n) && !yield(&n.StatisticNode) {
					return
				}
			}
			if n := c.resource.OverflowOrigin(); n != nil && c.meters(n) {
				yield(&n.StatisticNode)
			}
		case c.rule.Mode == spec.Shadow:
			if n, ok := c.resource.Origins().Find(c.rule.Origin); ok {
				yield(&n.StatisticNode)
			}
		default:
			yield(&c.resource.Origins().Pin(c.rule.Origin).StatisticNode)
		}
	}
}

// meters reports whether a caller's node already has meters, of enforced rules if this one is
// enforced.
func (c *controller) meters(n *node.OriginNode) bool {
	return n.Meters().Judged() || c.rule.Mode == spec.Shadow && n.Metered()
}

// selects reports whether the rule, one of rs, applies to calls from origin.
func (c *controller) selects(origin string, rs *checker) bool {
	switch c.rule.Origin {
	case OriginDefault:
		return true
	case OriginOther:
		return origin != "" && !rs.named[c.rule.Mode][origin]
	}
	return origin == c.rule.Origin
}

// counts returns the node that the rule, one of rs, counts the call on, nil if it doesn't
// apply. Nor does it apply where the slot that finds the node panicked; the other rules still do.
func (c *controller) counts(inv *engine.Invocation, rs *checker) *node.StatisticNode {
	if c.node != nil {
		return c.node
	}
	return c.find(inv, rs)
}

// find is counts where it depends on the call.
func (c *controller) find(inv *engine.Invocation, rs *checker) *node.StatisticNode {
	switch {
	case !c.selects(inv.Origin(), rs):
		return nil
	case c.rule.Relation == Associated:
		if c.rule.Threshold == 0 {
			return &c.resource.StatisticNode // it refuses, and reads nothing there
		}
		if r := c.other(); r != nil && r.Entered() {
			return &r.StatisticNode
		}
		return nil
	case c.rule.Relation == Chain:
		return c.onPath(inv)
	}
	if inv.OriginNode() == nil {
		return nil
	}
	return &inv.OriginNode().StatisticNode
}

// onPath returns the call node if the call came in through the context that a chain rule names,
// otherwise nil.
func (c *controller) onPath(inv *engine.Invocation) *node.StatisticNode {
	if inv.ContextName() != c.rule.Ref || inv.Node() == nil {
		return nil
	}
	return &inv.Node().StatisticNode
}

// limitAt is the limit in whole units per interval at now.
func (c *controller) limitAt(now int64, n *node.StatisticNode) int64 {
	switch {
	case c.memory != nil:
		return int64(c.memory.threshold())
	case c.warm == nil:
		return c.limit
	}
	return c.warmLimit(c.warm.at(now, n))
}

// warmLimit is the limit at a rate of the warm-up.
func (c *controller) warmLimit(rate float64) int64 {
	if rate >= c.warm.perSecond {
		return c.limit // computed from the interval in seconds, it may come out slightly lower
	}
	limit := max(rate*c.rule.Interval.Seconds(),
		c.rule.Threshold/float64(c.rule.ColdFactor),
		min(c.rule.Threshold, 1)) // a cold resource gets at least one call
	return int64(min(limit, c.rule.Threshold))
}

// costOf is the time that the units take in the queue at now.
func (c *controller) costOf(units, now int64, n *node.StatisticNode) meter.Moment {
	return meter.Cost(units, c.perUnit(now, n))
}

func (c *controller) perUnit(now int64, n *node.StatisticNode) float64 {
	switch {
	case c.memory != nil:
		return float64(c.rule.Interval) / c.memory.threshold()
	case c.warm != nil:
		return float64(time.Second) / c.warm.at(now, n)
	case c.rule.Threshold == 0:
		return math.Inf(1)
	}
	return float64(c.rule.Interval) / c.rule.Threshold
}

// slowest is perUnit at the lowest rate.
func (c *controller) slowest(now int64, n *node.StatisticNode) float64 {
	if c.memory != nil {
		return float64(c.rule.Interval) / c.memory.least
	}
	return c.lookPerUnit(now, n)
}

// borrows reports whether a call that doesn't fit may wait for a coming bucket.
func (c *controller) borrows(inv *engine.Invocation) bool {
	return inv.Prioritized() && c.rule.Metric == QPS && c.rule.Behavior == Reject
}

// RetryAfter is when one more unit would be admitted. It is not known where it depends on calls
// that exit or, when the rule counts on several nodes, on the call; where those are the nodes of
// callers, see callers.
func (c *controller) RetryAfter() (wait time.Duration, known bool) {
	now := c.engine.Now()
	switch {
	case c.rule.Threshold == 0:
		return 0, false
	case c.lease != nil:
		return c.lease.retryAfter(now)
	case c.queue != nil:
		return c.queue.retryAfter(now, meter.Cost(1, c.lookPerUnit(now, &c.resource.StatisticNode)), c.rule.MaxWait), true
	case c.bucket != nil:
		return c.bucket.retryAfter(now, c.size), true
	case c.window != nil:
		return c.window.RetryAfter(now, 1, c.lookLimit(now, &c.resource.StatisticNode))
	}
	return 0, false
}

// Limit is the threshold: the current one for a rule that goes by the memory in use, the whole one
// for a rule that warms up.
func (c *controller) Limit() (float64, bool) {
	if c.memory != nil {
		return c.memory.threshold(), true
	}
	return c.rule.Threshold, true
}

// idle reports whether the controller can be forgotten without anything being
// admitted that it would have refused.
func (c *controller) idle(now int64) bool {
	if c.queue != nil && !c.queue.idle(now, c.slowest(now, &c.resource.StatisticNode)) {
		return false
	}
	if c.bucket != nil && !c.bucket.full(now) {
		return false
	}
	if c.window != nil && (c.window.Sum(now) != 0 || c.window.Waiting(now) != 0) {
		return false // it may have outlived the node that it was created on
	}
	return c.warm == nil || c.warm.cold(now)
}
