package refusal

import "github.com/penstock-go/penstock/internal/shown"

// Reason says why a call did not run.
type Reason uint8

// The reasons. The zero value is none.
const (
	None    Reason = iota
	Blocked        // refused by a rule
	GaveUp         // waited for a rule until its deadline
	Gone           // waited for a rule until its caller left
	Invalid        // its name is missing or too long, or it takes too many units
	Closing        // would have waited, or waited for a rule until its server closed
)

var reasons = shown.NewEnum[Reason]("reason", "none", "blocked", "gaveUp", "gone", "invalid", "closing")

// String returns the reason's name.
func (r Reason) String() string { return reasons.Name(r) }

// MarshalText writes the reason's name.
func (r Reason) MarshalText() ([]byte, error) { return reasons.Marshal(r) }

// UnmarshalText reads the reason's name.
func (r *Reason) UnmarshalText(text []byte) error { return reasons.Parse(text, r) }

// Headers selects the form in which a response states the limit. Limits reveal a service's capacity
// to outsiders, so the zero value states none. Retry-After is sent in any case.
type Headers uint8

// The forms.
const (
	NoHeaders  Headers = iota
	RateLimit          // RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers, from 08 on
	Legacy             // RateLimit-Limit, -Remaining and -Reset of the drafts up to 06
	XRateLimit         // the same with the prefix X-
)

var forms = shown.NewEnum[Headers]("headers", "none", "rateLimit", "legacy", "xRateLimit")

// String returns the form's name.
func (h Headers) String() string { return forms.Name(h) }

// MarshalText writes the form's name.
func (h Headers) MarshalText() ([]byte, error) { return forms.Marshal(h) }

// UnmarshalText reads the form's name.
func (h *Headers) UnmarshalText(text []byte) error { return forms.Parse(text, h) }
