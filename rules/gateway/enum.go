package gateway

import "github.com/penstock-go/penstock/internal/shown"

// Param is the part of a request that a rule distinguishes requests by.
type Param uint8

// The params.
const (
	None     Param = iota // nothing: all requests share the limit
	ClientIP              // the address of the client, as the adapter determines it
	Host                  // the requested host
	Header                // a header
	Query                 // a query parameter
	Cookie                // a cookie
)

var paramNames = shown.NewEnum[Param]("param", "none", "clientIP", "host", "header", "query", "cookie")

// named reports whether a request can carry several, by name.
func (p Param) named() bool { return p == Header || p == Query || p == Cookie }

// String returns the name used in rule files.
func (p Param) String() string { return paramNames.Name(p) }

// MarshalText writes the name used in rule files.
func (p Param) MarshalText() ([]byte, error) { return paramNames.Marshal(p) }

// UnmarshalText reads the name used in rule files.
func (p *Param) UnmarshalText(text []byte) error { return paramNames.Parse(text, p) }

// ValueMatch selects the values that a rule limits.
type ValueMatch uint8

// The ways to match a value.
const (
	Exact    ValueMatch = iota // exactly that value
	Prefix                     // values that begin with it
	Regex                      // values that the regular expression (RE2) matches as a whole
	Contains                   // values that contain it
)

var matchNames = shown.NewEnum[ValueMatch]("valueMatch", "exact", "prefix", "regex", "contains")

// String returns the name used in rule files.
func (m ValueMatch) String() string { return matchNames.Name(m) }

// MarshalText writes the name used in rule files.
func (m ValueMatch) MarshalText() ([]byte, error) { return matchNames.Marshal(m) }

// UnmarshalText reads the name used in rule files.
func (m *ValueMatch) UnmarshalText(text []byte) error { return matchNames.Parse(text, m) }
