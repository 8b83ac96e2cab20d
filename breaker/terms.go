package breaker

import (
	"slices"

	"github.com/penstock-go/penstock/internal/engine"
)

// terms is the part of a rule's revision that the machine needs.
type terms struct {
	Rule
	resource string
	tell     func(Change) // nil if there are no listeners
}

// trips reports whether the bad calls open the breaker, and the measured value. It divides, since a
// quotient such as 7/100 equals the threshold 0.07 exactly; a product may be slightly off.
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
// last of MinCalls. More of them only lower the share, and a good call ends a run of failures.
func (t *terms) goodMayTrip(all tally) bool {
	if t.Strategy == ConsecutiveErrors {
		return false
	}
	all.calls = max(all.calls, int64(t.MinCalls))
	_, trips := t.trips(all)
	return trips
}

// verdict is the judgement on the resource at the end of a call.
type verdict uint8

const (
	good    verdict = iota
	bad             // the call counts against the resource
	neutral         // not counted; such a probe counts as if it had not been one
	// blind is a call without a response time under a strategy that depends on it: the call isn't
	// counted, but a probe keeps its slot all the same, and counts as good.
	blind
)

// judge returns the verdict at the end of a call. A neutral call that took longer than SlowRT was
// slow all the same: it would have taken longer still.
func (t *terms) judge(end End) verdict {
	if t.Strategy != SlowRatio {
		switch {
		case end.Failed:
			return bad
		case end.Neutral:
			return neutral
		}
		return good
	}
	switch {
	case end.Took > t.SlowRT:
		return bad
	case end.Neutral:
		return neutral
	case end.Took == engine.Untimed:
		return blind
	}
	return good
}

// adopt continues under another revision of the rule. The state stays, and a pause under way lasts
// as long as the new rule specifies.
func (m *machine) adopt(t *terms, now int64) {
	m.lock()
	defer m.unlock()
	now = m.advanceLocked(now)
	old := m.terms.Load()
	switch {
	case old.Strategy != t.Strategy || old.SlowRT != t.SlowRT: // the calls counted were others
		m.results = newStatistics(&t.Rule)
	case old.Interval != t.Interval || old.Buckets != t.Buckets:
		m.results = m.results.reshaped(&t.Rule, now)
	}
	m.probes = slices.Grow(m.probes, max(0, t.Probes-len(m.probes)))
	m.terms.Store(t)
	switch state, _ := m.state(); state {
	case Open:
		if m.gate.Load() != always { // it was released by hand
			m.gate.Store(m.since.Load() + int64(t.Recovery))
		}
	case HalfOpen:
		m.shut()
	}
}
