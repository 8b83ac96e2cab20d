package breaker

import (
	"time"

	"github.com/penstock-go/penstock/internal/engine"
)

// Complete counts the end of a call that was admitted under number. Listeners are called last: one
// that ends the goroutine loses nothing of this breaker, and the engine still calls the completers
// after it.
func (m *machine) Complete(inv *engine.Invocation, number int64) {
	end := EndOf(inv)
	if !m.countGood(uint64(number), inv.Now(), end) {
		m.complete(uint64(number), inv.Now(), end).notify()
	}
}

// End describes the end of a call.
type End struct {
	Took    time.Duration // without the waits for rules; engine.Untimed if it has no response time
	Failed  bool
	Neutral bool // it didn't fail, and says nothing about the health of the resource
}

// EndOf returns the End of a completing call.
func EndOf(inv *engine.Invocation) End {
	return End{Took: inv.ServiceTime(), Failed: inv.Failed(), Neutral: inv.Neutral()}
}

// complete counts the end of a call, unless the state that admitted it has ended or the terms ignore
// such calls. A probe past its timeout still counts. The terms in effect now decide whether the call
// was bad.
//
// A neutral call changes nothing, as if it had not been admitted: no result is counted, no streak
// of good probes ends, and its probe slot is free at once. That happens under mu, as in giveBack:
// the gate opens after the probe has left the list, so a caller that finds it open finds the slot,
// and of several callers only one gets it. Neutral calls are only counted for display.
func (m *machine) complete(number uint64, now int64, end End) Change {
	if state, present := m.state(); number < present || state == ForcedClosed {
		return Change{} // a newer state never becomes older
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
