package flow

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// rater is an enforcer of a rate. It returns the units that it would admit as of now.
type rater interface {
	left(now int64, n *node.StatisticNode) (left, limit int64)
}

func (e *window) left(now int64, n *node.StatisticNode) (left, limit int64) {
	w, _ := e.lookOn(n, now)
	limit = e.lookLimit(now, n)
	return w.Room(now, limit), limit
}

func (e *tokens) left(now int64, _ *node.StatisticNode) (left, limit int64) {
	return int64(e.bucket.left(now, e.size)), int64(e.rule.Threshold)
}

func (closed) left(int64, *node.StatisticNode) (left, limit int64) { return 0, 0 }

// Remaining returns what the tightest rule with that unit has left, among rules that limit a rate.
func (rs *checker) Remaining(inv *engine.Invocation, unit string) (least core.Remaining, known bool) {
	for _, c := range rs.Holding {
		r, ok := c.enforcer.(rater)
		if !ok || c.rule.Unit != unit || c.rule.Relation == Associated {
			continue
		}
		n := c.counts(inv, rs)
		if n == nil {
			continue
		}
		left, limit := r.left(inv.Now(), n)
		next := core.Remaining{Kind: core.KindFlow, Rule: c.rule.ID, Left: left, Limit: limit, Window: c.rule.Interval}
		if s, left, ok := c.period(inv.Now()); ok {
			next.Window, next.Resets = s.Length(), left
		}
		if !known || next.Tighter(least) {
			least, known = next, true
		}
	}
	return least, known
}

// Remaining returns what the process has left of the shared limit of a call with that unit.
func (s *sharer) Remaining(inv *engine.Invocation, unit string) (r core.Remaining, known bool) {
	if s.rule.Unit != unit {
		return r, false
	}
	l, n := s.SharedLimit(inv, 0)
	if n == 0 {
		return r, false
	}
	left, limit, known := l.Left(inv.Now())
	return core.Remaining{Kind: core.KindFlow, Rule: s.rule.ID, Left: left, Limit: limit, Window: s.rule.Interval}, known
}

// Window returns the interval of a rule that limits a rate, or the length of the period of a quota.
func (c *controller) Window() time.Duration {
	if s, _, ok := c.period(c.engine.Now()); ok {
		return s.Length()
	}
	return c.rule.Interval
}
