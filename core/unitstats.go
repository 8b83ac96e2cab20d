package core

import "github.com/penstock-go/penstock/internal/shown"

// UnitCounts counts the units of one kind, such as tokens, that calls of a resource have reserved:
// see api.Cost. The calls have used Reserved - Refunded + Overdrawn; a call that still runs counts
// with what it reserved.
type UnitCounts struct {
	Reserved  int64 `json:"reserved"`  // by admitted calls
	Refunded  int64 `json:"refunded"`  // reserved and not used
	Overdrawn int64 `json:"overdrawn"` // used beyond the reservation
	Forgiven  int64 `json:"forgiven"`  // charges that maxOverdraft kept from a limit
	Refused   int64 `json:"refused"`   // asked for by refused calls
	Uncosted  int64 `json:"uncosted"`  // calls that have ended, and named no cost in the unit
}

// Used returns the units used.
func (c UnitCounts) Used() int64 { return c.Reserved - c.Refunded + c.Overdrawn }

// Plus returns the sum. Each number stops at 2^62.
func (c UnitCounts) Plus(other UnitCounts) UnitCounts {
	sum := func(a, b int64) int64 { return min(a+b, 1<<62) }
	return UnitCounts{
		sum(c.Reserved, other.Reserved), sum(c.Refunded, other.Refunded), sum(c.Overdrawn, other.Overdrawn),
		sum(c.Forgiven, other.Forgiven), sum(c.Refused, other.Refused), sum(c.Uncosted, other.Uncosted),
	}
}

// UnitStats has the counts of one kind of units at a resource: since the start, and of the last
// minute.
type UnitStats struct {
	Unit   string     `json:"unit"`
	Total  UnitCounts `json:"total"`
	Minute UnitCounts `json:"minute"`
}

// String returns the counts of the last minute that aren't 0, as in
// "tokens 81000/min, 3100 refunded, 400 overdrawn".
func (s UnitStats) String() string {
	text := append(shown.AppendCount([]byte(s.Unit+" "), s.Minute.Used()), "/min"...)
	for _, part := range [...]struct {
		n    int64
		what string
	}{
		{s.Minute.Refunded, " refunded"}, {s.Minute.Overdrawn, " overdrawn"},
		{s.Minute.Forgiven, " forgiven"}, {s.Minute.Refused, " refused"}, {s.Minute.Uncosted, " uncosted"},
	} {
		if part.n != 0 {
			text = append(shown.AppendCount(append(text, ", "...), part.n), part.what...)
		}
	}
	return string(text)
}
