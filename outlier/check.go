package outlier

import (
	"slices"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// checker holds the compiled outlier rules of one resource. Safe for concurrent use.
type checker struct{ family.Rules[controller] }

// Ask returns the first refusal. It takes nothing.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	addr := inv.Endpoint()
	if addr == "" {
		return engine.Verdict{}
	}
	for _, c := range rs.Holding {
		if !c.asks(inv, addr) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	return engine.Verdict{}
}

// Take decides on the endpoint by every rule, and returns the first refusal. For a call that will
// wait, the decision is made after its wait.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	if inv.Waits() {
		return engine.Verdict{}
	}
	return rs.take(inv, false)
}

// Recheck decides on a call that has waited.
func (rs *checker) Recheck(inv *engine.Invocation) engine.Verdict {
	v := rs.take(inv, true)
	if v.Block == nil {
		rs.shadow(inv, true)
	}
	return v
}

func (rs *checker) take(inv *engine.Invocation, again bool) engine.Verdict {
	addr := inv.Endpoint()
	if addr == "" {
		return engine.Verdict{}
	}
	for _, c := range rs.Holding {
		if !c.take(inv, addr, again) {
			return engine.Verdict{Block: c.refusal}
		}
	}
	return engine.Verdict{}
}

// Shadow lets the shadow rules decide on a call that doesn't wait.
func (rs *checker) Shadow(inv *engine.Invocation) {
	if !inv.Waits() {
		rs.shadow(inv, false)
	}
}

func (rs *checker) shadow(inv *engine.Invocation, again bool) {
	addr := inv.Endpoint()
	if addr == "" {
		return
	}
	for _, c := range rs.Shadows {
		c.take(inv, addr, again)
	}
}

// Complete counts the end of a call that went to the endpoint under that number.
func (c *endpoint) Complete(inv *engine.Invocation, number int64) {
	c.completed(uint64(number), inv.Now(), breaker.EndOf(inv))
}

func (c *endpoint) completed(number uint64, now int64, end breaker.End) {
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	c.pool.complete(c, number, now, end)
}

// idle reports whether the rule's state can be dropped.
func (c *controller) idle(now int64) bool {
	c.pool.site.mu.Lock()
	defer c.pool.site.mu.Unlock()
	return c.pool.idle(now)
}

// refusing lists the endpoints to which calls are refused, sorted.
func (s *site) refusing(now int64) []string {
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
