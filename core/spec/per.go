package spec

import "github.com/penstock-go/penstock/internal/shown"

// Per is the period of the calendar in which a quota counts. The zero value is [PerNone].
type Per uint8

// The periods of quotas.
const (
	PerNone  Per = iota // the rule has no quota: it counts in its Interval
	PerDay              // from a time of the day, midnight unless the rule says otherwise
	PerWeek             // from a day of the week, Monday unless the rule says otherwise
	PerMonth            // from a day of the month, the first unless the rule says otherwise
)

var perNames = shown.NewEnum[Per]("per", "none", "day", "week", "month")

// Has reports whether p is one of the periods.
func (p Per) Has() bool { return perNames.Has(p) }

// String returns the name used in rule files; "none" for the zero value, which has no name there.
func (p Per) String() string { return perNames.Name(p) }

// MarshalText writes the name used in rule files.
func (p Per) MarshalText() ([]byte, error) { return perNames.Marshal(p) }

// UnmarshalText reads the name used in rule files.
func (p *Per) UnmarshalText(text []byte) error { return perNames.ParseFrom(PerDay, text, p) }
