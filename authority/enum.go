package authority

import "github.com/penstock-go/penstock/core"

// List is what the names of a rule mean.
type List uint8

// The lists.
const (
	White List = iota // these callers may, nobody else
	Black             // these callers may not, everybody else may
)

var listNames = []string{"white", "black"}

// String returns the name used in rule files.
func (l List) String() string { return core.EnumName("list", listNames, uint8(l)) }

// MarshalText writes the name used in rule files.
func (l List) MarshalText() ([]byte, error) { return core.MarshalEnum("list", listNames, uint8(l)) }

// UnmarshalText reads the name used in rule files.
func (l *List) UnmarshalText(text []byte) error {
	v, err := core.ParseEnum("list", listNames, text)
	*l = List(v)
	return err
}
