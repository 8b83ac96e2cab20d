package breaker

import (
	"cmp"
	"slices"
)

// probe is the lease of one probe: it holds its slot until then.
type probe struct {
	number uint64
	until  int64
}

// shut sets the gate of the half-open state: while all probe slots are taken it is shut, until
// enough probes time out to free one. The probes are sorted by that time.
func (m *machine) shut() {
	over := len(m.probes) - max(1, m.terms.Load().Probes-m.good)
	if over < 0 {
		m.gate.Store(always)
		return
	}
	m.gate.Store(m.probes[over].until)
}

// wait adds a probe to those in flight.
func (m *machine) wait(p probe) {
	i, _ := slices.BinarySearchFunc(m.probes, p.until+1, func(q probe, until int64) int { return cmp.Compare(q.until, until) })
	m.probes = slices.Insert(m.probes, i, p)
	m.shut()
}

// holds reports whether an admission is still valid: its state is the current one, and its probe,
// if any, has not timed out.
func (m *machine) holds(number uint64) bool {
	m.lock()
	defer m.unlock()
	state, present := m.state()
	if number != present {
		return number > present && slices.ContainsFunc(m.probes, func(p probe) bool { return p.number == number })
	}
	return state == Closed || state == ForcedClosed || state == Recovering
}

// giveBack releases the probe of a call that doesn't run: its slot is free immediately. The state
// stays as it is, so calls refused elsewhere, however many, change it only once.
func (m *machine) giveBack(number uint64) {
	m.lock()
	defer m.unlock()
	m.drop(number)
}

// drop removes a probe.
func (m *machine) drop(number uint64) {
	if state, present := m.state(); state != HalfOpen || number <= present {
		return
	}
	m.probes = slices.DeleteFunc(m.probes, func(p probe) bool { return p.number == number })
	m.shut()
}
