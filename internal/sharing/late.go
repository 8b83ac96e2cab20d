package sharing

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/stat"
)

// # Rules in shadow mode
//
// A rule in shadow mode says what it would refuse, and no call waits for that. Where the store has to be
// asked, the call runs at once, and a [Late] stands in its place: it waits for what the call lacks among the
// calls that wait, as long as one may, and is decided as they are. So the limit counts what it would count if
// the rule were in force.

// Late is what a call lacks of limits whose rule is in shadow mode.
type Late struct {
	m       *Member
	needs   []Need
	waiters []waiter
	group   group
	expiry  task
	state   atomic.Int32 // undecided, decided or abandoned

	lane    uint32
	refused *stat.Tally
}

const (
	undecided int32 = iota
	decided
	abandoned
)

// mostLate is how many calls of a member may be undecided at the same time. Those beyond it are decided
// without the store, as if it hadn't answered them.
const mostLate = 4096

// FetchShadow is [Member.Fetch] for a rule in shadow mode, and doesn't wait. The needs are of windows and
// throttles, and must not be touched any more. Once all are decided and one of them isn't granted, the call
// counts in refused, on that lane, and what it got of the others goes back.
func (m *Member) FetchShadow(needs []Need, lane uint32, refused *stat.Tally) *Late {
	now := m.now()
	l := &Late{m: m, needs: needs, waiters: make([]waiter, len(needs)), lane: lane, refused: refused}
	l.group.wake = l.settle
	l.group.open.Store(int64(len(needs)))
	l.expiry.do = l.expire
	m.late.Add(1)
	latest := now
	for i := range needs {
		l.waiters[i] = waiter{need: &needs[i], group: &l.group, late: true}
		latest = max(latest, now+int64(needs[i].Limit.Timeout()))
		needs[i].Limit.enter(&l.waiters[i], now)
	}
	m.flush(false)
	if l.group.open.Load() > 0 {
		m.plan(&l.expiry, latest)
		switch {
		case l.group.open.Load() == 0: // it was decided before that
			m.unplan(&l.expiry)
		case m.closing(): // nothing is planned any more, and the limits may have been left
			l.expire(now)
		}
	}
	return l
}

// expire decides what has waited as long as a call may.
func (l *Late) expire(now int64) {
	for i := range l.waiters {
		l.needs[i].Limit.expire(&l.waiters[i], now)
	}
}

// settle is called once, when the last need is decided, with the mutex of its limit: so what goes back does
// so later, see Member.payBack.
func (l *Late) settle() {
	l.m.late.Add(-1)
	l.m.unplan(&l.expiry)
	some, all := l.got()
	if l.state.CompareAndSwap(undecided, decided) {
		if all {
			return
		}
		l.refused.Add(l.lane, 1)
	}
	if some {
		l.m.owe(l)
	}
}

// got reports whether some and whether all needs are granted, once they are decided.
func (l *Late) got() (some, all bool) {
	all = true
	for i := range l.needs {
		some = some || l.needs[i].Got
		all = all && l.needs[i].Got
	}
	return some, all
}

// owe notes that what a call was granted is to be given back.
func (m *Member) owe(l *Late) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owed = append(m.owed, l)
	m.putLocked(&m.paying, immediately)
}

// payBack gives back what is owed, and reports whether that was anything. The caller holds no lock.
func (m *Member) payBack() (some bool) {
	m.mu.Lock()
	owed := m.owed
	m.owed = nil
	m.mu.Unlock()
	for _, l := range owed {
		l.handBack()
	}
	return len(owed) > 0
}

// handBack gives back what was granted.
func (l *Late) handBack() {
	for i := range l.needs {
		if l.needs[i].Got {
			l.needs[i].Limit.giveBack(&l.needs[i])
		}
	}
}

// Abandon is for a call that doesn't run after all: what it got, or is about to get, goes back, and if it
// isn't decided by now it doesn't count. It is called at most once, without a lock.
func (l *Late) Abandon() {
	if l.state.CompareAndSwap(undecided, abandoned) {
		return // settle sees to it
	}
	if _, all := l.got(); all {
		l.handBack()
	}
}
