package breaker

import "github.com/penstock-go/penstock/internal/shared"

// tab is a running tally of the calls of a closed breaker that end well, as nearly all do: how many
// there are, and the latest time that one of them passed in. Both are in one word, and a call
// counts itself by one compare-and-swap of it, without the lock.
//
// # Why that is as good as under the lock
//
// A goroutine that takes mu takes the tab away first, and adds what is on it to the newest bucket
// and to latest, see [machine.lock]. So whatever is done under mu takes every counted call into
// account, and none is counted meanwhile: a call that finds the tab taken away takes mu instead.
// Before mu is unlocked the tab is laid out again, see [machine.layOut], if
//
//   - the breaker is closed, and number is that of the state, terms are those in force;
//   - latest is before until, the end of the newest bucket;
//   - no number of good calls can trip the breaker before then, see [terms.goodMayTrip].
//
// None of that changes while the tab is laid out, as that would take mu. So at the instant of its
// swap a call belongs to the current state, and what complete would do with it under mu is just
// this: its time is before until, so it joins the newest bucket, as it does if it is late; latest
// is the later of the two; nothing trips.
//
// A call reads number, terms, base and until before it swaps, and in between the tab may have been
// taken away and laid out again with the same word. Even so they are unchanged: for another number,
// terms or base there is another tab, and the old one never comes back; until only moves forward.
//
// A tab has a cache line to itself, since entering calls read the machine's.
type tab struct {
	word   shared.Uint64
	until  shared.Int64
	number uint64
	terms  *terms
	base   int64 // the origin of the times in word

	_ [24]byte
}

// The word is how many calls there are, and the latest time since base, up to 68 s. Calls for which
// there is no room take mu, as do all calls while the tab is taken away.
const (
	timeBits = 36
	mostTime = 1<<timeBits - 1
	full     = 1<<63 - 1<<timeBits
	taken    = 1 << 63
)

// countGood is complete for a call that ends well, where the lock isn't needed. Otherwise it counts
// nothing and reports false.
func (m *machine) countGood(number uint64, now int64, end End) bool {
	t := m.tab.Load()
	if t == nil || t.number != number || t.terms.judge(end) != good || now >= t.until.Load() {
		return false
	}
	since := uint64(max(0, now-t.base))
	for {
		word := t.word.Load()
		if word >= full || since > mostTime {
			return false
		}
		latest := max(since, word&mostTime)
		if t.word.CompareAndSwap(word, word&^mostTime+1<<timeBits+latest) {
			return true
		}
	}
}

// lock takes mu, and the tab away.
func (m *machine) lock() {
	m.mu.Lock()
	t := m.tab.Load()
	if t == nil || t.word.Load() == taken { // it was left so
		return
	}
	word := t.word.Swap(taken)
	m.advanceLocked(t.base + int64(word&mostTime))
	m.results.addGood(int64(word >> timeBits))
}

// unlock releases mu.
func (m *machine) unlock() {
	m.layOut()
	m.mu.Unlock()
}

// layOut lays the tab out if calls may be counted without the lock from here on.
func (m *machine) layOut() {
	state, number := m.state()
	terms, until := m.terms.Load(), m.results.until
	if state != Closed || m.latest >= until || terms.goodMayTrip(m.results.sum) {
		return
	}
	t := m.tab.Load()
	if t == nil || t.number != number || t.terms != terms || m.latest-t.base > mostTime/2 {
		t = &tab{number: number, terms: terms, base: m.latest}
		t.until.Store(until)
		m.tab.Store(t)
		return
	}
	if t.until.Load() != until {
		t.until.Store(until)
	}
	t.word.Store(uint64(m.latest - t.base))
}
