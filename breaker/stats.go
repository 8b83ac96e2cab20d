package breaker

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// Stats holds the details of a rule.
type Stats struct {
	States map[State]int `json:"states"` // number of breakers in each state
	// Breakers has one breaker for each resource that needed one, sorted by resource. In JSON they
	// are listed with their resources.
	Breakers []Status `json:"-"`
}

// Stats returns the counters of each rule, summed over all resources, and the states of its
// breakers.
func (t *table) Stats() []core.RuleStats {
	now := t.Engine.Now()
	return t.StatsWith(func(r Rule, controllers []*controller) core.Details {
		if r.Mode == spec.Off || len(controllers) == 0 {
			return nil
		}
		f := Stats{make(map[State]int), make([]Status, len(controllers))}
		for i, c := range controllers {
			f.Breakers[i] = c.status(now)
			f.States[f.Breakers[i].State]++
		}
		return f
	})
}

// Lines returns a line for each breaker that is not closed.
func (f Stats) Lines(at time.Time) []string {
	var list []*Status
	for i := range f.Breakers {
		if s := &f.Breakers[i]; s.State != Closed {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{shown.Few(len(list), func(i int) string { return list[i].Text(shown.Label(list[i].Resource), at) })}
}

// Resources returns the breakers, each with its resource, as [*Status].
func (f Stats) Resources() []core.ResourceDetails {
	list := make([]core.ResourceDetails, len(f.Breakers))
	for i := range list {
		list[i] = &f.Breakers[i]
	}
	return list
}

// About returns the name of the resource.
func (s *Status) About() string { return s.Resource }

// severity lists the states except Closed, from least to most severe for calls.
var severity = []State{ForcedClosed, Recovering, HalfOpen, Open, ForcedOpen}

// Mark returns the state, unless it is closed. A breaker in shadow mode makes no difference to
// calls.
func (s *Status) Mark() (text string, urgency int) {
	if urgency = 1 + slices.Index(severity, s.State); urgency == 0 || s.Mode != spec.Enforce {
		return "", 0
	}
	return "breaker " + s.State.String(), urgency
}

// Text describes a breaker that is not closed, as of the given time. name identifies the breaker
// for people.
func (s *Status) Text(name string, at time.Time) string {
	text := fmt.Sprintf("%s %v for %s", name, s.State, shown.Duration(at.Sub(s.Since)))
	if s.Neutral > 0 {
		text += fmt.Sprintf(", %d neutral", s.Neutral)
	}
	switch wait := s.RetryAt.Sub(at); {
	case s.Probes > 0:
		return text + fmt.Sprintf(", %d probes in flight", s.Probes)
	case !s.RetryAt.IsZero() && wait > 0:
		return text + ", next probe in " + shown.Duration(wait)
	case s.State == Open || s.State == HalfOpen:
		return text + ", the next call is a probe"
	}
	return text
}
