package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// refusal is what a rule says to calls of one value that it refuses, or of those that
// share the rest. It is made when the value is refused first, so that refusing it again
// allocates nothing, and knows when the value may come again.
type refusal struct {
	rule *controller
	cell *cell // of the value when it was refused; by now it may have another, or none
	err  *core.BlockError
}

// refuse returns the refusal of a cell's value. The caller holds the lock of its shard.
func (c *controller) refuse(x *cell) *core.BlockError {
	if x.refusal == nil || x.refusal.rule != c { // the rule has changed since
		r := &refusal{rule: c, cell: x}
		r.err = c.refusal.Apart(r)
		x.refusal = r
	}
	return x.refusal.err
}

// RetryAfter is when one more unit of the value would pass, if nobody else comes; 0
// where that depends on calls that exit, or where none ever passes.
func (r *refusal) RetryAfter() time.Duration {
	c, s := r.rule, r.cell.shard
	now := c.engine.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.cell.isRest() {
		return c.restRetry(s, now)
	}
	q := c.quotaOf(r.cell.value)
	if x := s.cells.find(&r.cell.value, r.cell.hash); x != nil {
		return c.retry(x, now, q)
	}
	return c.retryAnew(s, now, q)
}

// retry is when one unit more fits into a cell. The caller holds the lock of its shard.
func (c *controller) retry(x *cell, now int64, q *quota) time.Duration {
	switch {
	case q.none, c.rule.Metric == Concurrency:
		return 0
	case c.rule.Behavior == Throttle:
		_, wait := x.last().next(now, cost(1, q.perUnit))
		return max(0, wait-c.rule.MaxWait)
	}
	return x.bucket.room(now, int64(c.rule.Interval), q)
}

// retryAnew is retry for a value that has no cell, if it gets one.
func (c *controller) retryAnew(s *shard, now int64, q *quota) time.Duration {
	begin := s.newCell(now, q)
	return c.retry(&begin, now, q)
}

// restRetry is retry for any value that has no cell: if there is no place for one, it
// takes from the rest.
func (c *controller) restRetry(s *shard, now int64) time.Duration {
	switch {
	case len(s.ring) < s.room:
		return c.retryAnew(s, now, &c.quota)
	case c.quota.none, c.rule.Metric == Concurrency, c.rule.Behavior == Throttle:
		return c.retry(&s.rest, now, &c.quota)
	case s.window == nil:
		return 0
	}
	after, _ := s.window.RetryAfter(now, 1, c.quota.units)
	return after
}
