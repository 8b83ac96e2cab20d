package outlier

import (
	"iter"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// controller is one revision of a rule in effect on one resource. All its revisions share the pool.
type controller struct {
	rule     Rule
	terms    *breaker.Terms
	engine   *engine.Engine
	resource string
	pool     *pool
	refusal  *core.BlockError
	record   *engine.Record
	adopted  bool // the pool uses this revision; guarded by its site
}

func newController(e *engine.Engine, r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
	resource := at.Resource.Name()
	c := &controller{rule: r, terms: breaker.NewTerms(r.breaker()), engine: e, resource: resource, record: record}
	refusal := core.BlockError{Kind: core.KindOutlier, Resource: resource, Rule: r.ID}
	if old == nil {
		c.pool = newPool(siteOf(at), r, c.terms)
		c.refusal = engine.NewCounted(refusal, c, record, nil)
		return c
	}
	c.pool = old.pool
	c.refusal = engine.NewCounted(refusal, c, record, old.refusal)
	return c
}

// publish moves the pools of a resource to these revisions of their rules, all in one step, since
// they decide together how many endpoints may be ejected. A rule that is off keeps its state for
// later.
func (s *site) publish(controllers iter.Seq[*controller], now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var enforced []*pool
	for c := range controllers {
		if !c.adopted && c.rule.Mode != spec.Off {
			c.pool.adopt(c.rule, c.terms, now)
		}
		if c.adopted = true; c.rule.Mode == spec.Enforce {
			enforced = append(enforced, c.pool)
		}
	}
	s.enforce(enforced)
}

// RetryAfter returns the time until the first ejected endpoint may get a call.
func (c *controller) RetryAfter() (first time.Duration, known bool) {
	now := c.engine.Now()
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	now = c.pool.tidy(now)
	ejected := 0
	for x := range c.pool.outside.all() {
		ejected++
		if after, ok := x.breaker.RetryAfter(now); ok && (!known || after < first) {
			first, known = after, true
		}
	}
	return first, known || ejected == 0
}

// Limit is unknown: the rule has none.
func (c *controller) Limit() (float64, bool) { return 0, false }

// asks reports whether the call would be admitted as of now.
func (c *controller) asks(inv *engine.Invocation, addr string) bool {
	if c.pool.site.ejected.Load() == 0 {
		return true
	}
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	return c.pool.asks(addr, inv.Now())
}

// take admits the call or refuses it. An admitted call carries a number that counts when it
// completes, and the reservation of a probe if it is one. If the call is decided again, after a
// wait that was not announced, an earlier admission stands if still valid.
func (c *controller) take(inv *engine.Invocation, addr string, again bool) (ok bool) {
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	var before *engine.Completion
	if again {
		before = c.noted(inv)
	}
	if before != nil {
		if who := before.Completer.(*endpoint); who.in != nil && who.breaker.Holds(uint64(before.Token)) {
			return true
		}
	}
	who, number, probe, ok := c.pool.admit(addr, inv.Now())
	switch {
	case !ok:
		if c.rule.Mode == spec.Shadow {
			c.record.ShadowBlocked.Add(inv.Lane(), 1)
		}
		return false
	case who == nil: // not tracked
		return true
	case before != nil:
		before.Completer, before.Token = who, int64(number)
	default:
		inv.OnComplete(who, int64(number))
	}
	if probe {
		inv.Reserve(engine.Reservation{Holder: who, Token: int64(number)})
	}
	return true
}

func (c *controller) noted(inv *engine.Invocation) *engine.Completion {
	left := inv.Completions()
	for i := range left {
		if who, ok := left[i].Completer.(*endpoint); ok && who.pool == c.pool {
			return &left[i]
		}
	}
	return nil
}
