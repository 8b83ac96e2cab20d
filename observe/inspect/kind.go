package inspect

import "github.com/penstock-go/penstock/internal/shown"

// NodeKind is the kind of a [Node].
type NodeKind uint8

// The kinds of nodes. Root and entrance have no counters of their own: their counts are the sums
// of their children's.
const (
	NodeRoot     NodeKind = iota // all calls
	NodeEntrance                 // the calls of one context
	NodeCall                     // the calls of one resource in one context
	NodeResource                 // the calls of one resource, over all contexts
	NodeOrigin                   // the calls of one caller to one resource
	NodeInbound                  // the inbound calls of all resources
)

var kindNames = shown.NewEnum[NodeKind]("kind", "root", "entrance", "call", "resource", "origin", "inbound")

// String returns the name used in JSON.
func (k NodeKind) String() string { return kindNames.Name(k) }

// MarshalText writes the name used in JSON.
func (k NodeKind) MarshalText() ([]byte, error) { return kindNames.Marshal(k) }

// UnmarshalText reads the name used in JSON.
func (k *NodeKind) UnmarshalText(text []byte) error { return kindNames.Parse(text, k) }
