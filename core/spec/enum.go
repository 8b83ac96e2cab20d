package spec

import (
	"fmt"
	"strings"
)

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
