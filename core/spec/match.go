package spec

import "github.com/penstock-go/penstock/internal/shown"

// Match decides how a rule's Resource names resources. The zero value is [MatchExact].
type Match uint8

// The ways in which a rule names resources.
const (
	MatchExact  Match = iota // the resource with exactly that name
	MatchRegex               // every resource whose whole name the regular expression (RE2) matches
	MatchPrefix              // every resource whose name begins with the text before the star at the end
	MatchPath                // every resource whose name has the same parts between slashes; a star matches any part
)

// AnyResource is the Resource of a rule for all resources that no other enforced rule of its family
// applies to. Its Match is [MatchExact].
const AnyResource = "*"

var matchNames = shown.NewEnum[Match]("match", "exact", "regex", "prefix", "path")

// String returns the name used in rule files.
func (m Match) String() string { return matchNames.Name(m) }

// MarshalText writes the name used in rule files.
func (m Match) MarshalText() ([]byte, error) { return matchNames.Marshal(m) }

// UnmarshalText reads the name used in rule files.
func (m *Match) UnmarshalText(text []byte) error { return matchNames.Parse(text, m) }
