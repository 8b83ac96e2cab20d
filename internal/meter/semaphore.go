package meter

import (
	"math"

	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/shared"
)

// Semaphore meters units in flight exactly: [Semaphore.TryAcquire] checks and counts in one atomic
// step, so a limit holds under any schedule. The zero value is an empty semaphore. It is safe for
// concurrent use.
//
// # Unseen calls
//
// A semaphore may be made while calls are in flight. [Semaphore.Seed] sets their number; as they
// end, [Semaphore.ReleaseUnseen] counts them down. The number comes from counters that were read
// while calls started and ended, so it may be too high, never too low, and the excess would stay
// forever. So the semaphore settles: while any calls are unseen, each call that is counted in those
// counters and held here confirms that ([Semaphore.Confirm]). The calls in flight in the counters
// minus the confirmed ones are an upper bound on the unseen calls, which is passed to
// [Semaphore.Settle]. Each bound is safe, and a bound that is read while no call starts or ends is
// exact.
//
// # The queue
//
// Calls that find no free units may wait in the queue; see [Semaphore.Join]. Whenever mu is free,
// the first call in the queue doesn't fit: an operation that lowers the total, raises the limit or
// removes a call from the queue grants free units to the first calls in the queue before it
// releases mu. So no call waits while there is room, and a permit passes from one call to the next
// without being free in between. Waiters are woken without a lock.
//
// # When no lock is needed
//
// While no call is queued and nothing is unseen, the word suffices: it has the total, and the
// revision of the rules that set the queue's limit. Then units are taken and given back by
// compare-and-swap of the word, which fails if anything in it has changed: one atomic step, as
// exact as the lock. A call that is rejected because of the word has loaded a total that was exact
// at that instant.
//
// Otherwise the word is frozen: only the holder of mu changes it, and swaps fail. A goroutine that
// locks mu to change anything first freezes the word, so that its view under mu stays true, and
// thaws it at the end unless a call is queued, something is unseen, tenants share the units, or the
// semaphore is retired. So
// a queued call misses no released unit: before the word is frozen, the unit is in the total that
// admitted no call, and after that it is released under mu.
//
// If processors contend for the word, calls don't even share the word; see [Semaphore.take].
type Semaphore struct {
	word    shared.Uint64                   // see above, and pack
	credits shared.Pointer[lending.Credits] // nil if nothing was lent for a long time; changes under mu
	failed  shared.Uint32                   // number of failed swaps of word since the last collection

	settling shared.Bool  // mirrors unseen > 0 || expecting
	queued   shared.Int64 // mirrors the length of the queue

	mu        shared.Mutex
	next      uint64 // value of the word after the current change
	unseen    int64
	confirmed int64  // held units that are also counted elsewhere
	expecting bool   // from Begin to Seed
	stays     reason // why the word stays frozen though no call is queued and nothing is unseen
	queue     queue
	shares    *shares // nil unless tenants share the units, or did so and hold some
}

// reason is a set of reasons.
type reason uint8

const (
	isRetired reason = 1 << iota
	isShared
)

// From the lowest bit, the word contains: whether it is frozen, whether it lends, the total of
// held, unseen and lent units, and the mark of the revision that set the queue's limit. A mark
// recurs after 32,768 revisions: to mistake the limit of an old revision for the current one, a
// call would have to be delayed for that many.
const (
	frozen    = 1
	lends     = 2
	oneUnit   = 4
	markShift = 48
	markBits  = 1<<64 - 1<<markShift
	// maxInUse is the maximum limit: 33 million of the largest calls.
	maxInUse = 1<<45 - 1
)

// total may be negative if more units were released than acquired.
func total(word uint64) int64 { return int64(word<<(64-markShift)) >> (64 - markShift + 2) }

// markOf is never 0, which is the mark of a semaphore that has no limit yet.
func markOf(revision uint64) uint64 { return revision<<markShift | 1<<63 }

// TryAcquire takes n units if the total stays within limit. The caller chooses the lane, as in
// [stat.Counters]: concurrent callers should use different ones.
func (g *Semaphore) TryAcquire(lane uint32, n, limit int64) bool {
	limit = min(limit, maxInUse)
	w := g.word.Load()
	if total(w) > limit-n {
		if w&lends == 0 {
			return false
		}
	} else if plain(w) && g.exchange(w, n) {
		return true
	}
	return g.tryAcquire(lane, n, limit)
}

// plain reports whether the word suffices.
func plain(w uint64) bool { return w&(frozen|lends) == 0 && !lending.Always }

func (g *Semaphore) tryAcquire(lane uint32, n, limit int64) bool {
	switch g.take(lane, n, limit, 0) {
	case taken:
		return true
	case full:
		return false
	}
	g.lock()
	ok := g.total() <= limit-n
	if ok {
		g.add(n)
	}
	g.unlock()
	return ok
}

// Acquire takes n units on a lane, regardless of the total.
func (g *Semaphore) Acquire(lane uint32, n int64) {
	if w := g.word.Load(); !plain(w) || !g.exchange(w, n) {
		g.tryAcquire(lane, n, math.MaxInt64)
	}
}

// Release gives back n acquired units on a lane, that of the acquisition or any other.
func (g *Semaphore) Release(lane uint32, n int64) {
	if g.TryRelease(n) || g.tryRelease(lane, n) {
		return
	}
	g.lock()
	g.add(-n)
	g.unlock()
}

// TryRelease is like Release, but uses only the word. If a call may be waiting for the units, it
// does nothing and returns false.
func (g *Semaphore) TryRelease(n int64) bool {
	w := g.word.Load()
	return plain(w) && g.exchange(w, -n)
}

// Fits reports whether n more units would stay within limit, without taking them.
func (g *Semaphore) Fits(n, limit int64) bool {
	left := min(limit, maxInUse) - n
	w := g.word.Load()
	return total(w) <= left || w&lends != 0 && g.collected() <= left
}

// InUse returns the units in flight.
func (g *Semaphore) InUse() int64 {
	if w := g.word.Load(); w&lends == 0 {
		return total(w)
	}
	return g.collected()
}

// Counted returns at least InUse: under contention the result includes units that calls left with
// their lanes. It takes no lock.
func (g *Semaphore) Counted() int64 { return total(g.word.Load()) }

// collected returns the total once nothing is lent.
func (g *Semaphore) collected() int64 {
	g.lock()
	n := g.total()
	g.release()
	return n
}

// Held returns the units acquired and not released: 0 at the end.
func (g *Semaphore) Held() int64 {
	g.lock()
	n := g.total() - g.unseen
	g.release()
	return n
}

// Begin makes the semaphore expect a [Semaphore.Seed]. It must be called before calls can see the
// semaphore.
func (g *Semaphore) Begin() {
	g.lock()
	g.expecting = true
	g.see(0)
	g.unlock()
}

// Seed adds n units for the calls that were in flight before the semaphore existed. n may be too
// high, never too low.
func (g *Semaphore) Seed(n int64) {
	g.lock()
	g.expecting = false
	g.see(max(n, 0))
	g.unlock()
}

// ReleaseUnseen releases n units that are in flight without having been acquired.
func (g *Semaphore) ReleaseUnseen(n int64) {
	g.lock()
	g.see(-min(n, g.unseen))
	g.unlock()
}

// Settling reports whether units that the semaphore never saw are in flight.
func (g *Semaphore) Settling() bool { return g.settling.Load() }

// Confirm records that n units held here are now also counted elsewhere. They are released with
// [Semaphore.ReleaseConfirmed].
func (g *Semaphore) Confirm(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.confirmed += n
}

// ReleaseConfirmed releases n units that were acquired and confirmed. It must be called before
// their end is counted elsewhere.
func (g *Semaphore) ReleaseConfirmed(n int64) {
	g.lock()
	g.confirmed -= n
	g.add(-n)
	g.unlock()
}

// Confirmed returns the units held here that are also counted elsewhere.
func (g *Semaphore) Confirmed() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.confirmed
}

// Settle records that at most n units are unseen.
func (g *Semaphore) Settle(n int64) {
	g.lock()
	g.see(-max(0, g.unseen-max(n, 0)))
	g.unlock()
}

// Retire makes [Semaphore.TryJoin] fail, so that a caller with a pointer to the semaphore checks
// whether it was replaced. For calls that hold units or are queued, everything else works as
// before.
func (g *Semaphore) Retire() {
	g.lock()
	g.stays |= isRetired
	g.unlock()
}

// lock begins a change: until unlock only the caller changes the word, and nothing is lent.
func (g *Semaphore) lock() {
	g.mu.Lock()
	if g.next = g.word.Load(); g.next&frozen == 0 { // only holders of mu freeze it
		g.next = g.word.Or(frozen) | frozen
	}
	if g.next&lends != 0 {
		g.collect()
	}
}

// unlock ends a change that may have made room.
func (g *Semaphore) unlock() {
	var up woken
	g.advance(&up)
	g.release()
	up.wake()
}

// release ends a change after which no call in the queue fits.
func (g *Semaphore) release() {
	if !g.expecting && g.unseen == 0 && g.queue.length == 0 && g.stays == 0 {
		g.next &^= frozen
		if lending.Always || g.failed.Load() >= lending.After {
			g.lend()
		}
	}
	g.word.Store(g.next)
	g.mu.Unlock()
}

// The methods below need lock.

func (g *Semaphore) total() int64 { return total(g.next) }

// add changes the held units.
func (g *Semaphore) add(n int64) { g.next += uint64(n) * oneUnit }

// see changes the number of unseen units, or whether a seed is expected.
func (g *Semaphore) see(n int64) {
	g.unseen += n
	g.settling.Store(g.expecting || g.unseen > 0)
	g.add(n)
}

// mark records the revision that set the queue's limit.
func (g *Semaphore) mark(revision uint64) {
	g.next = g.next&^markBits | markOf(revision)
}
