package core

import "time"

// Refusal counts the rejections by one rule, for one value and caller, within a second. See
// api.Guard.OnBlocked, and api.Guard.Refusals, which merges refusals in several contexts.
type Refusal struct {
	First, Last time.Time // on the Guard's clock, in UTC
	Count       int64     // number of calls, or a lower bound; see there
	Context     string    // context of the first call
	Origin      string    // the caller, "" if not given
	Block       *BlockError
}
