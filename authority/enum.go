package authority

import "github.com/penstock-go/penstock/internal/shown"

// List determines what a rule does with its names.
type List uint8

// The lists.
const (
	Allow List = iota // these callers may call, nobody else
	Deny              // these callers may not call, everybody else may
)

var listNames = shown.NewEnum[List]("list", "allow", "deny")

// String returns the name used in rule files.
func (l List) String() string { return listNames.Name(l) }

// MarshalText writes the name used in rule files.
func (l List) MarshalText() ([]byte, error) { return listNames.Marshal(l) }

// UnmarshalText reads the name used in rule files, or Sentinel's name: white for allow, black for
// deny.
func (l *List) UnmarshalText(text []byte) error {
	switch string(text) {
	case "white":
		text = []byte("allow")
	case "black":
		text = []byte("deny")
	}
	return listNames.Parse(text, l)
}
