package core

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/internal/shown"
)

// Quotas holds the details of a flow rule with a quota.
type Quotas struct {
	// Quotas lists those of single resources, sorted by name, at most a hundred.
	Quotas []QuotaStats `json:"quotas"`
}

// QuotaStats holds what is used of a quota.
type QuotaStats struct {
	Resource string `json:"resource"` // the pattern if the rule counts all names together
	// Measure compares the units used in the period with the limit.
	Measure Measure `json:"measure"`
	// Ends is the time at which the next period begins, and nothing is used.
	Ends time.Time `json:"ends"`
}

// Lines returns a line that says how much is used of each quota that was used at all.
func (f Quotas) Lines(at time.Time) []string {
	var list []QuotaStats
	for _, q := range f.Quotas {
		if q.Measure.Measured > 0 {
			list = append(list, q)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{shown.Few(len(list), func(i int) string {
		q := list[i]
		return fmt.Sprintf("%s has used %s of %s %s, until %s", shown.Label(q.Resource), shown.Number(q.Measure.Measured),
			shown.Number(q.Measure.Limit), q.Measure.Of, q.Ends.Format("2006-01-02 15:04 MST"))
	})}
}

// Measures returns how much is used of each quota.
func (f Quotas) Measures() []Measure {
	all := make([]Measure, len(f.Quotas))
	for i, q := range f.Quotas {
		all[i] = q.Measure
		all[i].For = q.Resource
	}
	return all
}

// Resources returns nil: quotas add nothing to a resource's counters.
func (f Quotas) Resources() []ResourceDetails { return nil }
