package core

import (
	"time"

	"github.com/penstock-go/penstock/core/spec"
)

// RuleStats counts the calls to which a rule applied since it was loaded, over all resources, even
// ones that no longer exist. Counts never decrease.
//
// A rule that has not been Asked may name a resource that is never used, for instance a misspelt
// one. A rule counts as asked after a call of a resource that it applies to, by any caller, or for
// a system rule after an inbound call, even one before the rule was loaded; rules in mode off are
// not asked.
type RuleStats struct {
	Kind          Kind      `json:"kind"`
	ID            string    `json:"id"`
	Resource      string    `json:"resource"` // as in the rule: a name or a pattern
	Mode          spec.Mode `json:"mode"`
	Asked         bool      `json:"asked"`             // there was a call to which the rule could apply
	Refused       int64     `json:"refused"`           // calls
	ShadowBlocked int64     `json:"shadowBlocked"`     // calls that a rule in shadow mode would have refused
	Notices       int64     `json:"notices,omitempty"` // shares of the limit that use has reached; see [Notice]
	Details       Details   `json:"details,omitempty"`
}

// Details are a rule's family-specific numbers, in a type that the family defines; nil means that
// the rule has none. encoding/json marshals them. They hold their contents by value, in slices and
// strings, and are immutable.
type Details interface {
	// Lines returns the numbers as text, each line beginning with the rule's name; at is their
	// time. Names in them are escaped and truncated, so that each stays on its line and is not too
	// long.
	Lines(at time.Time) []string
	// Resources are the details of single resources, in any order.
	Resources() []ResourceDetails
}

// ResourceDetails are a rule's numbers for one resource. In JSON they appear among the resource's
// numbers, with the name and kind of the rule.
type ResourceDetails interface {
	// About returns the resource's name.
	About() string
	// Mark returns the text to show next to the calls of the resource, or "" for none. If there are
	// several marks, only the most urgent one is shown.
	Mark() (text string, urgency int)
}
