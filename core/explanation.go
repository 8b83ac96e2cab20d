package core

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// Explanation says what the rules would decide for a call if it arrived now, see api.Explain.
// It is a copy, and safe for concurrent use.
type Explanation struct {
	Resource string    `json:"resource"`
	Context  string    `json:"context"`
	Origin   string    `json:"origin,omitempty"`
	At       time.Time `json:"at"`       // as of when, in UTC
	Revision uint64    `json:"revision"` // of the rules
	// Node is the name of the resource in the tree on which the call would be counted: its own,
	// or that of all names beyond the cap. Empty if there is none yet, as no call has asked for it.
	Node    string  `json:"node,omitempty"`
	Outcome Outcome `json:"outcome"`
	// GivesUp says that the call is refused because its context has ended, or will before it runs.
	GivesUp bool `json:"givesUp,omitempty"`
	// Draining says that the call is refused because it would have to wait, see api.Guard.Drain.
	Draining bool `json:"draining,omitempty"`
	// By is the index in Rules of the rule that decided: the first that refuses, otherwise the one
	// with the longest wait; -1 if the call passes.
	By int `json:"by"`
	// Runs is when the call would run: At, or after its wait. Zero if it is refused, or if it would
	// wait for other calls to end.
	Runs time.Time `json:"runs,omitzero"`
	// Next is when a call that is refused now would no longer be, if no other call comes first.
	// Zero if it is not refused, or if the time can't be known: it depends on other calls ending,
	// or waiting doesn't help.
	Next time.Time `json:"next,omitzero"`
	// Rules are those that apply to the resource, and the program's own slots, in the order in
	// which the chain asks them.
	Rules []ExplainedRule `json:"rules"`
	// LeftOut are rules that are about the name but don't apply to it.
	LeftOut []Choice `json:"leftOut,omitempty"`
}

// ExplainedRule is a rule that applies, and its judgement of the call.
type ExplainedRule struct {
	Choice
	Judgement
}

// Choice says why a rule applies to a name, or is left out though its resource would match.
type Choice struct {
	Kind     Kind       `json:"kind"`
	ID       string     `json:"id"`                 // for the program's own slot, its name
	Resource string     `json:"resource,omitempty"` // as in the rule: a name or a pattern
	Match    spec.Match `json:"match"`
	Mode     spec.Mode  `json:"mode"`
	Reason   string     `json:"reason"` // why it applies, or doesn't
	Applies  bool       `json:"-"`
}

// Judgement is how one rule judges a call, whatever the rule's mode: a rule in shadow mode keeps no
// call out.
type Judgement struct {
	Rule    string    `json:"-"` // its ID
	Outcome Outcome   `json:"outcome"`
	Why     string    `json:"why,omitempty"` // what the measures don't say
	Runs    time.Time `json:"runs,omitzero"` // of a call that waits; zero if it waits for other calls to end
	Next    time.Time `json:"next,omitzero"` // of a call that is refused, as in Explanation
	// About says that Next is only approximate: by then the limit has moved, or the call may
	// borrow.
	About    bool      `json:"about,omitempty"`
	Measures []Measure `json:"measures,omitempty"`
}

// Measure is a figure that a rule goes by, and what it allows. What is measured doesn't include
// the call itself.
type Measure struct {
	Of       string  `json:"of"`            // what is measured, as in "units in 1s"
	For      string  `json:"for,omitempty"` // which value, caller or endpoint, where the rule distinguishes them
	Measured float64 `json:"measured"`
	Limit    float64 `json:"limit"`          // as it is now, where it moves
	Unit     string  `json:"unit,omitempty"` // of both, "" for units, calls and shares
	// Remaining is how many units the rule would admit now, in calls of one unit; nil where there
	// is no such number.
	Remaining *int64 `json:"remaining,omitempty"`
	// AtHand says that Measured is what this process has ready for its calls, of a limit that a
	// cluster shares: how much of the limit is used up isn't known here.
	AtHand bool `json:"atHand,omitempty"`
}

// Full is how much of the limit is used up, all of it where the limit is 0 units; false where that isn't known here.
func (m Measure) Full() (share float64, known bool) {
	switch {
	case m.AtHand:
		return 0, false
	case m.Limit > 0:
		return math.Round(m.Measured/m.Limit*1e4) / 1e4, true
	case m.Unit == "": // nothing is let through
		return 1, true
	}
	return 0, true
}

// Outcome is what happens to a call.
type Outcome uint8

// The outcomes.
const (
	Passes    Outcome = iota
	Waits             // and then runs, unless its context ends first
	Refused           // or would be, if the rule weren't in shadow mode
	NotJudged         // the rule is not about such calls
	Unknown           // the program's own slot doesn't explain itself
)

var outcomeNames = shown.NewEnum[Outcome]("outcome", "passes", "waits", "refused", "notJudged", "unknown")

// String returns the name used in JSON.
func (o Outcome) String() string { return outcomeNames.Name(o) }

// MarshalText writes the name used in JSON.
func (o Outcome) MarshalText() ([]byte, error) { return outcomeNames.Marshal(o) }

// UnmarshalText reads the name used in JSON.
func (o *Outcome) UnmarshalText(text []byte) error { return outcomeNames.Parse(text, o) }
