package model

import (
	"time"

	"pgregory.net/rapid"
)

// advance moves the clock and lets those run whose wait is over, one by one.
func (m *machine) advance(t *rapid.T) { m.advanceBy(t, step.Draw(t, "time")) }

func (m *machine) advanceBy(t *rapid.T, d time.Duration) {
	to := m.clock.Now() + int64(d)
	for {
		var next *call
		for _, c := range m.twin.calls { // ties in order of asking
			if c.state == waiting && m.open[c].due <= to && (next == nil || m.open[c].due < m.open[next].due) {
				next = c
			}
		}
		if next == nil {
			break
		}
		m.tick(t, m.open[next].due)
		close(m.open[next].nap.wake)
		m.follow(t, next)
		m.settle(t)
	}
	m.tick(t, to)
	m.late(t)
}

// late looks whether anybody sleeps who could run. Where the clock is set it can't be told.
func (m *machine) late(t *rapid.T) {
	for _, c := range m.twin.calls {
		if c.state == waiting && c.wake <= m.twin.now && !m.settable {
			t.Fatalf("%v sleeps for %v since %v", c, m.open[c].nap.wait, time.Duration(m.twin.now-c.wake))
		}
	}
}

// settle has those look again who were told to.
func (m *machine) settle(t *rapid.T) {
	for again := true; again; {
		again = false
		for _, c := range m.twin.calls {
			if c.state == waiting && m.open[c].nap.told() {
				m.follow(t, c)
				again = true
			}
		}
	}
}

// follow sees what a call does that wakes: it sleeps again, or runs.
func (m *machine) follow(t *rapid.T, c *call) {
	h := m.open[c]
	got, sleeps := m.event(h)
	if sleeps {
		return
	}
	if c.wake > m.twin.now && !m.settable {
		t.Fatalf("%v runs %v before its time", c, time.Duration(c.wake-m.twin.now))
	}
	m.twin.pass(c)
	m.compare(t, c, got)
	h.entry = got.entry
}

// event waits until a call sleeps, or has its answer. Others that were told may go to sleep
// meanwhile.
func (m *machine) event(h *handle) (got result, sleeps bool) {
	for {
		select {
		case got = <-h.result:
			return got, false
		case n := <-m.clock.asleep:
			n.of.nap, n.of.due = n, m.clock.Now()+int64(n.wait)
			if n.of == h {
				return got, true
			}
		}
	}
}

// grain is by how much the engine's time moves at least where the clock can be set:
// it takes no note of less, see core.
const grain = int64(200 * time.Microsecond)

// tick moves the clock forward. The engine's time moves as far, or less if the clock
// was set back before.
func (m *machine) tick(t *rapid.T, to int64) {
	from := m.clock.Now()
	to = max(to, from)
	m.clock.now.Store(to)
	passed := m.guard.Engine().Now() - m.twin.now
	if m.settable && passed > 0 && passed < grain {
		to += grain
		m.clock.now.Store(to)
		passed = m.guard.Engine().Now() - m.twin.now
	}
	if passed < 0 || passed > to-from || passed != to-from && !m.settable {
		t.Fatalf("the clock moved by %v, the engine's time by %v", time.Duration(to-from), time.Duration(passed))
	}
	m.twin.now += passed
}

// setBack sets the clock back, which is no time. Timers take no note of it.
func (m *machine) setBack(t *rapid.T) {
	d := int64(back.Draw(t, "back"))
	m.clock.now.Add(-d)
	for _, h := range m.open {
		h.due -= d
	}
	if passed := m.guard.Engine().Now() - m.twin.now; passed != 0 {
		t.Fatalf("the clock was set back by %v, the engine's time moved by %v", time.Duration(d), time.Duration(passed))
	}
}
