package model

import (
	"slices"
	"time"
)

// advance moves the clock and runs the calls whose wait has ended, one by one.
func (m *machine) advance() { m.advanceBy(m.step()) }

func (m *machine) advanceBy(d time.Duration) {
	to := m.clock.Now() + int64(d)
	if c := m.pick(Waiting); m.early && c != nil && m.often(30) && !c.mayWake() {
		m.note("wakes early: %v", c)
		m.wake(c)
	}
	var oversleep []*Call
	for {
		var next *Call
		for _, c := range m.model.calls { // ties in order of arrival
			if c.State == Waiting && m.open[c].due <= to && (next == nil || m.open[c].due < m.open[next].due) && !has(oversleep, c) {
				next = c
			}
		}
		if next == nil {
			break
		}
		if m.late && m.often(30) {
			oversleep = append(oversleep, next)
			continue
		}
		m.tick(m.open[next].due)
		m.wake(next)
	}
	m.tick(to)
	m.note("%v later", d)
	for _, c := range oversleep {
		if c.State == Waiting && m.open[c].due <= to {
			m.wake(c)
		}
	}
	m.overdue()
}

func has(calls []*Call, c *Call) bool {
	return slices.Contains(calls, c)
}

func (m *machine) wake(c *Call) {
	m.follow(c)
	m.settle()
}

// ready reports whether a waiting call has nothing left to wait for.
func (m *machine) ready(c *Call) bool {
	if c.queued != nil && c.queued.attended {
		return c.queued.granted || c.queued.lost || c.queued.until <= m.model.now
	}
	return c.wake <= m.model.now
}

// overdue looks for a sleeping call that could run. If the clock is set, this can't be decided.
func (m *machine) overdue() {
	for _, c := range m.model.calls {
		if c.State == Waiting && !m.settable && !m.late && m.ready(c) {
			m.fail("%v sleeps for %v", c, m.open[c].nap.wait)
		}
	}
}

// settle lets notified calls look again.
func (m *machine) settle() {
	for again := true; again; {
		again = false
		for _, c := range m.model.calls {
			if c.State == Waiting && m.open[c].nap.notified() {
				m.follow(c)
				again = true
			}
		}
	}
}

// follow checks what a waking call does: it sleeps again, or runs.
func (m *machine) follow(c *Call) {
	h := m.open[c]
	ready, turn, slept := m.ready(c), c.queued == nil || !c.queued.attended, h.slept
	if h.nap.notified() {
		slept = m.model.now
	}
	close(h.nap.wake)
	got, sleeps := m.event(h)
	if turn {
		m.model.Look(c, slept)
	}
	switch {
	// A call that has its permit may sleep briefly to notify others in a queue that they have
	// advanced.
	case sleeps && c.queued != nil && turn && (ready || !c.queued.granted && c.queued.until != c.wake && h.nap.wait == time.Duration(c.queued.until-m.model.now)):
		if !m.model.Turned(c) {
			m.fail("%v goes back to sleep for %v", c, h.nap.wait)
		}
		return
	case sleeps:
		return
	case !ready && !m.settable && !m.early:
		m.fail("%v runs %v before its time: %v", c, time.Duration(c.wake-m.model.now), got.err)
	}
	m.model.Run(c)
	m.note("after its wait %s: %v", c.verdict(), c)
	m.compare(c, got)
	if h.entry = got.entry; got.err != nil {
		delete(m.open, c)
	}
}

// event waits until a call sleeps or returns. Other notified calls may go to sleep before it does.
func (m *machine) event(h *handle) (got result, sleeps bool) {
	for {
		select {
		case got = <-h.result:
			return got, false
		case n := <-m.clock.asleep:
			n.of.nap, n.of.due, n.of.slept = n, m.clock.Now()+int64(n.wait), m.model.now+int64(n.wait)
			if n.of == h {
				return got, true
			}
		}
	}
}

// grain is the minimum step of the engine's time if the clock can be set: it ignores smaller steps;
// see core.
const grain = int64(200 * time.Microsecond)

// tick moves the clock forward. The engine's time moves as far, or less if the clock was set back
// before.
func (m *machine) tick(to int64) {
	from := m.clock.Now()
	to = max(to, from)
	m.clock.now.Store(to)
	passed := m.guard.Engine().Now() - m.model.now
	if m.settable && passed > 0 && passed < grain {
		to += grain
		m.clock.now.Store(to)
		passed = m.guard.Engine().Now() - m.model.now
	}
	if passed < 0 || passed > to-from || passed != to-from && !m.settable {
		m.fail("the clock moved by %v, the engine's time by %v", time.Duration(to-from), time.Duration(passed))
	}
	m.model.Advance(m.model.now + passed)
}

// setBack sets the clock back, which does not count as time. Timers ignore it.
func (m *machine) setBack() {
	d := int64(pick(m.drawer, ms, 9*ms, 11*ms, 100*ms, 499*ms, 500*ms, time.Second, 10*time.Second, time.Hour, 365*24*time.Hour))
	m.clock.now.Add(-d)
	m.note("the clock is set back by %v", time.Duration(d))
	for _, h := range m.open {
		h.due -= d
	}
	if passed := m.guard.Engine().Now() - m.model.now; passed != 0 {
		m.fail("the clock was set back by %v, the engine's time moved by %v", time.Duration(d), time.Duration(passed))
	}
}
