package refusal

import "github.com/penstock-go/penstock/internal/shown"

// Reason is why a call did not run.
type Reason uint8

// The reasons. The zero value is none.
const (
	None    Reason = iota
	Blocked        // a rule refused it
	GaveUp         // it waited for a rule until its deadline
	Gone           // it waited for a rule until its caller left
	Invalid        // it names nothing, has a name that is too long, or takes too many units
	Closing        // it would have waited, or waited for a rule until its server closed
)

var reasons = shown.NewEnum[Reason]("reason", "none", "blocked", "gaveUp", "gone", "invalid", "closing")

// String returns the reason's name.
func (r Reason) String() string { return reasons.Name(r) }

// MarshalText writes the reason's name.
func (r Reason) MarshalText() ([]byte, error) { return reasons.Marshal(r) }

// UnmarshalText reads the reason's name.
func (r *Reason) UnmarshalText(text []byte) error { return reasons.Parse(text, r) }

// Headers is the form in which a refusal states the limit. Limits reveal to outsiders what a
// service can take, so the zero value states none. Retry-After is sent in any case.
type Headers uint8

// The forms.
const (
	NoHeaders  Headers = iota
	Draft10            // RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-10
	Legacy             // RateLimit-Limit, -Remaining and -Reset of the drafts up to 06
	XRateLimit         // the same with X- before it
)

var forms = shown.NewEnum[Headers]("headers", "none", "draft10", "legacy", "xRateLimit")

// String returns the form's name.
func (h Headers) String() string { return forms.Name(h) }

// MarshalText writes the form's name.
func (h Headers) MarshalText() ([]byte, error) { return forms.Marshal(h) }

// UnmarshalText reads the form's name.
func (h *Headers) UnmarshalText(text []byte) error { return forms.Parse(text, h) }
