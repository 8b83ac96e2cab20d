package core

import "github.com/penstock-go/penstock/internal/shown"

// Level is the criticality of a call, the harm that its refusal does to users. Under overload,
// rules with a shed order refuse calls of the lowest level first. The words are those of Google's
// book "Site Reliability Engineering" (Beyer et al., 2016), chapter 21. The zero value is
// [Critical]; a smaller value is a higher level.
type Level int8

// The levels, the highest first.
const (
	CriticalPlus  Level = iota - 1 // users notice at once if these calls fail, and badly
	Critical                       // the default: users notice if these calls fail
	SheddablePlus                  // some of these calls may fail for minutes: batches that are retried
	Sheddable                      // all of these calls may fail for a while
)

// levelRank is the number of a level from the top.
type levelRank uint8

var levelNames = shown.NewEnum[levelRank]("criticality", "criticalPlus", "critical", "sheddablePlus", "sheddable")

func (l Level) rank() levelRank { return levelRank(l - CriticalPlus) }

// Valid reports whether l is one of the levels.
func (l Level) Valid() bool { return levelNames.Has(l.rank()) }

// String returns the name used in headers, as in "sheddablePlus".
func (l Level) String() string { return levelNames.Name(l.rank()) }

// MarshalText writes the name used in headers.
func (l Level) MarshalText() ([]byte, error) { return levelNames.Marshal(l.rank()) }

// UnmarshalText reads the name used in headers. Other text is an error, and sets Critical.
func (l *Level) UnmarshalText(text []byte) error {
	var r levelRank
	if err := levelNames.Parse(text, &r); err != nil {
		*l = Critical
		return err
	}
	*l = CriticalPlus + Level(r)
	return nil
}
