package core

import "time"

// Refusal is one of the last refusals of a resource: those by one rule for one caller within a
// second are combined. See api.Guard.Refusals.
type Refusal struct {
	First, Last time.Time // when, on the engine's clock, in UTC
	Count       int64     // calls, at least: see there
	Context     string    // the context that the first of them came in through
	Origin      string    // whose calls they are, "" if not given
	Block       *BlockError
}
