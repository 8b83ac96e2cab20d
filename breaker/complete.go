package breaker

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// Complete counts the end of a call that was let in under that number. Listeners are told last: one
// that ends the goroutine loses nothing of this breaker, and the completers after it are still
// called by the engine.
func (m *machine) Complete(inv *core.Invocation, number int64) {
	rt := inv.RT()
	if !m.countGood(uint64(number), inv.Now(), rt, inv.Failed()) {
		m.complete(uint64(number), inv.Now(), rt, inv.Failed()).notify()
	}
}

// complete counts the end of a call, unless the state that let it in is over, or the call says
// nothing about what the terms judge by. A probe that is no longer waited for still counts. Whether
// the call ended badly is decided by the terms that it is counted under.
func (m *machine) complete(number uint64, now int64, rt time.Duration, failed bool) Change {
	if state, present := m.state(); number < present || state == ForcedClosed {
		return Change{} // states only become newer
	}
	m.lock()
	defer m.unlock()
	state, present := m.state()
	if number < present {
		return Change{}
	}
	now = m.advance(now)
	t := m.terms.Load()
	bad := t.bad(rt, failed)
	switch {
	case state != HalfOpen && t.blindTo(rt):
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
