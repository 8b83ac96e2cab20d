package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/quotalog"
)

// A value's quota counts the units that it has used in the current period of a calendar, that of the
// latest rule, even for calls decided by an older one, which use only the limit from their own rule.

// periods returns the fields that say in which periods the rule counts.
func (r Rule) periods() calendar.Fields {
	return calendar.Fields{Per: r.Per, Timezone: r.Timezone, Starts: r.Starts}
}

// checkPer refuses fields that a rule with quotas doesn't read. It returns the rule with the defaults
// of per, timezone and starts.
func (r Rule) checkPer() (Rule, error) {
	f, err := r.periods().Normalized()
	if err != nil || r.Per == spec.PerNone {
		return r, err
	}
	switch {
	case r.Metric == Concurrency || r.Behavior != Reject:
		return r, r.unread("per", "reject")
	case r.Interval != 0:
		return r, spec.BadField("interval", "has no meaning for per, whose periods are those of a calendar: remove it, or remove per")
	case r.Window != Strict:
		return r, spec.BadField("strict", "has no meaning for per, as a quota has no window: remove it")
	case r.Burst != 0:
		return r, spec.BadField("burst", "has no meaning for per, as a quota saves up no units: remove it")
	}
	r.Timezone, r.Starts = f.Timezone, f.Starts
	return r, nil
}

// calendarOf returns the calendar in which the values of a shard count.
func (c *controller) calendarOf(s *shard) *calendar.Calendar {
	if latest := s.rule.calendar; latest != nil {
		return latest
	}
	return c.calendar
}

// notBefore returns the time from which a call at now counts: no earlier than the latest eviction,
// as the value may be one that was evicted in a period since.
func (s *shard) notBefore(now int64) int64 { return max(now, s.forgotten) }

// meterLocked returns a copy of what the cell's value has used.
func (c *controller) meterLocked(x *cell) (m calendar.Meter) {
	if x.period != nil {
		m = *x.period
	}
	return m
}

func (c *controller) usedInPeriodLocked(x *cell, now int64) int64 {
	return c.meterLocked(x).Used(c.calendarOf(x.shard), x.shard.notBefore(now))
}

// periodLocked returns the period of a cell, and the time until its end.
func (c *controller) periodLocked(x *cell, now int64) (calendar.Span, time.Duration) {
	return c.meterLocked(x).Until(c.calendarOf(x.shard), x.shard.notBefore(now))
}

// takeQuotaLocked takes n units of a value's quota.
func (c *controller) takeQuotaLocked(x *cell, now, n int64, q *quota) (held engine.Reservation, ok bool) {
	if q.none {
		return held, false
	}
	if x.period == nil {
		c.keepPeriodLocked(x, now)
	}
	period, ok := x.period.Take(c.calendarOf(x.shard), x.shard.notBefore(now), n, q.size)
	return engine.Reservation{Holder: (*quotaUnits)(x), Units: n, Token: period}, ok
}

// With a log of quotas, a value goes on with the use that the log has for it. To hold the invariant of
// values across a restart:
//
//   - the log has a value's use since it has a cell, so one with a use in the log always gets a cell, and
//     that starts with this use alone, not as a copy of the rest;
//   - the rests of all shards start with the use of the one that had used most, and so does a new cell of
//     another value;
//   - values that another process can't distinguish, such as long texts, share a use in the log: the
//     first gets a cell as above, the others start from it and from the rest, and so does the rest when
//     one of them finds no room.

// openBook opens the rule's book in the log of quotas. New values may take as much before they are in the
// log as the smallest limit allows.
func (c *controller) openBook() *quotalog.Book {
	log := c.engine.QuotaLog()
	if log == nil || c.calendar == nil {
		return nil
	}
	smallest := max(1, c.quota.size)
	for _, q := range c.exceptions {
		smallest = min(smallest, max(1, q.size))
	}
	for _, p := range c.plans {
		smallest = min(smallest, max(1, p.quota.size))
	}
	return log.Book("hotspot "+c.rule.ID+" "+c.refusal.Resource, quotalog.Margin(smallest))
}

// entryOf returns the entry of a cell's value.
func (c *controller) entryOf(x *cell, now int64) *quotalog.Entry {
	if x.isRest() {
		return c.book.Entry("", now)
	}
	return c.book.Entry(x.value.Key(), now)
}

// keepPeriodLocked gives a cell a count of its own.
func (c *controller) keepPeriodLocked(x *cell, now int64) {
	if x.period == nil {
		x.period = new(calendar.Meter)
	}
	if c.book != nil {
		x.period.Keep(c.entryOf(x, now), now)
	}
}

// restoreLocked makes a cell that is a copy of the rest start with what the log has about its value.
func (c *controller) restoreLocked(x *cell, now int64) {
	if c.book == nil {
		return
	}
	units, free, ok := c.book.Restored(x.value.Key(), now)
	if ok && free || x.period == nil {
		x.period = new(calendar.Meter)
	}
	if ok {
		x.period.Raise(c.calendarOf(x.shard), x.shard.notBefore(now), units)
	}
}

// raiseRestLocked makes the rest start with what the log has about it, and about a value that takes from
// it.
func (c *controller) raiseRestLocked(s *shard, v *argument.Value, now int64) {
	if c.book == nil {
		return
	}
	units, _, ok := c.book.Restored("", now)
	if v != nil {
		if of, _, also := c.book.Restored(v.Key(), now); also {
			units, ok = max(units, of), true
		}
	}
	if !ok {
		return
	}
	if s.rest.period == nil {
		c.keepPeriodLocked(&s.rest, now)
	}
	s.rest.period.Raise(c.calendarOf(s), s.notBefore(now), units)
}

// returns reports whether the log has a use of a value that has no cell, and gets one even if there is
// no room.
func (c *controller) returns(v *argument.Value, now int64) bool {
	if c.book == nil {
		return false
	}
	_, free, ok := c.book.Restored(v.Key(), now)
	return ok && free
}

// leftInLog returns the units left of the quota of such a value.
func (c *controller) leftInLog(v *argument.Value, now int64, q *quota) int64 {
	units, _, _ := c.book.Restored(v.Key(), now)
	return q.size - units
}

// bookFull reports whether the log has no room for another value.
func (c *controller) bookFull(now int64) bool {
	return c.book != nil && c.book.Full(now, c.rule.MaxValues+len(c.exceptions)+1)
}

// quotaUnits are units that a call took from a cell's quota. They go back to the period in which it
// entered, and are charged to that one.
type quotaUnits cell

// GiveBack returns all of the units.
func (u *quotaUnits) GiveBack(r *engine.Reservation, now int64) { u.Refund(r, r.Units, now) }

// Refund returns the units that a call didn't use.
func (u *quotaUnits) Refund(r *engine.Reservation, n, _ int64) {
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	u.period.GiveBack(r.Token, n)
}

// Charge charges the value.
func (u *quotaUnits) Charge(r *engine.Reservation, n, _ int64) (forgiven int64) {
	return u.shard.chargeQuota(u.value, u.hash, n, r.Token)
}

// CountsOf is like [window.CountsOf].
func (u *quotaUnits) CountsOf() (by any, value argument.Value) { return (*cell)(u).counts() }

// chargeQuota counts n units that a call used beyond its reservation in the period in which it
// entered, where the value is now: in its cell or, if it has none, in the rest. A cell whose units
// count in that period has not been evicted since, and one that was a copy of the rest has its
// period.
func (s *shard) chargeQuota(v argument.Value, hash uint64, n, period int64) (forgiven int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.cells.find(&v, hash)
	if x == nil {
		x = &s.rest
	}
	if x.period == nil {
		return 0
	}
	cost, limit := s.rule.rule.cost(), s.rule.quotaOf(v, x.plan).size
	return x.period.Charge(period, n, cost.Overdrawn(limit))
}
