package core

import "time"

// Refusal counts the rejections by one rule, for one value and caller, within a second: see
// api.Guard.OnBlocked, and api.Guard.Refusals, which merges those of several contexts.
type Refusal struct {
	First, Last time.Time // on the Guard's clock, in UTC
	Count       int64     // calls, at least: see there
	Context     string    // context of the first of them
	Origin      string    // caller, "" if not given
	Block       *BlockError
}
