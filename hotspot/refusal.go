package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
)

// refusal is a rule's error for calls of one value, or of the values that share the rest. It is
// allocated when the value is first refused, so that refusing it again doesn't allocate, and it
// knows when to retry.
type refusal struct {
	rule  *controller
	quota *quota // of the value
	cell  *cell  // the value's cell when it was refused; by now the value may have another, or none
	err   *core.BlockError

	other *refusal // of the same rule and cell, but another quota: values of the rest may have several

	tooMany *core.BlockError // for calls of more units than can ever fit, set on first use
}

// refuseLocked returns the refusal of n units of a cell's value.
func (c *controller) refuseLocked(x *cell, n int64, q *quota) *core.BlockError {
	r := x.refusal
	if r == nil || r.quota != q {
		r = c.refusalLocked(x, q)
	}
	if c.rule.Behavior == TokenBucket && n > q.size && !q.none {
		if r.tooMany == nil {
			r.tooMany = r.says(neverFits{r})
		}
		return r.tooMany
	}
	if c.rule.Unit != "" && c.rule.Metric == QPS {
		return engine.Needing(r.err, need{r, n})
	}
	return r.err
}

// refusalLocked returns the refusal of a cell's value under a quota that its latest one didn't have.
func (c *controller) refusalLocked(x *cell, q *quota) *refusal {
	if x.refusal != nil && x.refusal.rule != c { // the rule has changed since
		x.refusal = nil
	}
	for r := x.refusal; r != nil; r = r.other {
		if r.quota == q {
			return r
		}
	}
	r := &refusal{rule: c, quota: q, cell: x, other: x.refusal}
	r.err = r.says(r)
	x.refusal = r
	return r
}

// says returns a refusal whose details come from about.
func (r *refusal) says(about core.Refuser) *core.BlockError {
	says := *r.rule.refusal
	says.Value = r.cell.value
	return engine.NewCounted(says, about, r.rule.record, r.rule.refusal)
}

// neverFits is the refusal of a call of more units than the bucket holds.
type neverFits struct{ *refusal }

// RetryAfter is unknown: waiting doesn't help.
func (neverFits) RetryAfter() (wait time.Duration, known bool) { return 0, false }

// Limit returns the threshold of the value.
func (r *refusal) Limit() (float64, bool) { return r.quota.limit, true }

// RetryAfter returns the time until one more unit of the value would pass, if no other call comes
// first. It is unknown if that depends on calls that exit, or if none ever passes.
func (r *refusal) RetryAfter() (wait time.Duration, known bool) { return r.retryAfter(1) }

// retryAfter is RetryAfter for n units.
func (r *refusal) retryAfter(n int64) (wait time.Duration, known bool) {
	c, s := r.rule, r.cell.shard
	now := c.engine.Now()
	s.lock()
	defer s.mu.Unlock()
	if c.member != nil && r.cell.isRest() {
		return c.retrySharedLocked(r.cell, now, r.quota)
	}
	if c.member != nil {
		return c.retrySharedLocked(s.cells.find(&r.cell.value, r.cell.hash), now, r.quota)
	}
	q := r.quota
	if r.cell.isRest() {
		return c.restRetry(s, now, n, q)
	}
	if x := s.cells.find(&r.cell.value, r.cell.hash); x != nil {
		wait, known = c.retryLocked(x, now, n, q)
		if left, locked := c.lockedOutLocked(x, now); locked && known {
			wait = max(wait, left)
		}
		return wait, known
	}
	return c.retryAnew(s, &r.cell.value, now, n, q)
}

// retryLocked returns the time until n more units fit into a cell.
func (c *controller) retryLocked(x *cell, now, n int64, q *quota) (wait time.Duration, known bool) {
	switch {
	case q.none, c.rule.Metric == Concurrency:
		return 0, false
	case c.rule.Behavior == Throttle:
		return c.retryTurn(x.last(), now, n, q), true
	case c.rule.Behavior == TokenBucket:
		b := c.tokensOfLocked(x.shard, x, &x.value, now, q)
		return b.RetryAfter(now, n, q.size), true
	}
	return c.room(x, now, n, q), true
}

// retryTurn returns the time until a turn of n units after last is within reach.
func (c *controller) retryTurn(last meter.Moment, now, n int64, q *quota) time.Duration {
	return max(0, q.wait(last, now, n)-c.rule.MaxWait)
}

// retryAnew is like RetryAfter, but for a value that has no cell and may get one.
func (c *controller) retryAnew(s *shard, v *argument.Value, now, n int64, q *quota) (wait time.Duration, known bool) {
	if c.rule.Behavior == Throttle && !q.none {
		return c.retryTurn(s.firstAfter(q), now, n, q), true
	}
	begin := s.newCell(now, q)
	begin.value = *v
	return c.retryLocked(&begin, now, n, q)
}

// restRetry is like RetryAfter, but for any value that has no cell: if there is no room for one, it
// takes from the rest.
func (c *controller) restRetry(s *shard, now, n int64, q *quota) (wait time.Duration, known bool) {
	switch {
	case len(s.ring) < s.room:
		return c.retryAnew(s, &s.rest.value, now, n, q)
	case q.none, c.rule.Metric == Concurrency, c.rule.Behavior != Reject, c.calendar != nil, c.windows(&s.rest):
		return c.retryLocked(&s.rest, now, n, q)
	case s.window == nil:
		return 0, true
	}
	return s.window.RetryAfter(now, 1, q.units)
}
