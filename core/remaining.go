package core

import "time"

// Remaining has the units that a rule would still admit in its window; see api.Admitted.
type Remaining struct {
	Kind   Kind   // family of the rule
	Rule   string // its ID
	Left   int64  // further units that it would admit; more than Limit if it saves up for bursts
	Limit  int64  // units per Window
	Window time.Duration
	Resets time.Duration // time until the period of a quota ends, and Left is Limit again; otherwise 0
}

// Tighter reports whether a smaller share of the limit is left than in other.
func (r Remaining) Tighter(other Remaining) bool {
	return float64(r.Left)*float64(other.Limit) < float64(other.Left)*float64(r.Limit)
}
