package upstream

import (
	"strings"

	"github.com/penstock-go/penstock/internal/shown"
)

// Scope decides which calls an answer pauses.
type Scope uint8

// The scopes.
const (
	PerResource Scope = iota // the calls of the resource that got the answer
	// PerHost pauses all resources of the rule with the same host: "GET api.example.com" and "POST
	// api.example.com", or all methods of a gRPC service.
	PerHost
)

var scopeNames = shown.NewEnum[Scope]("scope", "resource", "host")

// String returns the name used in rule files.
func (s Scope) String() string { return scopeNames.Name(s) }

// MarshalText writes the name used in rule files.
func (s Scope) MarshalText() ([]byte, error) { return scopeNames.Marshal(s) }

// UnmarshalText reads the name used in rule files.
func (s *Scope) UnmarshalText(text []byte) error { return scopeNames.Parse(text, s) }

// of returns what a call of that name pauses: the name, or its host. That is the text after the
// method up to a slash, or the service of a gRPC method, "/package.Service".
func (s Scope) of(name string) string {
	if s == PerResource {
		return name
	}
	if _, after, ok := strings.Cut(name, " "); ok {
		name = after
	}
	begin := 0
	if strings.HasPrefix(name, "/") {
		begin = 1
	}
	if end := strings.IndexByte(name[begin:], '/'); end > 0 {
		name = name[:begin+end]
	}
	return name
}
