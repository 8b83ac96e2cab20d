package golden

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// checkLimits holds a verdict against the rules in force and the calls in the book,
// whatever Java said: nobody exceeds a limit, and nobody is refused for nothing. It
// comes before the call is in the book.
func (j *judge) checkLimits(m *moment) {
	j.checkLists(m)
	j.checkSigns(m)
	if m.call.blocked {
		if m.got.blockedBy != "param" { // those have their own check
			j.checkRefusal(m)
		}
		return
	}
	longest := m.hot.ours.wait
	for _, x := range m.rules {
		switch {
		case x.Metric == flow.Concurrency:
			if units, _ := m.held(x); units+m.call.units > x.limit() {
				j.fail("rule %q: %d units in flight", x.ID, units+m.call.units)
			}
		case x.queues():
			longest = max(longest, x.MaxWait)
			j.checkSpacing(m, x)
		default:
			if m.lends(x) {
				longest = max(longest, j.config.occupyTimeout()-1)
			}
			j.checkWindow(m, x)
		}
	}
	if m.call.wait > longest {
		j.fail("a wait of %v, the longest is %v", m.call.wait, longest)
	}
}

// checkWindow checks every window that the call counts in, now and later. An
// associated rule only looks at the present one.
func (j *judge) checkWindow(m *moment, x applied) {
	check := func(from, to int64) {
		units, _ := m.book.charged(x.node, from, to, m.now())
		if units += m.call.units; units > x.limit() {
			j.fail("rule %q: %d units in the window from %v", x.ID, units, j.sinceEpoch(from))
		}
	}
	switch {
	case m.call.unsure:
	case x.Relation == flow.Associated:
		if !m.call.borrowed {
			check(x.oldest(m.now()), m.now()+1)
		}
	default:
		first := x.oldest(m.call.chargedAt(x.node))
		for i := range int64(x.Buckets) {
			check(first+i*x.width(), first+i*x.width()+int64(x.Interval))
		}
	}
}

// checkSpacing checks the distance to the call before, where no other rule can have
// made the call wait.
func (j *judge) checkSpacing(m *moment, x applied) {
	alone := m.hot.ours.wait == 0 && !slices.ContainsFunc(m.rules, func(y applied) bool {
		return y.ID != x.ID && (y.queues() || m.lends(y))
	})
	l := j.line(x, m.call)
	if earliest := l.slot + x.cost(m.call.units); alone && l.known && m.call.runs() < earliest-2 {
		j.fail("rule %q: runs at %v, the earliest is %v", x.ID,
			j.sinceEpoch(m.call.runs()), j.sinceEpoch(earliest))
	}
	l.slot, l.known = m.call.runs(), alone
}

// checkRefusal checks that the rule had a reason.
func (j *judge) checkRefusal(m *moment) {
	if m.got.blockedBy == "degrade" {
		return // see checkBreakers
	}
	i := m.index(m.got.rule)
	if i < 0 && (m.got.blockedBy == "authority" || m.got.blockedBy == "system") {
		return // see checkLists and checkSigns
	}
	if i < 0 {
		j.fail("rule %q does not apply", m.got.rule)
		return
	}
	x, n := m.rules[i], m.call.units
	switch {
	case x.Metric == flow.Concurrency:
		if _, units := m.held(x); units+n <= x.limit() {
			j.fail("rule %q refused unit %d in flight", x.ID, units+n)
		}
	case x.queues():
		l := j.line(x, m.call)
		wait := time.Duration(l.slot + x.longestCost(n) - m.call.asked)
		if l.known && wait <= x.MaxWait-2 {
			j.fail("rule %q refused a wait of at most %v", x.ID, wait)
		}
	default:
		units := m.most(x) + n
		if units <= x.leastLimit() {
			j.fail("rule %q refused unit %d", x.ID, units)
		}
	}
}

// held are the units that the gauge of a rule counts at least, and at most.
func (m *moment) held(x applied) (least, most int64) {
	_, running := m.book.inFlight(x.node, m.now())
	queueing, held := m.book.queueing(x.node, m.now())
	return running + held, running + queueing
}

// cost is the least time that units take of the queue.
func (r *activeRule) cost(units int64) int64 {
	return int64(float64(units) * float64(r.Interval) / r.Threshold)
}

// longestCost is what they take when the resource is cold.
func (r *activeRule) longestCost(units int64) int64 {
	if r.Threshold == 0 {
		return int64(flow.MaxMaxWait) * 2
	}
	if r.warms() {
		return r.cost(units) * int64(r.ColdFactor)
	}
	return r.cost(units)
}

// leastLimit is the limit when the resource is cold.
func (r *activeRule) leastLimit() int64 {
	if !r.warms() {
		return r.limit()
	}
	return int64(max(r.Threshold/float64(r.ColdFactor), min(r.Threshold, 1)))
}
