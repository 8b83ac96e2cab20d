package slots

import "github.com/penstock-go/penstock/core"

// Percentiles counts how long the calls of each resource took, so that percentiles of it can be
// told: see [core.Config].Percentiles, which puts it into the chain. Calls without a response
// time are left out.
type Percentiles struct{}

// Name is "percentiles".
func (Percentiles) Name() string { return "percentiles" }

// Completed counts the response time of the call.
func (Percentiles) Completed(inv *core.Invocation) {
	if !inv.LongLived() {
		inv.Resource().AddRT(inv.Lane(), inv.Now(), inv.Now()-inv.Began())
	}
}
