package breaker

import (
	"slices"
	"time"
)

// admission is the decision on a call that asked.
type admission struct {
	ok     bool
	number uint64 // for complete
	probe  bool   // to be given back if the call doesn't run
}

// asks reports whether the machine would admit a call as of now. It takes nothing, with one
// exception: while the machine recovers, counting the calls that ask determines which of them is
// admitted, and a call must know that before it takes anything from other rules. In that case an
// admitted call gets the number of the state.
func (m *machine) asks(now int64) (ok bool, number uint64) {
	switch state, number := m.state(); state {
	case Closed, ForcedClosed:
		return true, 0
	case Recovering:
		if ok, known := m.draws(now); known {
			return ok, number
		}
	}
	return now >= m.gate.Load(), 0
}

// draws counts a call that asks while the machine recovers, and reports whether it is admitted.
// known is false once the recovery has ended.
func (m *machine) draws(now int64) (turn, known bool) {
	step := rampStep(now-m.since.Load(), m.terms.Load().Ramp)
	if step == len(rampShares) {
		return false, false
	}
	return (m.turn.Add(1)-1)%rampShares[step] == 0, true
}

// admit decides, and hands out a probe if one is needed. The caller must report the change after
// recording the admission.
func (m *machine) admit(now int64) (admission, Change) {
	state, number := m.state()
	switch {
	case state == Closed || state == ForcedClosed:
		return admission{ok: true, number: number}, Change{}
	case state == Recovering:
		if ok, known := m.draws(now); known {
			return admission{ok: ok, number: number}, Change{}
		}
	case now < m.gate.Load():
		return admission{}, Change{}
	}
	return m.admitLocked(now)
}

// rampShares are the steps of a recovery: one call in that many passes.
var rampShares = [...]uint64{100, 10, 2}

// rampStep returns the step of the ramp at the given time after its start, or the number of steps
// once the ramp has ended.
func rampStep(after int64, ramp time.Duration) int {
	if ramp <= 0 {
		return len(rampShares)
	}
	return int(min(max(0, after/int64(ramp)), int64(len(rampShares))))
}

// admitLocked is like admit, but for a call that found the gate open. A refused call leaves no
// trace, not even its time.
func (m *machine) admitLocked(now int64) (admission, Change) {
	m.lock()
	defer m.unlock()
	var change Change
	now = max(m.latest, now)
	state, number := m.state()
	if state == Recovering {
		if ok, known := m.draws(now); known {
			return admission{ok: ok, number: number}, change
		}
		m.advanceLocked(now)
		change = m.enterLocked(Closed, now, 0)
		state, number = m.state()
	}
	switch {
	case state == Closed || state == ForcedClosed:
		return admission{ok: true, number: number}, change
	case now < m.gate.Load():
		return admission{}, change
	}
	m.advanceLocked(now)
	if state == Open {
		change = m.enterLocked(HalfOpen, now, 0)
	}
	m.probes = slices.DeleteFunc(m.probes, func(p probe) bool { return now >= p.until })
	m.number++
	m.wait(probe{m.number, now + int64(m.terms.Load().ProbeTimeout)})
	return admission{ok: true, number: m.number, probe: true}, change
}
