package core

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/spec"
)

// RuleFigures is what a rule has done since it was loaded, over all resources, whether they
// are still there or not. What is counted never decreases.
//
// A rule that has not been Asked may be about a name that nobody uses, for instance one that
// is misspelt. What counts is a call of a resource that the rule is about, whoever makes
// it, or for a system rule an inbound call, also one before the rule was loaded; rules in mode
// off are not asked.
type RuleFigures struct {
	Kind          Kind      `json:"kind"`
	ID            string    `json:"id"`
	Resource      string    `json:"resource"` // as in the rule: a name or a pattern
	Mode          spec.Mode `json:"mode"`
	Asked         bool      `json:"asked"`         // a call has come that the rule could be about
	Refused       int64     `json:"refused"`       // calls
	ShadowBlocked int64     `json:"shadowBlocked"` // calls that a rule in shadow mode would have refused
	Details       Details   `json:"details,omitempty"`
}

// Details are the figures of a rule that its family alone has, in a type of the family's
// own; nil where a rule has none. Where figures are shown as JSON, they are written by
// encoding/json. They hold what they say by value, in slices and texts, and don't change.
type Details interface {
	// Lines are what people should know of them, each on a line that begins with the
	// rule's name; at is the time of the figures. What is a name in them is shown so
	// that it stays on its line and is not too long.
	Lines(at time.Time) []string
	// Resources are the details of single resources, in any order.
	Resources() []ResourceDetails
}

// ResourceDetails are what a rule has to tell of one resource. They are written as JSON
// with the figures of the resource, and name there the rule they belong to, and its kind.
type ResourceDetails interface {
	// About is the resource's name.
	About() string
	// Mark is what is shown beside the calls of the resource in text,
	// "" for nothing. Of several, only the one with the highest urgency does.
	Mark() (text string, urgency int)
}

// RuleFigures are the figures of every rule, family by family, in the order in
// which they were declared.
func (s *Ruleset) RuleFigures() []RuleFigures {
	var figures [kinds][]RuleFigures
	for kind, family := range s.families {
		if family != nil {
			figures[kind] = family.Figures()
		}
	}
	return slices.Concat(figures[:]...)
}
