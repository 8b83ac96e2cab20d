package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
)

// Remaining returns what the tightest rule with that unit has left for the call's values, among rules
// that limit a rate.
func (rs *checker) Remaining(inv *engine.Invocation, unit string) (least core.Remaining, known bool) {
	for _, c := range rs.Holding {
		if c.rule.Metric == Concurrency || c.rule.Behavior == Throttle || c.rule.Unit != unit || c.amount(inv) == 0 {
			continue
		}
		for _, o := range c.occurrences(inv) {
			next := c.remaining(inv.Now(), o.Value, c.planOf(inv))
			if !known || next.Tighter(least) {
				least, known = next, true
			}
		}
	}
	return least, known
}

func (c *controller) remaining(now int64, v argument.Value, p *plan) core.Remaining {
	q, hash := c.quotaOf(v, p), v.Hash()
	r := core.Remaining{Kind: core.KindHotspot, Rule: c.rule.ID, Limit: q.units, Window: c.rule.Interval}
	if q.none && !c.asks {
		return r
	}
	s := c.values.shard(hash)
	s.lock()
	defer s.mu.Unlock()
	x := s.cells.find(&v, hash)
	if _, locked := c.lockedOutLocked(x, now); locked {
		return r
	}
	if x != nil && c.asks {
		q = c.answeredLocked(x, q)
		r.Limit = q.units
	}
	if c.calendar != nil {
		of := x
		if of == nil {
			of = &s.rest
		}
		span, left := c.periodLocked(of, now)
		r.Window, r.Resets = span.Length(), left
	}
	if q.none {
		return r
	}
	if c.rule.Behavior == TokenBucket {
		b := c.tokensOfLocked(s, x, &v, now, q)
		r.Left = int64(b.Left(now, q.size))
		return r
	}
	if x == nil {
		x = &s.rest // which a value without a cell shares
	}
	r.Left = max(0, q.size-c.usedLocked(x, now, q))
	return r
}

// Remaining returns what the process has left of the shared limits of the call's values.
func (c *controller) Remaining(inv *engine.Invocation, unit string) (least core.Remaining, known bool) {
	if c.rule.Unit != unit {
		return least, false
	}
	for i := 0; ; i++ {
		l, n := c.SharedLimit(inv, i)
		if n == 0 {
			return least, known
		}
		left, limit, ok := l.Left(inv.Now())
		next := core.Remaining{Kind: core.KindHotspot, Rule: c.rule.ID, Left: left, Limit: limit, Window: c.rule.Interval}
		if ok && (!known || next.Tighter(least)) {
			least, known = next, true
		}
	}
}

// Window returns the interval of a rule that limits a rate.
func (r *refusal) Window() time.Duration {
	if r.rule.rule.Metric == Concurrency {
		return 0
	}
	if c := r.rule; c.calendar != nil {
		s := r.cell.shard
		s.lock()
		defer s.mu.Unlock()
		span, _ := c.periodLocked(r.cell, c.engine.Now())
		return span.Length()
	}
	return r.rule.rule.Interval
}
