package breaker

import (
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
	m.lock()
	defer m.unlock()
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

// idle reports whether the breaker can be forgotten if its resource is not in use: it
// remembers nothing, or would let the next call in anyway.
func (m *machine) idle(now int64) bool {
	m.lock()
	defer m.unlock()
	switch state, _ := m.state(); state {
	case Closed:
		return m.results.at(now) == tally{}
	case ForcedOpen, ForcedClosed:
		return false
	}
	return now >= m.gate.Load()
}

// retryAfter is how long until somebody is let in, 0 if that can't be told.
func (m *machine) retryAfter(now int64) time.Duration {
	if gate := m.gate.Load(); gate > now && gate != never {
		return time.Duration(gate - now)
	}
	return 0
}
