package isolation

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/sharing"
)

// Shared reports whether a cluster shares the limit of the rule.
func (r Rule) Shared() bool { return r.Cluster.Shared() }

// leases reports whether calls take from a lease: a rule that refuses every call needs none.
func (r Rule) leases() bool { return r.Shared() && r.Threshold > 0 && r.Mode != spec.Off }

// checkShared refuses fields that depend on the state of a single process.
func (r Rule) checkShared() error {
	if r.Shared() && r.MaxQueue > 0 {
		return spec.BadField("cluster", "has no meaning for maxQueue: each process queues only its own calls; remove cluster, or maxQueue and maxWait")
	}
	if err := r.Cluster.Check(r.ID); err != nil || !r.Shared() {
		return err
	}
	if r.Unit != "" {
		return family.CheckSharedUnits(float64(r.Threshold))
	}
	return r.Cluster.CheckThreshold(float64(r.Threshold))
}

// share creates the lease of the rule. No other rule uses it: a rule in shadow mode doesn't share
// with an enforced one.
func (c *controller) share(m *sharing.Member) {
	key := family.SharedKey(m, core.KindIsolation, c.rule.Info(), c.rule.Unit, c.resource.Name(), c.rule.Mode.String())
	limit := sharing.SemaphoreConfig{Threshold: float64(c.rule.Threshold), Rule: c.rule.Cluster}
	c.lease = family.NewSharedSemaphore(m, key, c.rule.Unit, limit, c.refusal)
}

// Shares returns the rules whose permits a cluster shares, or nil if there are none.
func (rs *checker) Shares() engine.Sharer { return rs.shared.Sharer() }

// SharedLimit returns the lease.
func (c *controller) SharedLimit(inv *engine.Invocation, i int) (family.Shared, int64) {
	if i > 0 {
		return nil, 0
	}
	n := c.amount(inv)
	if n == 0 {
		return nil, 0
	}
	return c.lease, n
}

// Direct returns true: no call waits for a turn.
func (*controller) Direct() bool { return true }

// Stats returns the counters of each rule, summed over all resources, and its leases.
func (t *table) Stats() []core.RuleStats {
	return t.StatsWith(func(r Rule, controllers []*controller) core.Details {
		switch {
		case r.shares() && r.Mode != spec.Off:
			return shareStats(controllers)
		case !r.leases():
			return nil
		}
		f := family.NewSharedStats(t.Member)
		for _, c := range controllers {
			family.AddShared(&f, c.lease)
		}
		return f
	})
}
