package spec

import "strings"

// Response is the response that adapters give to calls that a rule refuses, in place of the one for
// its family. The zero value changes nothing. In a rule file it is
//
//	refusal: {status: 503, body: '{"error": "overloaded"}'}
//
// Headers such as Retry-After stay. An RPC adapter sends the gRPC code that means the same as the
// status, and no body.
type Response struct {
	// Status is an HTTP status from 400 to 599; 0 means that of the family. With 400 to 499, but 408,
	// 409, 425 and 429, the response has no Retry-After.
	Status int `yaml:"status,omitempty"`
	// Body is the whole body, of type application/json if it begins with a brace or a bracket, and
	// text/plain otherwise. At most 4096 bytes; empty means a problem of RFC 9457.
	Body string `yaml:"body,omitempty"`
}

// The range of a response's fields.
const (
	MinStatus = 400
	MaxStatus = 599
	MaxBody   = 4096
)

// Check returns a [FieldError] for the first invalid field.
func (r Response) Check() error {
	switch {
	case r.Status != 0 && (r.Status < MinStatus || r.Status > MaxStatus):
		return BadField("refusal.status", "is %d: use a status from %d to %d, or 0 for that of the family", r.Status, MinStatus, MaxStatus)
	case len(r.Body) > MaxBody:
		return BadField("refusal.body", "has %d bytes: use at most %d", len(r.Body), MaxBody)
	}
	return nil
}

// TypeOfBody returns the content type of a Response's body.
func TypeOfBody(body string) string {
	if text := strings.TrimLeft(body, " \t\r\n"); text != "" && (text[0] == '{' || text[0] == '[') {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
