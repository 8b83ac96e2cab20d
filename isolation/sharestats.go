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
			all, gone := c.resource.LookSemaphore(c.owner).Shares(&c.tenants.Sharing)
			f.Add(c.refusal.Resource, c.tenants, all, gone, 0)
		}
	}
	return f.Details()
}
