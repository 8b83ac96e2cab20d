package breaker

// countClosed is complete for a call that leaves the breaker closed, as nearly all do: it
// has no change to make room for. It reports false, having counted nothing, if the state
// is another or the breaker may trip.
func (m *machine) countClosed(number uint64, now int64, bad bool) bool {
	if bad {
		return false
	}
	m.mu.Lock()
	state, present := m.state()
	ok := state == Closed && number == present && m.results.good(now)
	if ok {
		m.results.add(m.advance(now), false)
	}
	m.mu.Unlock()
	return ok
}

// complete counts the end of a call, unless the state that let it in is over. A probe
// that is no longer waited for still counts.
func (m *machine) complete(number uint64, now int64, bad bool) Change {
	if state, present := m.state(); number < present || state == ForcedClosed {
		return Change{} // and states only become newer
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.advance(now)
	state, present := m.state()
	t := m.terms.Load()
	switch {
	case number < present:
	case state == Closed || state == Recovering:
		all := m.results.add(now, bad)
		if value, trips := t.trips(all); trips && !m.barred {
			return m.enter(Open, now, value)
		}
	case state == HalfOpen && bad:
		return m.enter(Open, now, 1)
	case state == HalfOpen:
		if m.good++; m.good < t.Probes {
			m.drop(number)
			return Change{}
		}
		if t.Ramp > 0 {
			return m.enter(Recovering, now, 0)
		}
		return m.enter(Closed, now, 0)
	}
	return Change{}
}
