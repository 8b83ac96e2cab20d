package outlier

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

// controller is one revision of a rule at work on one resource. The pool is that of all
// its revisions.
type controller struct {
	rule      Rule
	terms     *breaker.Terms
	engine    *core.Engine
	resource  string
	pool      *pool
	refusal   *core.BlockError
	rehearsed *stat.Tally // refusals of a shadow rule
}

func (t *Table) newController(e *core.Engine, r Rule, resource string, old *controller) *controller {
	c := &controller{rule: r, terms: breaker.NewTerms(r.breaker()), engine: e, resource: resource, rehearsed: new(stat.Tally)}
	c.refusal = core.NewBlockError(core.KindOutlier, resource, r.ID, c)
	if old == nil {
		c.pool = newPool(t.site(resource), r, c.terms)
		return c
	}
	c.pool, c.rehearsed = old.pool, old.rehearsed
	c.refusal.Succeed(old.refusal)
	t.register(c)
	return c
}

// publish makes the pool go by this revision. One that is off keeps what it has for
// later.
func (c *controller) publish(now int64) {
	if c.rule.Mode == core.Off {
		return
	}
	s := c.pool.site
	s.mu.Lock()
	defer s.mu.Unlock()
	c.pool.adopt(c.rule, c.terms, now)
	if c.rule.Mode == core.Enforce {
		pools := s.pools
		if !slices.Contains(pools, c.pool) {
			pools = append(slices.Clone(pools), c.pool)
		}
		s.enforce(pools) // the share may be another now
	}
}

// RetryAfter is when the first of the ejected callees gets a call, 0 if it can't tell.
func (c *controller) RetryAfter() time.Duration {
	now := c.engine.Now()
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	now = c.pool.tidy(now)
	first := time.Duration(0)
	for x := range c.pool.outside.all() {
		if after := x.breaker.RetryAfter(now); first == 0 || after < first {
			first = after
		}
	}
	return first
}

// asks reports whether the call would be let in as things stand.
func (c *controller) asks(inv *core.Invocation, addr string) bool {
	if c.pool.site.ejected.Load() == 0 {
		return true
	}
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	return c.pool.asks(addr, inv.Now())
}

// take lets the call in or not. What it got it carries: a mark that counts when it
// completes, and the reservation of a probe. What it has from before stands if it is
// still good: it was decided before a wait that nobody knew of.
func (c *controller) take(inv *core.Invocation, addr string) (ok bool) {
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	mark := c.marked(inv)
	if mark != nil {
		if before := mark.Owner.(*callee); before.in != nil && before.breaker.Holds(uint64(mark.Token)) {
			return true
		}
	}
	who, number, probe, ok := c.pool.admit(addr, inv.Now())
	switch {
	case !ok:
		if c.rule.Mode == core.Shadow {
			c.rehearsed.Add(inv.Lane(), 1)
		}
		return false
	case who == nil: // not judged
		return true
	case mark != nil:
		mark.Owner, mark.Token = who, int64(number)
	default:
		inv.Mark(who, int64(number))
	}
	if probe {
		inv.Reserve(core.Reservation{Holder: who, Token: int64(number)})
	}
	return true
}

func (c *controller) marked(inv *core.Invocation) *core.Mark {
	marks := inv.Marks()
	for i := range marks {
		if who, ok := marks[i].Owner.(*callee); ok && who.pool == c.pool {
			return &marks[i]
		}
	}
	return nil
}

// acts is what [core.FamilyTable] asks of every controller.
func (c *controller) acts() (Rule, *core.BlockError, *stat.Tally) {
	return c.rule, c.refusal, c.rehearsed
}
