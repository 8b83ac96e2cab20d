package sharing

import (
	"slices"
	"sync"

	"github.com/penstock-go/penstock/stat"
)

// # Rules in shadow mode
//
// A rule in shadow mode records the calls it would refuse, and no call waits for it. If the store
// must be asked, the call runs at once and a [Late] takes its place in the queue: it waits for the
// missing units as long as a call may, and is decided like one. So the limit counts the same as
// with the rule in force.

// Late is the pending needs of a call whose rules are in shadow mode.
type Late struct {
	m       *Member
	needs   []Need
	waiters []waiter
	group   group
	expiry  task

	lane    uint32
	refused *stat.Tally

	mu        sync.Mutex // innermost; guards the fields below
	decided   bool
	abandoned bool    // by then
	over      []int64 // units of each need beyond its own that the call had used by then
}

// mostLate is the maximum number of undecided calls of a member. More of them are decided as if the
// store hadn't answered.
const mostLate = 4096

// FetchShadow is [Member.Fetch] for a rule in shadow mode, and doesn't wait. The needs must be of
// windows and throttles, and the caller must not touch them afterwards. Once all are decided and
// one was refused, the call is counted in refused, on that lane, and its other units go back.
func (m *Member) FetchShadow(needs []Need, lane uint32, refused *stat.Tally) *Late {
	now := m.now()
	l := &Late{m: m, needs: needs, waiters: make([]waiter, len(needs)), lane: lane, refused: refused, over: make([]int64, len(needs))}
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
		case l.group.open.Load() == 0: // it was already decided
			m.unplan(&l.expiry)
		case m.closing(): // no task runs after Close, and the limits may have been left
			l.expire(now)
		}
	}
	return l
}

// expire decides the needs that have waited for the longest time allowed.
func (l *Late) expire(now int64) {
	for i := range l.waiters {
		l.needs[i].Limit.expire(&l.waiters[i], now)
	}
}

// settle runs once, when the last need is decided, under that limit's mutex; so units go back
// later, see Member.payBack.
func (l *Late) settle() {
	l.m.late.Add(-1)
	l.m.unplan(&l.expiry)
	some, all := l.got()
	l.mu.Lock()
	l.decided = true
	runs, settled := all && !l.abandoned, slices.ContainsFunc(l.over, func(n int64) bool { return n != 0 })
	counts := !all && !l.abandoned
	l.mu.Unlock()
	if counts {
		l.refused.Add(l.lane, 1)
	}
	if some && (!runs || settled) {
		l.m.owe(l)
	}
}

// Settle replaces the units that the call reserved of its i-th need by the used units: over more, or
// fewer if it is negative. If the call is undecided, that waits until it has got them. Call it at
// most once for each need, without a lock, and not after Abandon.
func (l *Late) Settle(i int, over int64) {
	l.mu.Lock()
	decided := l.decided
	if !decided {
		l.over[i] = over
	}
	l.mu.Unlock()
	if !decided {
		return
	}
	if _, all := l.got(); all {
		n := &l.needs[i]
		n.Limit.settle(n, l.m.clock.Now(), over)
	}
}

// payBack returns the units of a call that doesn't run, or settles what one has used.
func (l *Late) payBack() {
	if _, all := l.got(); !all || l.abandoned {
		l.handBack()
		return
	}
	for i, over := range l.over {
		if n := &l.needs[i]; over != 0 {
			n.Limit.settle(n, l.m.clock.Now(), over)
		}
	}
}

// got reports whether some and whether all needs were granted, once they are decided.
func (l *Late) got() (some, all bool) {
	all = true
	for i := range l.needs {
		some = some || l.needs[i].Got
		all = all && l.needs[i].Got
	}
	return some, all
}

// owe schedules the return of the units that a call was granted.
func (m *Member) owe(l *Late) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owed = append(m.owed, l)
	m.putLocked(&m.paying, immediately)
}

// payBack returns the owed units, and reports whether there were any. The caller holds no lock.
func (m *Member) payBack() (some bool) {
	m.mu.Lock()
	owed := m.owed
	m.owed = nil
	m.mu.Unlock()
	for _, l := range owed {
		l.payBack()
	}
	return len(owed) > 0
}

// handBack returns the granted units.
func (l *Late) handBack() {
	for i := range l.needs {
		if l.needs[i].Got {
			l.needs[i].Limit.giveBack(&l.needs[i])
		}
	}
}

// Abandon drops a call that doesn't run after all: its units, granted or about to be, go back, and
// if it is undecided it doesn't count. Call it at most once, and without a lock.
func (l *Late) Abandon() {
	l.mu.Lock()
	l.abandoned = !l.decided
	abandoned := l.abandoned
	l.mu.Unlock()
	if abandoned {
		return // settle returns the units
	}
	if _, all := l.got(); all {
		l.handBack()
	}
}
