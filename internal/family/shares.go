package family

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/meter"
)

// Shares collects the shares of one rule over all resources. The zero value is empty.
type Shares struct {
	all  []shareOf
	gone core.ShareStats
}

// shareOf is a share at a resource.
type shareOf struct {
	meter.ShareStats
	resource string
	tenants  *Tenants
	rate     float64 // the threshold of a throttle, whose parts are fractions; otherwise 0
}

// Add adds the shares of a resource, and the sum of those forgotten there. A throttle adds its threshold.
func (f *Shares) Add(resource string, t *Tenants, all []meter.ShareStats, gone meter.ShareStats, threshold float64) {
	for _, x := range all {
		f.all = append(f.all, shareOf{x, resource, t, threshold})
	}
	f.gone.Served += gone.Served
	f.gone.Refused += gone.Refused
	f.gone.Displaced += gone.Displaced
	f.gone.Expired += gone.Expired
}

// topShares is the number of shares that are listed.
const topShares = 100

// Details returns the details of the rule.
func (f *Shares) Details() core.Shares {
	slices.SortStableFunc(f.all, func(a, b shareOf) int {
		return cmp.Or(cmp.Compare(b.Held+int64(b.Queued), a.Held+int64(a.Queued)), cmp.Compare(b.Served, a.Served))
	})
	all := core.Shares{Shares: len(f.all), Rest: f.gone}
	for i, x := range f.all {
		stats := core.ShareStats{
			Weight: x.Weight, Part: x.Part, Held: x.Held, Queued: x.Queued,
			Served: x.Served, Refused: x.Refused, Displaced: x.Displaced, Expired: x.Expired,
		}
		if x.rate > 0 {
			stats.Rate, stats.Part = x.rate*x.Part, 0
		}
		if i < topShares {
			stats.Resource, stats.Share = x.resource, x.tenants.Name(&x.ShareStats)
		}
		all.Top = append(all.Top, stats)
	}
	all.Top, all.Rest = all.Largest(topShares)
	return all
}
