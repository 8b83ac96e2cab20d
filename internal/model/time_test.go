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
		m.twin.pass(next)
		m.wake(t, next)
	}
	m.tick(t, to)
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

func (m *machine) wake(t *rapid.T, c *call) {
	h := m.open[c]
	close(h.nap.wake)
	got := <-h.result
	m.compare(t, c, got)
	h.entry = got.entry
}
