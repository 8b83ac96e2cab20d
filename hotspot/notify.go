package hotspot

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// checkNotify refuses the field notify where the rule has no use to report.
func (r Rule) checkNotify() error {
	switch {
	case len(r.Notify) == 0:
		return nil
	case r.Metric == Concurrency || r.Behavior != Reject:
		return r.unread("notify", "reject")
	case r.Shared():
		return spec.BadField("notify", "has no meaning for cluster: no member knows the use of all; remove notify or cluster")
	}
	return family.CheckNotify(r.Notify)
}

// notice reports the shares of the limits of a call's values that use has reached. Of calls that pass
// at the same time, each looks after it has taken: the last of them sees the units of all. Values
// without a cell share a limit, and aren't reported.
func (c *controller) notice(inv *engine.Invocation) {
	if c.amount(inv) == 0 {
		return
	}
	now, p := inv.Now(), c.planOf(inv)
	for _, o := range c.occurrences(inv) {
		reached, at := c.reached(now, o.Value, p)
		c.notifier.Report(now, reached, at)
	}
}

// reached returns the shares of a value's limit that use has reached and that are due.
func (c *controller) reached(now int64, v argument.Value, p *plan) (percents []int64, at core.Notice) {
	q, hash := c.quotaOf(v, p), v.Hash()
	s := c.values.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.cells.find(&v, hash)
	if x == nil {
		return nil, at
	}
	e := x.extrasLocked()
	if !e.noticed.Due(c.notifier, now) {
		return nil, at
	}
	s.settle(x)
	q = c.answeredLocked(x, q)
	at.Value, at.Used, at.Limit = x.value, c.usedLocked(x, now, q), q.size
	if c.calendar != nil {
		span, _ := c.periodLocked(x, now)
		at.Interval = span.Length()
		period := c.meterLocked(x).Period(c.calendarOf(s), s.notBefore(now))
		return e.noticed.ReachedIn(c.notifier, period, at.Used, at.Limit), at
	}
	return e.noticed.Reached(c.notifier, now, at.Used, at.Limit), at
}

// notice reports the use that a call which runs, or waits, has brought about.
func (rs *checker) notice(inv *engine.Invocation) {
	for _, c := range rs.Notices {
		c.notice(inv)
	}
}

// noticeRefusal reports use when the rule refuses a call: settled calls may have used more.
func (c *controller) noticeRefusal(inv *engine.Invocation) {
	if c.notifier != nil {
		c.notice(inv)
	}
}
