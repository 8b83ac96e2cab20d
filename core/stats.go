package core

import (
	"time"

	"github.com/penstock-go/penstock/core/spec"
)

// RuleStats is what a rule has done since it was loaded, over all resources, whether they still
// exist or not. What is counted never decreases.
//
// A rule that has not been Asked may be about a name that is never used, for instance a misspelt
// one. A rule counts as asked after a call of a resource that it is about, whoever makes it or, for
// a system rule, an inbound call, even one before the rule was loaded; rules in mode off are not
// asked.
type RuleStats struct {
	Kind          Kind      `json:"kind"`
	ID            string    `json:"id"`
	Resource      string    `json:"resource"` // as in the rule: a name or a pattern
	Mode          spec.Mode `json:"mode"`
	Asked         bool      `json:"asked"`         // there was a call that the rule could be about
	Refused       int64     `json:"refused"`       // calls
	ShadowBlocked int64     `json:"shadowBlocked"` // calls that a rule in shadow mode would have refused
	Details       Details   `json:"details,omitempty"`
}

// Details are figures of a rule that only its family has, in a type of the family's own; nil if a
// rule has none. In JSON they are written by encoding/json. They hold their contents by value, in
// slices and strings, and don't change.
type Details interface {
	// Lines are the figures for people to read, each line beginning with the rule's name; at is the
	// time of the figures. Names in them are escaped and cut, so that each stays on its line and is
	// not too long.
	Lines(at time.Time) []string
	// Resources are the details of single resources, in any order.
	Resources() []ResourceDetails
}

// ResourceDetails are what a rule has to report of one resource. They are written as JSON with the
// figures of the resource, where they name the rule they belong to, and its kind.
type ResourceDetails interface {
	// About is the resource's name.
	About() string
	// Mark is what is shown beside the calls of the resource in text, "" for nothing. Of several
	// marks, only the one with the highest urgency is shown.
	Mark() (text string, urgency int)
}
