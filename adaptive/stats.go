package adaptive

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// Stats holds the details of a rule: the limits that it has learned.
type Stats struct {
	// Limits are by resource, sorted by name, at most a hundred.
	Limits []LimitStats `json:"limits"`
	// Levels are the calls of each level of criticality over all resources, the highest first, of a rule
	// with a shed order; otherwise nil.
	Levels []core.LevelStats `json:"levels,omitempty"`
}

// LimitStats is the limit learned for one resource. As JSON, response times are in milliseconds:
// floorRtMs and limitRtMs.
type LimitStats struct {
	Resource string
	Limit    int64 // the learned limit, in units
	// InForce is the limit enforced now: the rule moves it up and down around Limit and observes
	// the response times. It is 0 in shadow mode, which enforces none.
	InForce int64
	// FloorRT is the response time with fewer than the limit in flight, and LimitRT with more; 0
	// until known.
	FloorRT, LimitRT time.Duration
	Throughput       float64 // units completed per second in the last phase
	// Levels are the calls of each level of criticality, the highest first, of a rule with a shed
	// order; otherwise nil.
	Levels []core.LevelStats
}

// MarshalJSON writes resource, limit, inForce, floorRtMs, limitRtMs, throughputPerSecond, and levels
// if there are any.
func (l LimitStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Resource            string  `json:"resource"`
		Limit               int64   `json:"limit"`
		InForce             int64   `json:"inForce"`
		FloorRTMs           float64 `json:"floorRtMs"`
		LimitRTMs           float64 `json:"limitRtMs"`
		ThroughputPerSecond float64 `json:"throughputPerSecond"`

		Levels []core.LevelStats `json:"levels,omitempty"`
	}{l.Resource, l.Limit, l.InForce, shown.Millis(l.FloorRT), shown.Millis(l.LimitRT), l.Throughput, l.Levels})
}

// maxShown is the number of resources of a rule for which the limit is shown.
const maxShown = 100

// Stats returns the counters of each rule, summed over all resources, and the limits learned.
func (t *table) Stats() []core.RuleStats {
	return t.StatsWith(func(r Rule, controllers []*controller) core.Details {
		if r.Mode == spec.Off || len(controllers) == 0 {
			return nil
		}
		var f Stats
		for i, c := range controllers {
			var levels []core.LevelStats
			if c.judge != nil {
				levels = c.judge.Stats()
				f.add(levels)
			}
			if i < maxShown {
				of := c.limit.figures(c.resource.Name())
				of.Levels = levels
				f.Limits = append(f.Limits, of)
			}
		}
		return f
	})
}

// add adds the calls of one resource.
func (f *Stats) add(levels []core.LevelStats) {
	if f.Levels == nil {
		f.Levels = slices.Clone(levels)
		return
	}
	for i, l := range levels {
		sum := &f.Levels[i]
		sum.Offered, sum.Admitted, sum.Refused, sum.Reserve = sum.Offered+l.Offered, sum.Admitted+l.Admitted, sum.Refused+l.Refused, sum.Reserve+l.Reserve
	}
}

func (l *limit) figures(resource string) LimitStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := LimitStats{
		Resource:   resource,
		Limit:      l.learner.limit(),
		FloorRT:    time.Duration(l.learner.minRT),
		LimitRT:    time.Duration(l.learner.maxRT),
		Throughput: l.learner.throughput,
	}
	if !l.learner.watch {
		f.InForce = l.learner.level
	}
	return f
}

// Lines returns the limit of each resource, and the calls of each level.
func (f Stats) Lines(time.Time) (lines []string) {
	for _, l := range f.Limits {
		lines = append(lines, l.line())
		lines = append(lines, core.LevelLines("levels of "+shown.Label(l.Resource), l.Levels)...)
	}
	return lines
}

func (l LimitStats) line() string {
	line := fmt.Sprintf("limit of %s is %d", shown.Label(l.Resource), l.Limit)
	if l.InForce > 0 {
		line += fmt.Sprintf(", now %d", l.InForce)
	}
	if l.FloorRT > 0 {
		line += "; rt below " + shown.Duration(l.FloorRT)
	}
	if l.LimitRT > 0 {
		line += ", above " + shown.Duration(l.LimitRT)
	}
	if l.Throughput > 0 {
		line += "; " + shown.Number(l.Throughput) + "/s"
	}
	return line
}

// Resources returns nil: a resource's counters need no addition.
func (f Stats) Resources() []core.ResourceDetails { return nil }
