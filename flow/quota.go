package flow

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/quotalog"
	"github.com/penstock-go/penstock/node"
)

// quota enforces a limit in each period of a calendar, by the rule's account.
type quota struct {
	*controller
	account *account
}

// periods returns the fields that say in which periods the rule counts.
func (r Rule) periods() calendar.Fields {
	return calendar.Fields{Per: r.Per, Timezone: r.Timezone, Starts: r.Starts}
}

// checkQuota refuses fields that a rule with a quota doesn't read. It returns the rule with
// the defaults of per, timezone and starts.
func (r Rule) checkQuota() (Rule, error) {
	f, err := r.periods().Normalized()
	if err != nil || r.Per == spec.PerNone {
		return r, err
	}
	switch {
	case r.Metric == Concurrency || r.Behavior != Reject:
		return r, r.unread("per", "reject")
	case r.Relation == Associated:
		return r, spec.BadField("per", "has no meaning for relation associated, which reads another resource's traffic: remove it, or set relation to direct")
	case r.Origin == OriginOther:
		return r, spec.BadField("per", "has no meaning for origin other: remove it, name a caller, or use a hotspot rule with keys: [origin]")
	case r.Interval != 0:
		return r, spec.BadField("interval", "has no meaning for per, whose periods are those of a calendar: remove it, or remove per")
	case r.Buckets != 0:
		return r, spec.BadField("buckets", "has no meaning for per, as a quota has no window: remove it")
	case r.Window != Strict:
		return r, spec.BadField("strict", "has no meaning for per, as a quota has no window: remove it")
	case r.watchesMemory():
		return r, spec.BadField(r.memoryField(), "has no meaning for per, as memory goes up and down within a period: remove it, or give the memory keys to a rule with an interval")
	}
	r.Timezone, r.Starts = f.Timezone, f.Starts
	return r, nil
}

// entry returns the account's entry in the log of quotas, or nil if there is no log.
func (c *controller) entry(now int64) *quotalog.Entry {
	log := c.engine.QuotaLog()
	if log == nil {
		return nil
	}
	return log.Book("flow "+c.rule.ID, quotalog.Margin(c.limit)).Entry(c.resource.Name(), now)
}

func (e *quota) ask(inv *engine.Invocation, _ *node.StatisticNode) engine.Verdict {
	n := e.rule.amount(inv)
	if wait, known := e.account.retryAfter(inv.Now(), n, e.limit); !known || wait > 0 {
		return e.refuseUnits(n)
	}
	return engine.Verdict{}
}

func (e *quota) take(inv *engine.Invocation, _ *node.StatisticNode) engine.Verdict {
	n := e.rule.amount(inv)
	period, ok := e.account.take(inv.Now(), n, e.limit)
	if !ok {
		return e.refuseUnits(n)
	}
	inv.Reserve(engine.Reservation{Holder: e.account, Units: n, Token: period, Undo: e.rule.overdrawn(e.limit)})
	if e.rule.Unit != "" {
		inv.SettleBy(e.rule.Unit)
	}
	return engine.Verdict{}
}

func (e *quota) retryAfter(now, n int64) (wait time.Duration, known bool) {
	return e.account.retryAfter(now, n, e.limit)
}

func (e *quota) idle(now int64) bool { return e.account.idle(now) }

func (e *quota) explain(inv *engine.Invocation, _ *node.StatisticNode, j *core.Judgement) {
	m, c := e.account.look()
	now := inv.Now()
	if wait, known := m.RetryAfter(c, now, e.rule.amount(inv), e.limit); !known || wait > 0 {
		inv.JudgeRefused(j, wait, known)
	}
	j.Measures = []core.Measure{e.measure(now)}
}

func (e *quota) measure(now int64) core.Measure {
	m, c := e.account.look()
	return engine.MeasureUnits(cmp.Or(e.rule.Unit, "units")+" per "+e.rule.Per.String(), m.Used(c, now), e.limit)
}

func (e *quota) left(now int64, _ *node.StatisticNode) (left, limit int64) {
	m, c := e.account.look()
	return max(0, e.limit-m.Used(c, now)), e.limit
}

// period returns the current period, and the time until its end; false if the rule counts in an
// interval.
func (c *controller) period(now int64) (s calendar.Span, left time.Duration, ok bool) {
	if c.rule.Per == spec.PerNone {
		return s, 0, false
	}
	m, in := c.kept.account.look()
	s, left = m.Until(in, now)
	return s, left, true
}

// quotasOf returns the details of a rule with a quota.
func quotasOf(controllers []*controller) core.Details {
	if len(controllers) == 0 {
		return nil
	}
	var f core.Quotas
	for _, c := range controllers[:min(len(controllers), maxBuckets)] {
		now := c.engine.Now()
		s, _, _ := c.period(now)
		m := (&quota{c, c.kept.account}).measure(now)
		f.Quotas = append(f.Quotas, core.QuotaStats{Resource: c.refusal.Resource, Measure: m, Ends: time.Unix(0, s.End).UTC()})
	}
	return f
}
