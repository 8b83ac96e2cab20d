package flow

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// checkNotify refuses the field notify where the rule has no use to report.
func (r Rule) checkNotify() error {
	switch {
	case len(r.Notify) == 0:
		return nil
	case r.Behavior != Reject || r.Metric == Concurrency:
		return r.unread("notify", "reject")
	case r.Relation != Direct:
		return spec.BadField("notify", "has no meaning for relation %s, which counts other traffic: remove it, or set relation to direct", r.Relation)
	case r.Origin == OriginOther:
		return spec.BadField("notify", "has no meaning for origin other, which gives each caller a limit: remove it, or use a hotspot rule with keys: [origin]")
	case r.Shared():
		return spec.BadField("notify", "has no meaning for cluster: no member knows the use of all; remove notify or cluster")
	}
	return family.CheckNotify(r.Notify)
}

// noticed has the state of a rule's notices, which continues across reloads.
type noticed struct {
	mu shared.Mutex // guards at
	at family.Noticed
}

// setNotices makes the controller report the use of its limit, if the rule says so.
func (c *controller) setNotices(old *controller) {
	if c.notifier = family.NewNotifier(c.engine, c.record, core.KindFlow, c.rule.ID, c.refusal.Resource, c.rule.Notify, c.rule.Interval); c.notifier == nil {
		return
	}
	c.noticed = new(noticed)
	if old != nil && c.notifier.Keeps(old.notifier) {
		c.noticed = old.noticed
	}
}

// notice reports the shares of the limit that use has reached, as a call at now finds it. Of calls that
// pass at the same time, each looks after it has taken: the last of them sees the units of all.
func (c *controller) notice(inv *engine.Invocation, n *node.StatisticNode) {
	now := inv.Now()
	c.noticed.mu.Lock()
	due := c.noticed.at.Due(c.notifier, now)
	c.noticed.mu.Unlock()
	if !due {
		return
	}
	at, period := core.Notice{Limit: c.lookLimit(now, n)}, int64(0)
	switch e := c.enforcer.(type) {
	case *window:
		w, _ := e.lookOn(n, now)
		at.Used = w.Sum(now)
	case *quota:
		m, in := e.account.look()
		s, _ := m.Until(in, now)
		at.Used, at.Interval, period = m.Used(in, now), s.Length(), m.Period(in, now)
	default:
		return
	}
	c.noticed.mu.Lock()
	var reached []int64
	if c.calendar != nil {
		reached = c.noticed.at.ReachedIn(c.notifier, period, at.Used, at.Limit)
	} else {
		reached = c.noticed.at.Reached(c.notifier, now, at.Used, at.Limit)
	}
	c.noticed.mu.Unlock()
	c.notifier.Report(now, reached, at)
}

// notice reports the use that a call which runs, or waits, has brought about.
func (rs *checker) notice(inv *engine.Invocation) {
	for _, c := range rs.Notices {
		if n := c.counts(inv, rs); n != nil {
			c.notice(inv, n)
		}
	}
}
