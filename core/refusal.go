package core

import "time"

// Refusal is refusals by one rule, for one value and caller, within a second: see api.Guard.OnBlocked,
// and api.Guard.Refusals, where those of several contexts are one.
type Refusal struct {
	First, Last time.Time // when, on the Guard's clock, in UTC
	Count       int64     // calls, at least: see there
	Context     string    // the context that the first of them came in through
	Origin      string    // whose calls they are, "" if not given
	Block       *BlockError
}
