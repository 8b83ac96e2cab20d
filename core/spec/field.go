package spec

import (
	"fmt"
	"time"
)

// FieldError names an invalid field of a rule, and the reason. Loaders add file, line and column.
type FieldError struct {
	Field   string // the key in rule files, as in "warmUpPeriod"
	Problem string // the problem and how to fix it
}

// Error returns "field: problem".
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// BadField returns a [FieldError] whose problem is formatted as by
// [fmt.Sprintf].
func BadField(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// CheckDuration returns a [FieldError] if a duration is not between low and high, inclusive.
func CheckDuration(field string, d, low, high time.Duration) error {
	if d < low || d > high {
		return BadField(field, "is %v: use a duration from %v to %v", d, low, high)
	}
	return nil
}
