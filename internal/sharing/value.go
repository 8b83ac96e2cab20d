package sharing

// # Limits of single values
//
// A frequent value has a lease like any other limit. A rare one would cost a round trip per call,
// and callers may send any number of such values. So a member asks the store for at most
// [cluster.Config].ValueCalls calls a second. Beyond that, limits of values that need more units
// follow their rule's onFailure. Requests that leases make ahead of calls don't count.

// budget counts the calls of single values that the store was asked for. Member.mu guards it.
type budget struct {
	second int64 // by the member's clock
	spent  int64 // in that second
}

// mayAsk reports whether the store may be asked for a call; value means that the call needs units
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

// mayWait reports whether a call may wait for the store: not if it is a shadow call and too many
// are undecided, nor if the budget is spent.
func (m *Member) mayWait(x *waiter, value bool, now int64) bool {
	return !(x.late && m.late.Load() > mostLate) && m.mayAsk(value, now)
}

// Idle reports whether the window can be forgotten: its units are worthless or go back by
// themselves, and a new window would start from the store's count.
func (w *Window) Idle(now int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight || len(w.waiters) > 0 {
		return false
	}
	for _, e := range w.round.account {
		if e.uncharged+e.charging > 0 && now-e.at < w.round.counts() {
			return false // not yet charged to the store
		}
	}
	return w.fallback.local == nil || w.fallback.local.Sum(now) == 0
}

// Idle reports whether the throttle can be forgotten: all turns it gave out have passed.
func (t *Throttle) Idle(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.inFlight && len(t.waiters) == 0 && now >= max(t.fallback.last, t.round.last, t.turns.next)
}

// Idle reports whether the semaphore can be forgotten: no call holds a permit.
func (s *Semaphore) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.permits.inUse.InUse() == 0 && !s.inFlight && len(s.waiters) == 0
}
