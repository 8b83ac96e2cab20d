package core

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// Explanation has the verdict of each rule on a call that arrives now; see api.Explain. It is a
// copy, and safe for concurrent use.
type Explanation struct {
	Resource string    `json:"resource"`
	Context  string    `json:"context"`
	Origin   string    `json:"origin,omitempty"`
	At       time.Time `json:"at"`       // in UTC
	Revision uint64    `json:"revision"` // of the rules
	// Node is the name of the node on which the call would be counted: the resource's own, or the
	// shared one for all names beyond the cap. Empty if there is no node yet, because no call has
	// asked for the resource.
	Node    string  `json:"node,omitempty"`
	Outcome Outcome `json:"outcome"`
	// GivesUp is true if the call is rejected because its context has ended, or will end before it
	// runs.
	GivesUp bool `json:"givesUp,omitempty"`
	// Draining is true if the call is rejected because it would have to wait; see api.Guard.Drain.
	Draining bool `json:"draining,omitempty"`
	// By is the index in Rules of the deciding rule: the first rule that rejects, otherwise the
	// rule with the longest wait. It is -1 if the call passes.
	By int `json:"by"`
	// Runs is the time at which the call would run: At, or after its wait. Zero if it is rejected,
	// or if it would wait for other calls to end.
	Runs time.Time `json:"runs,omitzero"`
	// Next is the time at which a rejected call would be admitted, if no other call is admitted
	// first. Zero if the call is not rejected, or if the time can't be known, because it depends on
	// other calls ending or because waiting doesn't help.
	Next time.Time `json:"next,omitzero"`
	// Rules are the rules that apply to the resource, and custom slots, in the order of the chain.
	Rules []ExplainedRule `json:"rules"`
	// LeftOut are rules whose resource matches the name, but which don't apply to it.
	LeftOut []Choice `json:"leftOut,omitempty"`
}

// ExplainedRule is a rule that applies, with its verdict on the call.
type ExplainedRule struct {
	Choice
	Judgement
}

// Choice is the reason why a rule applies to a name, or is left out although its resource matches.
type Choice struct {
	Kind     Kind       `json:"kind"`
	ID       string     `json:"id"`                 // for a custom slot, its name
	Resource string     `json:"resource,omitempty"` // as in the rule: a name or a pattern
	Match    spec.Match `json:"match"`
	Mode     spec.Mode  `json:"mode"`
	Reason   string     `json:"reason"` // why it applies, or doesn't
	Applies  bool       `json:"-"`
}

// Judgement is the verdict of one rule on a call, regardless of the rule's mode; in shadow mode the
// verdict rejects no call.
type Judgement struct {
	Rule    string    `json:"-"` // its ID
	Outcome Outcome   `json:"outcome"`
	Why     string    `json:"why,omitempty"` // details not in the measures
	Runs    time.Time `json:"runs,omitzero"` // of a call that waits; zero if it waits for other calls to end
	Next    time.Time `json:"next,omitzero"` // of a call that is rejected, as in Explanation
	// About marks Next as approximate: the limit may have changed by then, or the call may borrow.
	About    bool      `json:"about,omitempty"`
	Measures []Measure `json:"measures,omitempty"`
}

// Measure is a number that a rule compares with its limit. It doesn't include the call itself.
type Measure struct {
	Of       string  `json:"of"`            // name of the measure, as in "units in 1s"
	For      string  `json:"for,omitempty"` // value, caller or endpoint, if the rule distinguishes them
	Measured float64 `json:"measured"`
	Limit    float64 `json:"limit"`          // current limit, if it varies
	Unit     string  `json:"unit,omitempty"` // of both, "" for units, calls and shares
	// Remaining is the number of calls of one unit that the rule would admit now; nil if no such
	// number exists.
	Remaining *int64 `json:"remaining,omitempty"`
	// AtHand marks Measured as the units that this process has at hand, for a limit that a cluster
	// shares: the total use of the limit isn't known here.
	AtHand bool `json:"atHand,omitempty"`
}

// Full returns the used share of the limit, which is 1 if the limit is 0 units, or false if the use
// isn't known here.
func (m Measure) Full() (share float64, known bool) {
	switch {
	case m.AtHand:
		return 0, false
	case m.Limit > 0:
		return math.Round(m.Measured/m.Limit*1e4) / 1e4, true
	case m.Unit == "": // nothing is admitted
		return 1, true
	}
	return 0, true
}

// Outcome is the verdict on a call.
type Outcome uint8

// The outcomes.
const (
	Passes    Outcome = iota
	Waits             // the call then runs, unless its context ends first
	Refused           // or would be refused, if the rule weren't in shadow mode
	NotJudged         // the rule doesn't apply to such calls
	Unknown           // a custom slot doesn't explain itself, or chance decides
)

var outcomeNames = shown.NewEnum[Outcome]("outcome", "passes", "waits", "refused", "notJudged", "unknown")

// String returns the name used in JSON.
func (o Outcome) String() string { return outcomeNames.Name(o) }

// MarshalText writes the name used in JSON.
func (o Outcome) MarshalText() ([]byte, error) { return outcomeNames.Marshal(o) }

// UnmarshalText reads the name used in JSON.
func (o *Outcome) UnmarshalText(text []byte) error { return outcomeNames.Parse(text, o) }
