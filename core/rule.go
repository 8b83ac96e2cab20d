package core

import (
	"fmt"
	"strings"
)

// Mode says what a rule's verdict does. The zero value is [Enforce].
type Mode uint8

// The modes of a rule.
const (
	Enforce Mode = iota // the verdict holds
	Shadow              // the rule decides and counts what it would have blocked; every call passes
	Off                 // the rule is kept but not asked
)

var modeNames = []string{"enforce", "shadow", "off"}

// String returns the name used in rule files.
func (m Mode) String() string { return EnumName("mode", modeNames, uint8(m)) }

// MarshalText writes the name used in rule files.
func (m Mode) MarshalText() ([]byte, error) { return MarshalEnum("mode", modeNames, uint8(m)) }

// UnmarshalText reads the name used in rule files.
func (m *Mode) UnmarshalText(text []byte) error {
	v, err := ParseEnum("mode", modeNames, text)
	*m = Mode(v)
	return err
}

// FieldError says which field of a rule can't be honoured and why. Loaders add
// file, line and column.
type FieldError struct {
	Field   string // the key in rule files, as in "warmUpPeriod"
	Problem string // what is wrong and what to do about it
}

// Error returns "field: problem".
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// BadField returns a [FieldError] whose problem is formatted as by
// [fmt.Sprintf].
func BadField(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// EnumName returns the name of value v of the enumeration kind, and for a
// value without a name something like "mode(7)".
func EnumName(kind string, names []string, v uint8) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", kind, v)
}

// MarshalEnum returns the name of value v, or an error for a value without one.
func MarshalEnum(kind string, names []string, v uint8) ([]byte, error) {
	if int(v) >= len(names) {
		return nil, fmt.Errorf("%s %d has no name", kind, v)
	}
	return []byte(names[v]), nil
}

// ParseEnum returns the value whose name is text; the error lists the names.
func ParseEnum(kind string, names []string, text []byte) (uint8, error) {
	for i, name := range names {
		if name == string(text) {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: use %s", kind, text, strings.Join(names, ", "))
}
