package flow

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// Figures are the details of a rule whose threshold moves with the memory in use. Other
// flow rules have none.
type Figures struct {
	Threshold float64 `json:"threshold"` // that holds at the moment
	// Memory is the use that it goes by, as it was when it was sampled last: a share, or
	// bytes if the rule has its marks in bytes; 0 if it can't be read.
	Memory float64 `json:"memory,omitempty"`
}

// Figures says what each rule has done, over all resources, and what holds of a threshold
// that moves.
func (t *Table) Figures() []core.RuleFigures {
	return t.FiguresWith(func(r Rule, _ []*controller) core.Details {
		if !r.watchesMemory() || r.Mode == spec.Off {
			return nil
		}
		m := newMemoryLimit(t.Engine.Sampler(), r)
		return Figures{m.threshold(), max(0, m.reading.Value())}
	})
}

// Lines tell the threshold, and why it is that.
func (f Figures) Lines(time.Time) []string {
	return []string{"threshold " + shown.Number(f.Threshold) + ", " + f.memory()}
}

func (f Figures) memory() string {
	switch {
	case f.Memory == 0:
		return "memory not known"
	case f.Memory <= 1:
		return "memory " + shown.Number(100*f.Memory) + " %"
	}
	return "memory " + shown.Number(f.Memory/(1<<20)) + " MiB"
}

// Resources are none: the threshold is the same for all.
func (f Figures) Resources() []core.ResourceDetails { return nil }
