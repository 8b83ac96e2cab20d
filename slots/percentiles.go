package slots

import "github.com/penstock-go/penstock/internal/engine"

// Percentiles returns a statistic slot that also counts the response times of each resource's
// calls, so that percentiles can be reported. api.Config.Percentiles puts it into the chain in
// place of the usual one. Calls without a response time are left out.
func Percentiles() Slot { return percentiles{} }

type percentiles struct{ statistic }

// Completed counts the end of the call on the nodes where its admission was counted.
func (percentiles) Completed(inv *engine.Invocation) {
	if inv.HasCosts() {
		inv.CountSettledCosts()
	}
	if inv.LongLived() {
		longLived(inv)
		return
	}
	rt := inv.Now() - inv.Began()
	resource := 0 // the call node, if the resource's node includes it
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
