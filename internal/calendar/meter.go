package calendar

import (
	"time"

	"github.com/penstock-go/penstock/internal/quotalog"
)

// Meter counts the units used in the current period. The lock of its owner guards it. The zero value
// is ready: its first period is that of the first call.
//
// Invariant: periods only advance. A call that comes late, with a time before the current period,
// counts in the current one. So whatever the clock does, a period that was left is never entered
// again, and its units are handed out once: at most the limit, in each of the periods that begin.
//
// The calendar may change from call to call; see Follow.
type Meter struct {
	span Span // empty before the first call
	used int64
	// began identifies the period, and grows from each to the next: its start, but no earlier than the
	// end of the one before. Follow changes the span alone.
	began int64
	entry *quotalog.Entry // keeps the use over restarts; nil if that isn't configured
}

// Keep makes the meter keep its use in an entry of a log, nil for none. Units used so far count on, and so
// do the units that the log has charged to the entry.
func (m *Meter) Keep(e *quotalog.Entry, now int64) {
	if m.entry = e; e != nil && m.span != (Span{}) {
		m.used = max(m.used, e.Base(true, m.span.Start, now))
	}
}

// Entry returns the entry of the meter, or nil.
func (m *Meter) Entry() *quotalog.Entry { return m.entry }

// Raise makes at least that many units count as used in the period at now.
func (m *Meter) Raise(c *Calendar, now, units int64) {
	m.At(c, now)
	m.used = max(m.used, units)
}

// Leave is called before the meter is dropped.
func (m *Meter) Leave(now int64) {
	if m.entry != nil {
		m.entry.Leave(now)
	}
}

func (m *Meter) period() quotalog.Period {
	return quotalog.Period{ID: m.began, Start: m.span.Start, End: m.span.End}
}

// At makes the period at now the current one, unless a later one is.
func (m *Meter) At(c *Calendar, now int64) {
	if now >= m.span.End || m.span == (Span{}) {
		last := m.span
		m.span, m.used = c.At(now), 0
		m.began = m.span.Start
		if last != (Span{}) {
			m.began = max(m.began, last.End) // of another calendar, if that is later
		}
		if m.entry != nil {
			m.used = m.entry.Base(last == (Span{}), m.span.Start, now)
		}
	}
}

// Take counts n units if they fit under the limit, and returns the period's identity.
func (m *Meter) Take(c *Calendar, now, n, limit int64) (period int64, ok bool) {
	if m.At(c, now); m.used > limit-n {
		return 0, false
	}
	if m.entry != nil {
		m.entry = m.entry.Current(now)
	}
	if m.entry != nil && !m.entry.Take(m.period(), now, m.used, n, limit) {
		return 0, false // until its next mark is on the disk
	}
	m.used += n
	return m.began, true
}

// GiveBack takes n units back that were counted in a period, if that is still the current one.
func (m *Meter) GiveBack(period, n int64) {
	if period == m.began {
		m.used -= n
		m.settle()
	}
}

// Charge counts n units for a call that entered in a period, even beyond the limit, but none beyond
// most. It returns the number of units left out. If the period is over, they count in none: they
// were used in a period that decides on no call any longer.
func (m *Meter) Charge(period, n, most int64) (forgiven int64) {
	if period != m.began {
		return 0
	}
	counted := max(0, min(n, most-m.used))
	m.used += counted
	m.settle()
	return n - counted
}

// settle records units that were given back or used beyond a reservation.
func (m *Meter) settle() {
	if m.entry != nil {
		m.entry.Settle(m.period(), m.used)
	}
}

// Follow goes on in another calendar: the units used in the current period count in the one that is
// current there now.
func (m *Meter) Follow(c *Calendar, now int64) {
	if m.span == (Span{}) {
		return
	}
	m.At(c, now)
	m.span = c.At(max(now, m.span.Start))
}

// Used returns the units used as a call at now finds them.
func (m Meter) Used(c *Calendar, now int64) int64 {
	m.At(c, now)
	return m.used
}

// Period returns the identity of the period at now.
func (m Meter) Period(c *Calendar, now int64) int64 {
	m.At(c, now)
	return m.began
}

// Until returns the period as a call at now finds it, and the time until its end.
func (m Meter) Until(c *Calendar, now int64) (s Span, left time.Duration) {
	m.At(c, now)
	return m.span, time.Duration(m.span.End - now)
}

// RetryAfter returns the time until n units would fit under the limit if no other call came first. It
// is unknown if they are more than the limit.
func (m Meter) RetryAfter(c *Calendar, now, n, limit int64) (wait time.Duration, known bool) {
	switch m.At(c, now); {
	case n > limit:
		return 0, false
	case m.used <= limit-n:
		return 0, true
	}
	return time.Duration(m.span.End - now), true
}

// Idle reports whether a new meter would admit no more.
func (m *Meter) Idle(now int64) bool { return m.used == 0 || now >= m.span.End }

// Begun returns the start of the current period, or false if there is none yet.
func (m *Meter) Begun() (at int64, ok bool) { return m.span.Start, m.span != Span{} }
