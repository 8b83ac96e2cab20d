package sharing

// # Limits of single values
//
// A value that is asked for often has a lease like any other limit. One that is asked for now and
// then would cost a round trip per call, and callers may send any number of such values. So a
// member asks the store for at most [cluster.Config].ValueCalls calls a second. Beyond them, the limit of a
// value that needs more does as its rule says for when the store is unreachable. What leases request by
// themselves, ahead of the calls, doesn't count.

// budget counts the calls that the store was asked for because of single values. It needs
// Member.mu.
type budget struct {
	second int64 // of the member's clock
	spent  int64 // in it
}

// mayAsk reports whether the store may be asked for a call; value says whether the call needs units
// of a single value's limit.
func (m *Member) mayAsk(value bool, now int64) bool {
	if !value {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if second := now / beatEvery; second != m.budget.second {
		m.budget = budget{second: second}
	}
	if m.budget.spent >= int64(m.cfg.ValueCalls) {
		return false
	}
	m.budget.spent++
	return true
}

// mayWait reports whether a call may wait for the store: not if it is to be decided late and too many are,
// nor where the store may not be asked for it.
func (m *Member) mayWait(x *waiter, value bool, now int64) bool {
	return !(x.late && m.late.Load() > mostLate) && m.mayAsk(value, now)
}

// Idle reports whether the window can be forgotten: what it has is worthless, or goes back by
// itself, and a new window begins with what the store knows.
func (w *Window) Idle(now int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight || len(w.waiters) > 0 {
		return false
	}
	for _, e := range w.round.account {
		if e.uncharged+e.charging > 0 && now-e.at < w.round.counts() {
			return false // the store has yet to be charged
		}
	}
	return w.fallback.local == nil || w.fallback.local.Sum(now) == 0
}

// Idle reports whether the throttle can be forgotten: all turns that it has given have passed.
func (t *Throttle) Idle(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.inFlight && len(t.waiters) == 0 && now >= max(t.fallback.last, t.round.last, t.turns.next)
}

// Idle reports whether the semaphore can be forgotten: no call has a permit.
func (s *Semaphore) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.permits.inUse.InUse() == 0 && !s.inFlight && len(s.waiters) == 0
}
