package shown

import (
	"fmt"
	"slices"
	"strings"
)

// Enum has the names of the values of an enumeration, starting at 0.
type Enum[E ~uint8] struct {
	kind  string // name in errors
	names []string
}

// NewEnum returns the names of the values of E; kind is the name of the enumeration in errors.
func NewEnum[E ~uint8](kind string, names ...string) Enum[E] { return Enum[E]{kind, names} }

// Has reports whether a value has a name.
func (e Enum[E]) Has(v E) bool { return int(v) < len(e.names) }

// Name returns the name of a value, or text such as "mode(7)" if it has none.
func (e Enum[E]) Name(v E) string {
	if !e.Has(v) {
		return fmt.Sprintf("%s(%d)", e.kind, uint8(v))
	}
	return e.names[v]
}

// Marshal returns the name of a value, or an error if it has none.
func (e Enum[E]) Marshal(v E) ([]byte, error) {
	if !e.Has(v) {
		return nil, fmt.Errorf("%s %d has no name", e.kind, uint8(v))
	}
	return []byte(e.names[v]), nil
}

// Parse sets v to the value whose name is text. If there is none, it sets v to 0 and returns an
// error that lists the names.
func (e Enum[E]) Parse(text []byte, v *E) error { return e.ParseFrom(0, text, v) }

// ParseFrom is like Parse, but accepts only values of at least least.
func (e Enum[E]) ParseFrom(least E, text []byte, v *E) error {
	names := e.names[least:]
	i := slices.Index(names, string(text))
	if i < 0 {
		*v = 0
		return fmt.Errorf("unknown %s %q: use %s", e.kind, text, strings.Join(names, ", "))
	}
	*v = least + E(i)
	return nil
}
