package family

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/meter"
)

func newShareStats(resource, name string, x meter.ShareStats) core.ShareStats {
	return core.ShareStats{
		Resource: resource, Share: name, Weight: x.Weight, Part: x.Part, Held: x.Held, Queued: x.Queued,
		Served: x.Served, Refused: x.Refused, Displaced: x.Displaced, Expired: x.Expired,
	}
}

const topShares = 100

// Shares collects the shares of one rule over all resources. The zero value is empty.
type Shares struct {
	all  core.Shares
	rest meter.ShareStats
	rate float64 // of the rest
}

// Most is the number of shares of a resource that [Shares.Add] may be given.
const Most = topShares

// Add adds the shares of a resource: the largest, the sum of the others, and the number of all.
func (f *Shares) Add(resource string, t *Tenants, largest []meter.ShareStats, others meter.ShareStats, n int) {
	for _, x := range largest {
		f.all.Top = append(f.all.Top, newShareStats(resource, t.Name(&x), x))
	}
	f.rest.Add(others)
	f.all.Shares += n
}

// AddTurns is Add for a throttle with that threshold.
func (f *Shares) AddTurns(resource string, t *Tenants, threshold float64, largest []meter.ShareStats, others meter.ShareStats, n int) {
	f.rate += threshold * others.Part
	others.Part = 0
	known := len(f.all.Top)
	f.Add(resource, t, largest, others, n)
	for i := range largest {
		x := &f.all.Top[known+i]
		x.Rate, x.Part = threshold*x.Part, 0
	}
}

// Details returns the details of the rule.
func (f *Shares) Details() core.Shares {
	all := f.all
	slices.SortStableFunc(all.Top, func(a, b core.ShareStats) int {
		return cmp.Or(cmp.Compare(b.Held+int64(b.Queued), a.Held+int64(a.Queued)), cmp.Compare(b.Served, a.Served))
	})
	all.Rest = newShareStats("", "", f.rest)
	all.Rest.Rate = f.rate
	all.Top, all.Rest = all.Largest(topShares)
	return all
}
