package breaker

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
)

// terms are what a revision of a rule asks of the machine.
type terms struct {
	Rule
	resource string
	tell     func(Change) // nil if nobody wants to know
}

// trips reports whether so many bad calls open the breaker, and what was measured. It
// divides, since a quotient such as 7/100 is the same number as the threshold 0.07;
// a product may be a hair off.
func (t *terms) trips(all tally) (value float64, trips bool) {
	if all.bad == 0 || all.calls < int64(t.MinCalls) {
		return 0, false
	}
	value = float64(all.bad)
	if !t.Strategy.counts() {
		value /= float64(all.calls)
	}
	return value, value >= t.Threshold
}

// goodMayTrip reports whether good calls that come on top could open the breaker: one of
// them may be the last of MinCalls. More than those only make the share smaller. A row of
// failures they end.
func (t *terms) goodMayTrip(all tally) bool {
	if t.Strategy == ConsecutiveErrors {
		return false
	}
	all.calls = max(all.calls, int64(t.MinCalls))
	_, trips := t.trips(all)
	return trips
}

// bad reports whether a call that ended counts against the resource.
func (t *terms) bad(rt time.Duration, failed bool) bool {
	if t.Strategy == SlowRatio {
		return rt > t.SlowRT
	}
	return failed
}

// blindTo reports whether a call that took rt tells nothing: it has no response time, and that
// is what calls are judged by. As a probe it is waited for all the same, and ends well.
func (t *terms) blindTo(rt time.Duration) bool { return rt == core.Untimed && t.Strategy == SlowRatio }

// adopt goes on under another revision of the rule. The state stays, and a pause that
// it is in takes as long as the new rule says.
func (m *machine) adopt(t *terms, now int64) {
	m.lock()
	defer m.unlock()
	now = m.advance(now)
	old := m.terms.Load()
	switch {
	case old.Strategy != t.Strategy || old.SlowRT != t.SlowRT: // another thing was counted
		m.results = newStatistics(&t.Rule)
	case old.Interval != t.Interval || old.Buckets != t.Buckets:
		m.results = m.results.reshaped(&t.Rule, now)
	}
	m.probes = slices.Grow(m.probes, max(0, t.Probes-len(m.probes)))
	m.terms.Store(t)
	switch state, _ := m.state(); state {
	case Open:
		if m.gate.Load() != always { // it was let go of by hand
			m.gate.Store(m.since.Load() + int64(t.Recovery))
		}
	case HalfOpen:
		m.shut()
	}
}
