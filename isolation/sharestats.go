package isolation

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/family"
)

// shareStats returns the details of a rule with shares.
func shareStats(controllers []*controller) core.Details {
	var f family.Shares
	for _, c := range controllers {
		if c.shares() {
			largest, others, n := c.resource.LookSemaphore(c.owner).Shares(family.Most, &c.tenants.Sharing)
			f.Add(c.refusal.Resource, c.tenants, largest, others, n)
		}
	}
	return f.Details()
}
