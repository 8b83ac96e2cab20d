package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
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
		says := *c.refusal
		says.Value = x.value
		r.err = core.NewBlockError(says, r, c.refusal)
		x.refusal = r
	}
	return x.refusal.err
}

// Limit is the threshold of the value.
func (r *refusal) Limit() (float64, bool) { return r.rule.quotaOf(r.cell.value).limit, true }

// RetryAfter is when one more unit of the value would pass, if nobody else comes. It is
// not known where that depends on calls that exit, or where none ever passes.
func (r *refusal) RetryAfter() (wait time.Duration, known bool) {
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
func (c *controller) retry(x *cell, now int64, q *quota) (wait time.Duration, known bool) {
	switch {
	case q.none, c.rule.Metric == Concurrency:
		return 0, false
	case c.rule.Behavior == Throttle:
		return c.retryTurn(x.last(), now, q), true
	}
	return x.bucket.room(now, int64(c.rule.Interval), q), true
}

// retryTurn is when a turn that follows last may be had.
func (c *controller) retryTurn(last stat.Moment, now int64, q *quota) time.Duration {
	return max(0, last.Wait(now, q.cost(1))-c.rule.MaxWait)
}

// retryAnew is retry for a value that has no cell, if it gets one.
func (c *controller) retryAnew(s *shard, now int64, q *quota) (wait time.Duration, known bool) {
	if c.rule.Behavior == Throttle && !q.none {
		return c.retryTurn(s.firstAfter(q), now, q), true
	}
	begin := s.newCell(now, q)
	return c.retry(&begin, now, q)
}

// restRetry is retry for any value that has no cell: if there is no place for one, it
// takes from the rest.
func (c *controller) restRetry(s *shard, now int64) (wait time.Duration, known bool) {
	switch {
	case len(s.ring) < s.room:
		return c.retryAnew(s, now, &c.quota)
	case c.quota.none, c.rule.Metric == Concurrency, c.rule.Behavior == Throttle:
		return c.retry(&s.rest, now, &c.quota)
	case s.window == nil:
		return 0, true
	}
	return s.window.RetryAfter(now, 1, c.quota.units)
}
