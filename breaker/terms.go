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
	tell     func(Change) // nil if not wanted
}

// trips reports whether that many bad calls open the breaker, and what was measured. It divides,
// since a quotient such as 7/100 equals the threshold 0.07 exactly; a product may be slightly off.
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

// goodMayTrip reports whether further good calls could open the breaker: one of them may be the
// last of MinCalls. Any beyond that only make the share smaller, and a good call ends a run of
// failures.
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

// blindTo reports whether a call that took rt says nothing: it has no response time, which is what
// calls are judged by. As a probe it is waited for all the same, and counts as good.
func (t *terms) blindTo(rt time.Duration) bool { return rt == core.Untimed && t.Strategy == SlowRatio }

// adopt continues under another revision of the rule. The state stays, and a pause under way lasts
// as long as the new rule says.
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
