package outlier

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
)

// Rules are the outlier rules of one resource, compiled. They are safe for concurrent
// use.
type Rules struct {
	controllers []*controller // as declared
}

// Ask returns the first refusal, taking nothing. A shadow rule refuses nobody.
func (rs *Rules) Ask(inv *core.Invocation) core.Verdict {
	addr := inv.Callee()
	if addr == "" {
		return core.Verdict{}
	}
	for _, c := range rs.controllers {
		if c.rule.Mode != core.Shadow && !c.asks(inv, addr) {
			return core.Verdict{Block: c.refusal}
		}
	}
	return core.Verdict{}
}

// Take decides about the callee by every rule, and returns the first refusal. About a
// call that will wait it is decided when the wait is over.
func (rs *Rules) Take(inv *core.Invocation) core.Verdict {
	if inv.Waits() {
		return core.Verdict{}
	}
	return rs.Recheck(inv)
}

// Recheck decides about a call that has waited.
func (rs *Rules) Recheck(inv *core.Invocation) core.Verdict {
	addr := inv.Callee()
	if addr == "" {
		return core.Verdict{}
	}
	for _, c := range rs.controllers {
		if !c.take(inv, addr) && c.rule.Mode != core.Shadow {
			return core.Verdict{Block: c.refusal}
		}
	}
	return core.Verdict{}
}

// Completed counts the end of a call with every rule that judged it.
func Completed(inv *core.Invocation) {
	rt := time.Duration(max(0, inv.Now()-inv.Began()))
	for _, mark := range inv.Marks() {
		if c, ok := mark.Owner.(*callee); ok {
			c.completed(uint64(mark.Token), inv.Now(), rt, inv.Failed())
		}
	}
}

func (c *callee) completed(number uint64, now int64, rt time.Duration, failed bool) {
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	c.pool.complete(c, number, now, rt, failed)
}

// Idle reports whether all that the rules know can be forgotten, see core.Resource.
func (rs *Rules) Idle(now int64) bool {
	for _, c := range rs.controllers {
		if !c.idle(now) {
			return false
		}
	}
	return true
}

func (c *controller) idle(now int64) bool {
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	return c.pool.idle(now)
}

// refusing lists the callees that calls are refused to, sorted.
func (s *site) refusing(now int64) []string {
	if s.ejected.Load() == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var addrs []string
	for _, p := range s.pools {
		at := p.tidy(now)
		for c := range p.outside.all() {
			if !c.breaker.Asks(at) {
				addrs = append(addrs, c.addr)
			}
		}
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}
