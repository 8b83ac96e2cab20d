package breaker

import (
	"time"

	"github.com/penstock-go/penstock/internal/engine"
)

// Complete counts the end of a call that was let in under that number. Listeners are told last: one
// that ends the goroutine loses nothing of this breaker, and the completers after it are still
// called by the engine.
func (m *machine) Complete(inv *engine.Invocation, number int64) {
	end := EndOf(inv)
	if !m.countGood(uint64(number), inv.Now(), end) {
		m.complete(uint64(number), inv.Now(), end).notify()
	}
}

// End is how a call ended.
type End struct {
	Took    time.Duration // without its own waits; engine.Untimed if it has no response time
	Failed  bool
	Neutral bool // it didn't fail, and says nothing about the resource
}

// EndOf is how a call ended that completes.
func EndOf(inv *engine.Invocation) End {
	return End{Took: inv.ServiceTime(), Failed: inv.Failed(), Neutral: inv.Neutral()}
}

// complete counts the end of a call, unless the state that let it in is over, or the call says
// nothing about what the terms judge by. A probe that is no longer waited for still counts. Whether
// the call ended badly is decided by the terms that it is counted under.
//
// A neutral call leaves everything as if it had not been let in: no result is counted, no streak of
// good probes ends, and its place as a probe is free at once. That happens under mu, as with
// giveBack: the gate opens after the probe has left the list, so whoever finds it open finds the
// place, and of several only one gets it. It is only counted, for people to see.
func (m *machine) complete(number uint64, now int64, end End) Change {
	if state, present := m.state(); number < present || state == ForcedClosed {
		return Change{} // states only become newer
	}
	m.lock()
	defer m.unlock()
	state, present := m.state()
	if number < present {
		return Change{}
	}
	t := m.terms.Load()
	verdict := t.judge(end)
	if verdict == neutral {
		m.neutral++
		m.drop(number)
		return Change{}
	}
	now = m.advanceLocked(now)
	switch {
	case state != HalfOpen && verdict == blind:
	case state == Closed || state == Recovering:
		all := m.results.add(now, verdict == bad)
		if value, trips := t.trips(all); trips && !m.barred {
			return m.enterLocked(Open, now, value)
		}
	case state == HalfOpen && verdict == bad:
		return m.enterLocked(Open, now, 1)
	case state == HalfOpen:
		if m.good++; m.good < t.Probes {
			m.drop(number)
			return Change{}
		}
		if t.Ramp > 0 {
			return m.enterLocked(Recovering, now, 0)
		}
		return m.enterLocked(Closed, now, 0)
	}
	return Change{}
}
