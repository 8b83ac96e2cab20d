package breaker

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// Status is the current state of one breaker.
type Status struct {
	Kind     core.Kind `json:"kind"` // of the rule
	Rule     string    `json:"rule"` // the rule's ID
	Resource string    `json:"resource"`
	Mode     spec.Mode `json:"mode"`
	State    State     `json:"state"`
	Since    time.Time `json:"since,omitzero"` // start of the state, in UTC; zero if it was never in another
	// RetryAt is the time of the next probe, in UTC: in the state Open, and in HalfOpen while
	// all probes are in flight. Zero in other states.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Calls is the number of calls that completed in the last interval and count; Bad is the number
	// of them that failed or were slow. For ConsecutiveErrors both are the failures since the last
	// success.
	Calls int64 `json:"calls"`
	Bad   int64 `json:"bad"`
	// Neutral is the number of calls since the start of this state that ended without a result for
	// the resource and don't count: their own context was cancelled, or a nested call was refused.
	Neutral int64 `json:"neutral,omitempty"`
	// Probes is the number of probes in flight that have not timed out.
	Probes int `json:"probes,omitempty"`
	// Why is the reason for the state, in words; "" if the breaker was never in another.
	Why string `json:"why,omitempty"`
	// Trip holds the counts that opened the breaker, until it closes or is forced; then it is zero.
	Trip Trip `json:"trip,omitzero"`
}

// Trip holds the counts that opened a breaker. They stay, unlike the counts of [Status], which
// restart with every state.
type Trip struct {
	At    time.Time `json:"at"`    // in UTC
	Value float64   `json:"value"` // the share, or number of calls, that reached the threshold
	Calls int64     `json:"calls"` // as in Status
	Bad   int64     `json:"bad"`
}

// Status lists the breakers in the order of their rules, then by resource. It omits breakers of
// rules that are off and breakers that no call has needed yet.
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

// status returns the state of the machine; the caller fills in the fields that identify it.
func (m *machine) status(now int64) Status {
	s, _ := m.statusAndCause(now)
	return s
}

// statusAndCause is like status, but also returns the reason for the state: the zero cause if the
// machine was never in another state.
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

// idle reports whether the breaker can be dropped with an unused resource: it remembers nothing, or
// would admit the next call anyway. A run of failures, which never expires, doesn't keep a
// resource: names that fail once each would fill all places.
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

// retryAfter returns the time until a call is admitted. It is unknown while the breaker is forced
// open, and while it recovers, when it depends on the calls that arrive.
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
