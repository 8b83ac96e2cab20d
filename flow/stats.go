package flow

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/shown"
)

// Stats are the details of a rule whose threshold moves with the memory in use. Those of a
// token bucket are [Buckets], those of a limit that a cluster shares core.SharedStats; other
// flow rules have none.
type Stats struct {
	Threshold float64 `json:"threshold"` // that holds at the moment
	// Memory is the use that the threshold goes by, as last sampled: a share, or bytes if the
	// rule's marks are in bytes; 0 if it can't be read.
	Memory float64 `json:"memory,omitempty"`
}

// Stats says, over all resources, what each rule has done, what a threshold that moves is now,
// and what is left in its token buckets.
func (t *table) Stats() []core.RuleStats {
	return t.StatsWith(func(r Rule, controllers []*controller) core.Details {
		switch {
		case r.Mode == spec.Off:
			return nil
		case r.leases():
			return t.sharedStats(controllers)
		case r.Behavior == TokenBucket:
			return bucketsOf(controllers)
		case !r.watchesMemory():
			return nil
		}
		m := newMemoryLimit(t.Engine.Sampler(), r)
		return Stats{m.threshold(), max(0, m.reading.Value())}
	})
}

// sharedFigures are the details of a rule whose limit a cluster shares.
func (t *table) sharedStats(controllers []*controller) core.Details {
	f := family.NewSharedStats(t.Member)
	for _, c := range controllers {
		for _, w := range c.enforcer.(*leased).limits() {
			family.AddShared(&f, w)
		}
	}
	return f
}

// Lines gives the threshold and says why it has that value.
func (f Stats) Lines(time.Time) []string {
	return []string{"threshold " + shown.Number(f.Threshold) + ", " + f.memory()}
}

func (f Stats) memory() string {
	switch {
	case f.Memory == 0:
		return "memory not known"
	case f.Memory <= 1:
		return "memory " + shown.Number(100*f.Memory) + " %"
	}
	return "memory " + shown.Number(f.Memory/(1<<20)) + " MiB"
}

// Resources returns nothing: the threshold is the same for all resources.
func (f Stats) Resources() []core.ResourceDetails { return nil }

// Buckets holds the details of a rule with behavior [TokenBucket].
type Buckets struct {
	// Buckets are those of single resources, sorted by name, a hundred at most.
	Buckets []BucketStats `json:"buckets"`
}

// BucketStats says how full the token bucket of a resource is.
type BucketStats struct {
	Resource string  `json:"resource"`
	Tokens   float64 `json:"tokens"` // tokens left: units that may pass in one go, plus the part of the next one that has come back
	Size     int64   `json:"size"`   // of a full bucket: the burst, and the unit that is due
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
		f.Buckets = append(f.Buckets, BucketStats{c.resource.Name(), tokens, c.rule.size()})
	}
	return f
}

// Lines says, for each bucket that is not full, how many tokens are left.
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

// Resources returns nothing: there is nothing to show beside a resource's calls.
func (f Buckets) Resources() []core.ResourceDetails { return nil }
