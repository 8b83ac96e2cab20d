package adaptive

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// Stats are the details of a rule: what it has learned.
type Stats struct {
	// Limits are those of single resources, sorted by name, a hundred at most.
	Limits []LimitStats `json:"limits"`
}

// LimitStats is what a rule has learned of one resource. As JSON, response times are in
// milliseconds: floorRtMs and limitRtMs.
type LimitStats struct {
	Resource string
	Limit    int64 // the learned one, in units
	// InForce is the limit at the moment: the rule moves it up and down around Limit and watches
	// what the response times do. It is 0 in shadow mode, which enforces none.
	InForce int64
	// FloorRT is how long a call takes when fewer than the limit are in flight, and LimitRT when
	// more are; 0 until that is known.
	FloorRT, LimitRT time.Duration
	Throughput       float64 // units completed per second when the rule last looked
}

// MarshalJSON writes resource, limit, inForce, floorRtMs, limitRtMs and
// throughputPerSecond.
func (l LimitStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Resource            string  `json:"resource"`
		Limit               int64   `json:"limit"`
		InForce             int64   `json:"inForce"`
		FloorRTMs           float64 `json:"floorRtMs"`
		LimitRTMs           float64 `json:"limitRtMs"`
		ThroughputPerSecond float64 `json:"throughputPerSecond"`
	}{l.Resource, l.Limit, l.InForce, shown.Millis(l.FloorRT), shown.Millis(l.LimitRT), l.Throughput})
}

// maxShown is the number of resources of a rule for which the limit is shown.
const maxShown = 100

// Stats says what each rule has done, over all resources, and what it has learned of
// each.
func (t *table) Stats() []core.RuleStats {
	return t.StatsWith(func(r Rule, controllers []*controller) core.Details {
		if r.Mode == spec.Off || len(controllers) == 0 {
			return nil
		}
		var f Stats
		for _, c := range controllers[:min(len(controllers), maxShown)] {
			f.Limits = append(f.Limits, c.limit.figures(c.resource.Name()))
		}
		return f
	})
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

// Lines gives the limit of each resource.
func (f Stats) Lines(time.Time) []string {
	lines := make([]string, len(f.Limits))
	for i, l := range f.Limits {
		lines[i] = l.line()
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

// Resources returns none: nothing needs to be shown beside a resource's calls.
func (f Stats) Resources() []core.ResourceDetails { return nil }
