package calendar

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shared"
)

// Calendar has the periods of one kind in a time zone. Safe for concurrent use.
//
// A period starts at the earliest instant at which the clocks of the zone show its start, or a later
// date and time. So a start in an hour that the clocks skip is the end of that hour, and of an hour
// that they show twice the first one counts. Periods follow each other without gaps: each ends where
// the next one starts, and a day that a zone skips, as Samoa did in 2011, has no period.
type Calendar struct {
	per      spec.Per
	location *time.Location
	start    start
	latest   shared.Pointer[Span] // one of the periods asked for; most calls are in it
}

// Span is a period, in Unix nanoseconds. Its end is the start of the next one.
type Span struct{ Start, End int64 }

// Has reports whether an instant is in the period.
func (s Span) Has(now int64) bool { return s.Start <= now && now < s.End }

// Length returns the duration of the period.
func (s Span) Length() time.Duration { return time.Duration(s.End - s.Start) }

// At returns the period at an instant.
func (c *Calendar) At(now int64) Span {
	if s := c.latest.Load(); s != nil && s.Has(now) {
		return *s
	}
	s := c.find(now)
	c.latest.Store(&s)
	return s
}

// Per returns the kind of the periods.
func (c *Calendar) Per() spec.Per { return c.per }

// Shortest returns the duration of the shortest usual period of a kind.
func Shortest(per spec.Per) time.Duration {
	return []time.Duration{spec.PerDay: 24 * time.Hour, spec.PerWeek: 7 * 24 * time.Hour, spec.PerMonth: 28 * 24 * time.Hour}[per]
}

// find returns the period at an instant. It goes back from a period that starts later to the first
// that does not.
func (c *Calendar) find(now int64) (s Span) {
	at := time.Unix(0, now).In(c.location)
	n := c.after(at)
	s.End = c.begins(n)
	for {
		n--
		if s.Start = c.begins(n); s.Start <= now {
			return s
		}
		s.End = s.Start
	}
}

// after returns the number of a period that starts after at: of days and weeks that since January
// 1, 1970, of months since the year 0.
func (c *Calendar) after(at time.Time) int64 {
	switch days := dayOf(at); c.per {
	case spec.PerWeek:
		return floor(days-c.firstWeek(), 7) + 2
	case spec.PerMonth:
		return int64(12*at.Year()) + int64(at.Month()) - 1 + 2
	default:
		return days + 2
	}
}

// begins returns the instant at which a period starts.
func (c *Calendar) begins(n int64) int64 {
	day := n
	switch c.per {
	case spec.PerWeek:
		day = 7*n + c.firstWeek()
	case spec.PerMonth:
		year := floor(n, 12)
		month := time.Month(n - 12*year + 1)
		last := time.Date(int(year), month+1, 0, 0, 0, 0, 0, time.UTC).Day()
		day = dayOf(time.Date(int(year), month, min(c.start.day, last), 0, 0, 0, 0, time.UTC))
	}
	return c.earliest(day*secondsPerDay + int64(c.start.minute)*60)
}

// firstWeek returns the day, from 0 on January 1, 1970, a Thursday, on which the week numbered 0
// starts.
func (c *Calendar) firstWeek() int64 { return int64(c.start.day) - int64(time.Thursday) }

const (
	secondsPerDay = 24 * 60 * 60
	mostOffset    = 17 * 60 * 60 // seconds; more than the clocks of any zone differ from UTC
)

// earliest returns the earliest instant at which the clocks of the zone show a time or a later one.
// The time is given as if the zone were UTC, in seconds.
func (c *Calendar) earliest(shown int64) int64 {
	at := time.Unix(shown-mostOffset, 0).In(c.location)
	for {
		_, offset := at.Zone()
		from, until := at.ZoneBounds()
		if !until.IsZero() && !until.After(at) { // on December 31 of leap years package time may return one that has passed
			until = at.Add(time.Minute)
		}
		begins := shown - int64(offset)
		if !from.IsZero() {
			begins = max(begins, from.Unix())
		}
		if until.IsZero() || begins < until.Unix() {
			return nanos(begins)
		}
		at = until
	}
}

// nanos returns Unix nanoseconds, or the last or first instant of all for one out of their range.
func nanos(seconds int64) int64 {
	const most = math.MaxInt64 / int64(time.Second)
	switch {
	case seconds > most:
		return math.MaxInt64
	case seconds < -most:
		return math.MinInt64
	}
	return seconds * int64(time.Second)
}

// dayOf returns the date as the number of days since January 1, 1970.
func dayOf(at time.Time) int64 {
	y, m, d := at.Date()
	return floor(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix(), secondsPerDay)
}

// floor returns a / b, rounded down.
func floor(a, b int64) int64 {
	n := a / b
	if a%b < 0 {
		n--
	}
	return n
}
