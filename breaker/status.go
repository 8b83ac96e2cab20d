package breaker

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// Status is what one breaker does at the moment.
type Status struct {
	Kind     core.Kind `json:"kind"` // of the rule
	Rule     string    `json:"rule"` // its ID
	Resource string    `json:"resource"`
	Mode     spec.Mode `json:"mode"`
	State    State     `json:"state"`
	Since    time.Time `json:"since,omitzero"` // when the state began, in UTC; zero if it never was another
	// RetryAt is when the next probe is let in, in UTC: in the state Open, and in HalfOpen
	// while all probes are out. Zero in other states.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Calls is how many calls completed in the last interval and count; Bad is how many of them
	// failed or were slow. For ConsecutiveErrors both are the failures since a call went well.
	Calls int64 `json:"calls"`
	Bad   int64 `json:"bad"`
	// Neutral is how many calls have ended since the breaker has been in this state that say nothing
	// about the resource and don't count: their own context was cancelled, or a nested call was refused.
	Neutral int64 `json:"neutral,omitempty"`
	// Probes is how many probes are out and waited for.
	Probes int `json:"probes,omitempty"`
	// Why is why the breaker went to its state, in words; "" if it never was in another.
	Why string `json:"why,omitempty"`
	// Trip is what it had counted when it opened. It stays until the breaker is closed, or is forced;
	// then it is zero.
	Trip Trip `json:"trip,omitzero"`
}

// Trip is what a breaker had counted when it opened: unlike the counts of [Status], which begin anew
// with every state, it stays.
type Trip struct {
	At    time.Time `json:"at"`    // in UTC
	Value float64   `json:"value"` // that reached the threshold: a share, or a number of calls
	Calls int64     `json:"calls"` // as in Status
	Bad   int64     `json:"bad"`
}

// Status lists the breakers in the order of their rules, then by resource. It omits those of rules
// that are off and those that no call has needed yet.
func (t *table) Status() []Status {
	var list []Status
	t.each(func(c *controller) {
		if c.rule.Mode != spec.Off {
			list = append(list, c.status(t.Engine.Now()))
		}
	})
	return list
}

func (c *controller) status(now int64) Status {
	s := c.machine.status(now)
	s.Kind, s.Rule, s.Resource, s.Mode = core.KindBreaker, c.rule.ID, c.resource, c.rule.Mode
	return s
}

// status is what the machine does; the caller fills in whose it is.
func (m *machine) status(now int64) Status {
	s, _ := m.statusAndCause(now)
	return s
}

// statusAndCause is status, and why the machine is in its state: the zero cause if it was never in
// another.
func (m *machine) statusAndCause(now int64) (Status, cause) {
	m.lock()
	defer m.unlock()
	now = max(m.latest, now)
	state, number := m.state()
	sum := m.results.at(now)
	s := Status{State: state, Calls: sum.calls, Bad: sum.bad, Neutral: m.neutral}
	if number > 1 {
		s.Since = time.Unix(0, m.since.Load()).UTC()
		s.Why = m.cause.of(state)
	}
	if m.trip != nil {
		s.Trip = *m.trip
	}
	for _, p := range m.probes {
		if now < p.until {
			s.Probes++
		}
	}
	if gate := m.gate.Load(); gate != always && gate != never {
		s.RetryAt = time.Unix(0, gate).UTC()
	}
	return s, m.cause
}

// idle reports whether the breaker can be forgotten if its resource is not in use: it
// remembers nothing, or would let the next call in anyway. A run of failures, which never ends by
// itself, doesn't keep a resource: names that fail once each would fill all places.
func (m *machine) idle(now int64) bool {
	m.lock()
	defer m.unlock()
	switch state, _ := m.state(); state {
	case Closed:
		return m.results.ring == nil || m.results.at(now) == tally{}
	case ForcedOpen, ForcedClosed:
		return false
	}
	return now >= m.gate.Load()
}

// retryAfter is how long until a call is let in. It is not known while the breaker is forced open,
// or while it recovers, when it depends on how many calls arrive.
func (m *machine) retryAfter(now int64) (wait time.Duration, known bool) {
	switch state, _ := m.state(); state {
	case ForcedOpen, Recovering:
		return 0, false
	case Open, HalfOpen:
		switch gate := m.gate.Load(); { // of the state, or of a later one, which may be forced
		case gate == never:
			return 0, false
		case gate > now:
			return time.Duration(gate - now), true
		}
	}
	return 0, true
}
