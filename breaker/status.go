package breaker

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core"
)

// Status is what one breaker does at the moment.
type Status struct {
	Rule     string // its ID
	Resource string
	State    State
	Since    time.Time // when the state began; zero if it never was another
	// RetryAt is when the next probe is let in: in the state Open, and in HalfOpen
	// while all probes are out. Zero in other states.
	RetryAt time.Time
	// Calls that completed in the last interval and count, and those of them that failed
	// or were slow.
	Calls, Bad int64
	// Probes are out and waited for.
	Probes int
}

// Status lists the breakers in the order of their rules, then by resource. Those of
// rules that are off are left out, and those that no call has needed yet.
func (t *Table) Status() []Status {
	var list []Status
	t.each(func(c *controller) {
		if c.rule.Mode != core.Off {
			list = append(list, c.machine.status(c.rule.ID, c.resource, t.engine.Now()))
		}
	})
	return list
}

// Figures is the status as the tree shows it.
func (s Status) Figures(mode core.Mode) core.BreakerFigures {
	return core.BreakerFigures{
		Rule: s.Rule, Resource: s.Resource, State: s.State.String(), Mode: mode, Since: s.Since, RetryAt: s.RetryAt,
		Calls: s.Calls, Bad: s.Bad, Probes: s.Probes,
	}
}

func (m *machine) status(rule, resource string, now int64) Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = max(m.latest, now)
	state, number := m.state()
	sum := m.results.at(now)
	s := Status{Rule: rule, Resource: resource, State: state, Calls: sum.calls, Bad: sum.bad}
	if number > 1 {
		s.Since = time.Unix(0, m.since.Load())
	}
	for _, p := range m.probes {
		if now < p.until {
			s.Probes++
		}
	}
	if gate := m.gate.Load(); gate != always && gate != never {
		s.RetryAt = time.Unix(0, gate)
	}
	return s
}

// Force makes the breaker of a rule on a resource, or with an empty resource all of
// the rule, refuse or admit every call, until it is forced otherwise or let go of by
// [NotForced]. That lasts as long as the rule does: loading rules doesn't end it.
func (t *Table) Force(rule, resource string, f Force) error {
	if f > ForceClosed {
		return fmt.Errorf("breaker: %v is unknown: use ForceOpen, ForceClosed or NotForced", f)
	}
	found := false
	if t == nil {
		return fmt.Errorf("breaker: no rules are loaded")
	}
	t.each(func(c *controller) {
		if c.rule.ID == rule && (resource == "" || resource == c.resource) {
			found = true
			c.machine.force(f, t.engine.Now()).notify()
		}
	})
	if !found {
		return fmt.Errorf("breaker: rule %q has no breaker on %q: look at the list of breakers; one of a rule for many resources is there after the first call", rule, resource)
	}
	return nil
}
