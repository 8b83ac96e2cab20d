package flow

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
)

// controller is one rule in effect on one resource. Its parts are independent: scope finds the node
// that a call counts on, allowance computes how much the rule grants now, and the enforcer decides.
type controller struct {
	scope
	allowance
	enforcer enforcer

	refusal *core.BlockError
	record  *engine.Record
	meter   meter.Meter
	// calendar has the periods of a rule with a quota, otherwise it is nil.
	calendar *calendar.Calendar
	window   *window // the enforcer if it counts in windows of nodes, otherwise nil
	costs    *window // the same if it counts a unit of all calls in one, otherwise nil
	kept     kept

	notifier *family.Notifier // nil unless the rule reports its use
	noticed  *noticed
}

// kept survives changes of a rule's behavior: calls that its queue, its token bucket and its quota
// let pass still count when the rule gets that behavior again. Each is nil until the rule first needs
// it.
type kept struct {
	queue   *queue
	bucket  *bucket
	account *account
	// rehearsed has the turns in shares of a rule in shadow mode, which nobody awaits.
	rehearsed *queue
}

// newController returns the controller of a rule at a resource. It continues old unless that is
// nil. If calls must be handed over from windows of another shape, it returns the succession.
func newController(t *table, at *engine.Binding, r Rule, record *engine.Record, old *controller) (*controller, *succession) {
	e, resource := t.Engine, at.Resource
	c := &controller{record: record, meter: r.meterAfter(old, resource.Name(), t.Revision), calendar: r.periods().Calendar()}
	c.scope = scope{rule: r, engine: e, resource: resource}
	if r.Relation == Direct && r.Origin == OriginDefault && r.Unit == "" && !r.Together {
		c.node = &resource.StatisticNode
	}
	if r.Relation == Associated && r.Mode == spec.Enforce && !at.Looks {
		c.ref = e.PinResource(r.Ref)
	}
	c.allowance = newAllowance(&c.rule, e.Sampler())
	var before *core.BlockError
	if old != nil {
		before = old.refusal
		if r.Unit == old.rule.Unit {
			c.kept = old.kept
		}
		if c.warm != nil && old.warm != nil {
			c.warm.inherit(old.warm)
		}
	}
	refused := family.Refused(core.KindFlow, resource.Name(), r.Info())
	refused.Origin = r.Origin
	c.refusal = engine.NewCounted(refused, c, record, before)
	c.setNotices(old)
	c.enforcer = c.newEnforcer(t.Revision)
	switch {
	case r.leases():
		c.enforcer = newLeased(c, c.enforcer, t.Member, old)
	case r.Threshold == 0:
		c.enforcer = closed{c, c.enforcer}
	}
	if r.leases() || r.Mode == spec.Off || at.Looks { // a rule that is off only keeps state
		return c, nil
	}
	return c, c.openMeters(at.Now, old)
}

// newEnforcer returns the enforcer for the rule's metric and behavior.
func (c *controller) newEnforcer(revision uint64) enforcer {
	switch r := &c.rule; {
	case r.Behavior.queues():
		// Turns that were assigned stay; only the next cost changes.
		if c.kept.queue == nil {
			c.kept.queue = newQueue()
			c.kept.queue.setBurst(0, *r)
		}
		if !r.fair() {
			return &pacer{c, c.kept.queue}
		}
		q := c.kept.queue
		if r.Mode == spec.Shadow {
			c.kept.rehearsed = cmp.Or(c.kept.rehearsed, newQueue())
			q = c.kept.rehearsed
		}
		return &fairPacer{&pacer{c, q}, family.NewTenants(r.Share, r.Shed, MaxPerShareQueue, c.engine.Now), revision}
	case r.Behavior == TokenBucket:
		c.kept.bucket = cmp.Or(c.kept.bucket, newBucket(*r))
		return newTokens(c, c.kept.bucket)
	case r.Metric == Concurrency:
		return permits{c}
	case r.Per != spec.PerNone:
		c.kept.account = cmp.Or(c.kept.account, &account{calendar: c.calendar})
		return &quota{c, c.kept.account}
	}
	w := &window{controller: c, limit: c.limit, next: new(shared.Pointer[window])}
	if c.rule.metered() {
		c.window = w
	}
	return w
}

// openMeters creates the meters on the existing nodes, so that they count from now on. If the
// previous rule counted in windows of another shape, it returns the succession that hands the calls
// over.
func (c *controller) openMeters(now int64, old *controller) *succession {
	switch {
	case c.window != nil:
		return c.window.open(now, old)
	case c.rule.Metric == Concurrency:
		for n := range c.nodes() {
			n.NeedSemaphore(c.meter.Owner)
		}
	}
	return nil
}

// takeOver runs right before the first call under this controller, which continues old unless that
// is nil. From then on the bucket fills at this controller's rate. When a queue becomes a bucket,
// assigned turns count as units taken: the bucket is full when the next turn would have been due without
// a burst. When a bucket becomes a queue, the first turn is one
// spacing after the last unit that passed the bucket. A window carries over neither: after a window, a
// bucket is as the rule last had it, or full.
func (c *controller) takeOver(old *controller, now int64) {
	queue, bucket := c.kept.queue, c.kept.bucket
	if c.rule.Behavior == TokenBucket {
		if c.rule.Threshold > 0 {
			bucket.setUnit(now, c.rule.unitCost())
		}
		if queue != nil && old != nil && old.rule.Behavior != TokenBucket {
			bucket.follow(queue.paid())
		}
		return
	}
	if bucket != nil && !old.rule.Behavior.queues() {
		queue.follow(bucket.last())
	}
	queue.setBurst(now, c.rule)
}

// refuse returns the rule's refusal, which is the same for every call.
func (c *controller) refuse() engine.Verdict { return engine.Verdict{Block: c.refusal} }

// RetryAfter returns the time until one more unit would be admitted. It is unknown if it depends on
// calls that exit or, for a rule that counts on several nodes, on the call; for nodes of callers,
// see callers.
func (c *controller) RetryAfter() (wait time.Duration, known bool) {
	return c.enforcer.retryAfter(c.engine.Now(), 1)
}

// Limit returns the threshold: the current one if it follows the memory in use, the full one for a
// rule that warms up.
func (c *controller) Limit() (float64, bool) {
	if c.memory != nil {
		return c.memory.threshold(), true
	}
	return c.rule.Threshold, true
}

// idle reports whether the controller can be dropped without admitting anything it would have
// refused.
func (c *controller) idle(now int64) bool {
	return c.enforcer.idle(now) && (c.warm == nil || c.warm.cold(now))
}
