package inspect

import "github.com/penstock-go/penstock/core/spec"

// Kind is what a [Node] stands for.
type Kind uint8

// The kinds of nodes. Root and entrance have no counters of their own: each of
// their figures is the sum of their direct children.
const (
	KindRoot     Kind = iota // everything that came in
	KindEntrance             // the calls of one context
	KindCall                 // the calls of one resource in one context
	KindResource             // the calls of one resource, over all contexts
	KindOrigin               // the calls of one caller to one resource
	KindInbound              // the inbound calls of all resources
)

var kindNames = []string{"root", "entrance", "call", "resource", "origin", "inbound"}

// String returns the name used in JSON.
func (k Kind) String() string { return spec.EnumName("kind", kindNames, uint8(k)) }

// MarshalText writes the name used in JSON.
func (k Kind) MarshalText() ([]byte, error) { return spec.MarshalEnum("kind", kindNames, uint8(k)) }

// UnmarshalText reads the name used in JSON.
func (k *Kind) UnmarshalText(text []byte) error {
	v, err := spec.ParseEnum("kind", kindNames, text)
	*k = Kind(v)
	return err
}
