package slots

import "github.com/penstock-go/penstock/core"

// Percentiles is [Statistic] that also counts how long the calls of each resource took, so that
// percentiles can be reported: see api.Config.Percentiles, which puts it into the chain in place
// of Statistic. Calls without a response time are left out.
type Percentiles struct{ Statistic }

// Completed counts the end of the call where its admission was counted.
func (Percentiles) Completed(inv *core.Invocation) {
	if inv.LongLived() {
		longLived(inv)
		return
	}
	rt := inv.Now() - inv.Began()
	resource := 0 // the call node, if that of the resource includes it
	if inv.Writes(1) {
		resource = 1
	}
	for i, n := range inv.Counted() {
		if i == resource {
			n.AddTimed(inv.Lane(), inv.Now(), inv.Units(), rt, inv.Failed())
		} else if inv.Writes(i) {
			n.AddComplete(inv.Lane(), inv.Now(), inv.Units(), rt, inv.Failed())
		}
	}
}
