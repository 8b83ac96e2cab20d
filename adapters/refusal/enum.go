package refusal

import "github.com/penstock-go/penstock/core/spec"

// Reason is why a call did not run.
type Reason uint8

// The reasons. The zero value is none.
const (
	None    Reason = iota
	Blocked        // a rule refused it
	GaveUp         // it waited for a rule until its deadline
	Gone           // it waited for a rule until whoever made it left
	Invalid        // it names nothing, has a name that is too long, or takes too many units
)

var reasons = []string{"none", "blocked", "gaveUp", "gone", "invalid"}

// String returns the reason's name.
func (r Reason) String() string { return spec.EnumName("reason", reasons, uint8(r)) }

// MarshalText writes the reason's name.
func (r Reason) MarshalText() ([]byte, error) { return spec.MarshalEnum("reason", reasons, uint8(r)) }

// UnmarshalText reads the reason's name.
func (r *Reason) UnmarshalText(text []byte) error {
	v, err := spec.ParseEnum("reason", reasons, text)
	*r = Reason(v)
	return err
}

// Headers is the form in which a refusal tells the limit. Limits tell outsiders what a
// service can take, so the zero value tells none. Retry-After is told in any case.
type Headers uint8

// The forms.
const (
	NoHeaders  Headers = iota
	Draft10            // RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-10
	Legacy             // RateLimit-Limit, -Remaining and -Reset of the drafts up to 06
	XRateLimit         // the same with X- before it
)

var forms = []string{"none", "draft10", "legacy", "xRateLimit"}

// String returns the form's name.
func (h Headers) String() string { return spec.EnumName("headers", forms, uint8(h)) }

// MarshalText writes the form's name.
func (h Headers) MarshalText() ([]byte, error) { return spec.MarshalEnum("headers", forms, uint8(h)) }

// UnmarshalText reads the form's name.
func (h *Headers) UnmarshalText(text []byte) error {
	v, err := spec.ParseEnum("headers", forms, text)
	*h = Headers(v)
	return err
}
