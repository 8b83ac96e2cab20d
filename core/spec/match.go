package spec

// Match says how a rule's Resource names resources. The zero value is [MatchExact].
type Match uint8

// The ways in which a rule names resources.
const (
	MatchExact Match = iota // the resource of that very name
	MatchRegex              // every resource whose whole name the regular expression (RE2) matches
)

var matchNames = []string{"exact", "regex"}

// String returns the name used in rule files.
func (m Match) String() string { return EnumName("match", matchNames, uint8(m)) }

// MarshalText writes the name used in rule files.
func (m Match) MarshalText() ([]byte, error) { return MarshalEnum("match", matchNames, uint8(m)) }

// UnmarshalText reads the name used in rule files.
func (m *Match) UnmarshalText(text []byte) error {
	v, err := ParseEnum("match", matchNames, text)
	*m = Match(v)
	return err
}
