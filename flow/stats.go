package flow

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/shown"
)

// Stats holds the details of a rule whose threshold follows the memory in use. The details of a
// token bucket are [Buckets], those of a quota are core.Quotas, those of a throttle with shares are core.Shares, and those of a limit that a cluster shares are core.SharedStats; other
// flow rules have none.
type Stats struct {
	Threshold float64 `json:"threshold"` // in effect now
	// Memory is the memory use that determines the threshold, as last sampled: a share, or bytes if
	// the rule's marks are in bytes. It is 0 if memory use can't be read.
	Memory float64 `json:"memory,omitempty"`
}

// Stats returns, summed over all resources, the counters of each rule, the current threshold if it
// follows memory, and the tokens left in its buckets.
func (t *table) Stats() []core.RuleStats {
	return t.StatsWith(func(r Rule, controllers []*controller) core.Details {
		switch {
		case r.Mode == spec.Off:
			return nil
		case r.leases():
			return t.sharedStats(controllers)
		case r.fair():
			return sharesOf(controllers)
		case r.Per != spec.PerNone:
			return quotasOf(controllers)
		case r.Behavior == TokenBucket:
			return bucketsOf(controllers)
		case !r.watchesMemory():
			return nil
		}
		m := newMemoryLimit(t.Engine.Sampler(), r)
		return Stats{m.threshold(), max(0, m.reading.Value())}
	})
}

// sharedStats returns the details of a rule whose limit a cluster shares.
func (t *table) sharedStats(controllers []*controller) core.Details {
	f := family.NewSharedStats(t.Member)
	for _, c := range controllers {
		for _, w := range c.enforcer.(*leased).limits() {
			family.AddShared(&f, w)
		}
	}
	return f
}

// Lines returns the threshold and the reason for it.
func (f Stats) Lines(time.Time) []string {
	return []string{"threshold " + shown.Number(f.Threshold) + ", " + f.memory()}
}

func (f Stats) memory() string {
	switch {
	case f.Memory == 0:
		return "memory use unknown"
	case f.Memory <= 1:
		return "memory " + shown.Number(100*f.Memory) + " %"
	}
	return "memory " + shown.Number(f.Memory/(1<<20)) + " MiB"
}

// Resources returns nil: the threshold is the same for all resources.
func (f Stats) Resources() []core.ResourceDetails { return nil }

// Buckets holds the details of a rule with behavior [TokenBucket].
type Buckets struct {
	// Buckets lists the buckets of single resources, sorted by name, at most a hundred.
	Buckets []BucketStats `json:"buckets"`
}

// BucketStats holds the fill level of a resource's token bucket.
type BucketStats struct {
	Resource string  `json:"resource"` // the pattern if the rule counts all names together
	Tokens   float64 `json:"tokens"`   // units that may pass at once, plus the fraction of the next
	Size     int64   `json:"size"`     // of a full bucket: the burst plus the unit that is due
}

const maxBuckets = 100

func bucketsOf(controllers []*controller) core.Details {
	if len(controllers) == 0 {
		return nil
	}
	var f Buckets
	for _, c := range controllers[:min(len(controllers), maxBuckets)] {
		tokens := 0.0
		if c.rule.Threshold > 0 {
			tokens = c.kept.bucket.left(c.engine.Now(), c.rule.size())
		}
		f.Buckets = append(f.Buckets, BucketStats{c.refusal.Resource, tokens, c.rule.size()})
	}
	return f
}

// Lines returns a line for each bucket that is not full.
func (f Buckets) Lines(time.Time) []string {
	var list []BucketStats
	for _, b := range f.Buckets {
		if b.Tokens < float64(b.Size) {
			list = append(list, b)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{shown.Few(len(list), func(i int) string {
		b := list[i]
		return fmt.Sprintf("%s has %s of %d tokens left", shown.Label(b.Resource), shown.Number(b.Tokens), b.Size)
	})}
}

// Resources returns nil: buckets add nothing to a resource's counters.
func (f Buckets) Resources() []core.ResourceDetails { return nil }
