package breaker

import "github.com/penstock-go/penstock/internal/shared"

// goodTally is a running tally of the successful calls of a closed breaker, which are nearly all:
// their number, and the latest time of one. Both are in one word, and a call counts itself by one
// compare-and-swap of it, without the lock.
//
// # Why that is as good as under the lock
//
// A goroutine that takes mu first takes the tally out of use, and adds its counts to the newest
// bucket and its time to latest; see [machine.lock]. So code under mu sees every counted call, and
// none is counted while it runs: a call that finds the tally taken acquires mu instead. Before mu is
// released the tally is put back into use (see [machine.resumeTally]) if
//
//   - the breaker is closed, number is the state's number, and terms are the terms in effect;
//   - latest is before until, the end of the newest bucket;
//   - no number of good calls can trip the breaker before then; see [terms.goodMayTrip].
//
// None of that changes while the tally is in use, as that would take mu. So at the instant of its
// swap a call belongs to the current state, and complete would do the same under mu: its time is
// before until, so it is counted in the newest bucket, as a late call would be; latest becomes the
// later of the two times; nothing trips.
//
// A call reads number, terms, base and until before it swaps, and in between the tally may have been
// taken and resumed with the same word. Even so they are unchanged: another number, terms or base
// means another tally, and the old one is never used again; until only moves forward.
//
// A tally has its own cache line, because every Enter reads the machine's cache line.
type goodTally struct {
	word   shared.Uint64
	until  shared.Int64
	number uint64
	terms  *terms
	base   int64 // origin of the times in word

	_ [24]byte
}

// The word holds the number of calls, and the latest time since base, up to 68 s. Calls that don't
// fit take mu, as do all calls while the tally is taken.
const (
	timeBits = 36
	mostTime = 1<<timeBits - 1
	full     = 1<<63 - 1<<timeBits
	taken    = 1 << 63
)

// countGood is like complete, but for a successful call that doesn't need the lock. If the lock is
// needed, it counts nothing and returns false.
func (m *machine) countGood(number uint64, now int64, end End) bool {
	t := m.tally.Load()
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

// lock acquires mu, and takes the tally.
func (m *machine) lock() {
	m.mu.Lock()
	t := m.tally.Load()
	if t == nil || t.word.Load() == taken { // already taken
		return
	}
	word := t.word.Swap(taken)
	m.advanceLocked(t.base + int64(word&mostTime))
	m.results.addGood(int64(word >> timeBits))
}

// unlock releases mu.
func (m *machine) unlock() {
	m.resumeTally()
	m.mu.Unlock()
}

// resumeTally puts the tally into use if calls may be counted without the lock from now on.
func (m *machine) resumeTally() {
	state, number := m.state()
	terms, until := m.terms.Load(), m.results.until
	if state != Closed || m.latest >= until || terms.goodMayTrip(m.results.sum) {
		return
	}
	t := m.tally.Load()
	if t == nil || t.number != number || t.terms != terms || m.latest-t.base > mostTime/2 {
		t = &goodTally{number: number, terms: terms, base: m.latest}
		t.until.Store(until)
		m.tally.Store(t)
		return
	}
	if t.until.Load() != until {
		t.until.Store(until)
	}
	t.word.Store(uint64(m.latest - t.base))
}
