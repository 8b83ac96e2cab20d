package upstream

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// Stats holds the details of a rule.
type Stats struct {
	Paused int `json:"paused"` // resources, or hosts, paused now
	// Pauses lists at most a hundred of them, those first that end last.
	Pauses []Pause `json:"pauses,omitempty"`
	// Missed is the number of answers that were not obeyed, as the rule had paused 1,000 others.
	Missed int64 `json:"missed,omitempty"`
	// Upstreams are the resources of the rule that have had a call, sorted. In JSON they are listed
	// with the resources.
	Upstreams []Status `json:"-"`
}

// Pause is a pause that has not ended.
type Pause struct {
	Name  string    `json:"name"`  // of the resource, or of the host
	Until time.Time `json:"until"` // no call passes before, in UTC
	Open  time.Time `json:"open"`  // all calls pass from then on
}

// Status is the state of a rule at one resource.
type Status struct {
	Kind        core.Kind `json:"kind"` // of the rule
	Rule        string    `json:"rule"` // the rule's ID
	Resource    string    `json:"resource"`
	Mode        spec.Mode `json:"mode"`
	PausedUntil time.Time `json:"pausedUntil,omitzero"` // in UTC; zero without a pause
	Retries     int64     `json:"retries,omitempty"`    // in flight
	Budget      int64     `json:"budget,omitempty"`     // retries that may be in flight now; 0 if the rule has no limit
	Requests    int64     `json:"requests,omitempty"`   // of the throttle, over its interval
	Accepts     int64     `json:"accepts,omitempty"`
	Probability float64   `json:"probability,omitempty"` // with which the throttle refuses a call
}

const maxShown = 100

// Stats returns the counters of each rule, summed over all resources, and its state at each.
func (t *table) Stats() []core.RuleStats {
	now := t.Engine.Now()
	return t.StatsWith(func(r Rule, controllers []*controller) core.Details {
		if r.Mode == spec.Off || len(controllers) == 0 {
			return nil
		}
		var f Stats
		for _, c := range controllers {
			f.Upstreams = append(f.Upstreams, c.status(now))
		}
		f.addPauses(controllers[0].pauses, now)
		return f
	})
}

func (f *Stats) addPauses(p *pauses, now int64) {
	all, missed := p.list(now)
	f.Paused, f.Missed = len(all), missed
	slices.SortStableFunc(all, func(a, b current) int { return cmp.Compare(b.until, a.until) })
	for _, x := range all[:min(len(all), maxShown)] {
		f.Pauses = append(f.Pauses, Pause{x.name, at(x.until), at(x.open)})
	}
}

func at(t int64) time.Time { return time.Unix(0, t).UTC() }

func (c *controller) status(now int64) Status {
	s := Status{Kind: core.KindUpstream, Rule: c.rule.ID, Resource: c.resource, Mode: c.rule.Mode}
	if span, paused := c.pauses.find(c.paused, now); paused && c.rule.Obey {
		s.PausedUntil = at(span.until)
	}
	if r := c.rule.Retries; r.given() {
		calls, retries := c.state.budget.inFlight()
		s.Retries, s.Budget = retries, r.limit(calls)
	}
	if t := c.rule.Throttle; t.given() {
		sum, _ := c.state.throttle.look(now)
		s.Requests, s.Accepts, s.Probability = sum.requests, sum.accepts, sum.probability(t.K)
	}
	return s
}

// Lines returns the pauses, and the resources whose throttle refuses calls.
func (f Stats) Lines(at time.Time) (lines []string) {
	if f.Paused > 0 {
		line := fmt.Sprintf("%d paused: ", f.Paused)
		lines = append(lines, line+shown.Few(len(f.Pauses), func(i int) string {
			p := f.Pauses[i]
			if wait := p.Until.Sub(at); wait > 0 {
				return shown.Label(p.Name) + " for " + shown.Duration(wait)
			}
			return shown.Label(p.Name) + " until now"
		}))
	}
	if f.Missed > 0 {
		lines = append(lines, fmt.Sprintf("%d answers not obeyed: %d others are paused", f.Missed, maxPaused))
	}
	var busy []*Status
	for i := range f.Upstreams {
		if s := &f.Upstreams[i]; s.Probability > 0 || s.Retries > 0 {
			busy = append(busy, s)
		}
	}
	if len(busy) > 0 {
		lines = append(lines, shown.Few(len(busy), func(i int) string { return busy[i].text() }))
	}
	return lines
}

// text describes the retries and the throttle.
func (s *Status) text() string {
	var parts []string
	if s.Probability > 0 {
		parts = append(parts, fmt.Sprintf("refuses %s, %d of %d accepted", percent(s.Probability), s.Accepts, s.Requests))
	}
	if s.Retries > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d retries in flight", s.Retries, s.Budget))
	}
	return shown.Label(s.Resource) + ": " + strings.Join(parts, ", ")
}

// Resources returns the resources of the rule, as [*Status].
func (f Stats) Resources() []core.ResourceDetails {
	list := make([]core.ResourceDetails, len(f.Upstreams))
	for i := range list {
		list[i] = &f.Upstreams[i]
	}
	return list
}

// About returns the name of the resource.
func (s *Status) About() string { return s.Resource }

// Mark returns whether calls are refused: by a pause, by a throttle, or because the retries in flight
// are as many as may be. A rule in shadow mode makes no difference to calls.
func (s *Status) Mark() (text string, urgency int) {
	switch {
	case s.Mode != spec.Enforce:
	case !s.PausedUntil.IsZero():
		return "paused", 3
	case s.Probability > 0:
		return "throttled", 2
	case s.Budget > 0 && s.Retries >= s.Budget:
		return "no retries left", 1
	}
	return "", 0
}
