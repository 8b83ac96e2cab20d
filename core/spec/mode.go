package spec

import "github.com/penstock-go/penstock/internal/shown"

// Mode decides the effect of a rule's verdict. The zero value is [Enforce].
type Mode uint8

// The modes of a rule.
const (
	Enforce Mode = iota // the verdict holds
	Shadow              // the rule decides and counts the calls it would have blocked; every call passes
	Off                 // the rule is kept but not evaluated
)

var modeNames = shown.NewEnum[Mode]("mode", "enforce", "shadow", "off")

// String returns the name used in rule files.
func (m Mode) String() string { return modeNames.Name(m) }

// MarshalText writes the name used in rule files.
func (m Mode) MarshalText() ([]byte, error) { return modeNames.Marshal(m) }

// UnmarshalText reads the name used in rule files.
func (m *Mode) UnmarshalText(text []byte) error { return modeNames.Parse(text, m) }
