package meter

import "github.com/penstock-go/penstock/internal/lending"

// attempt is the result of trying to take units without the lock.
type attempt uint8

const (
	unsure attempt = iota // take the lock to find out
	taken
	full // the units don't fit
)

// maxCredit is the maximum number of units that a lane keeps: as many units as the short calls
// under way on one processor take. Units held by long calls go back to the word.
const maxCredit = 64

// take tries to take n units within limit without the lock. If mark isn't 0, the word must carry
// it.
//
// # A semaphore that lends
//
// Once enough swaps of the word have failed, the word lends: a call that ends then leaves its units
// with its lane, where the total still counts them, and the next call on that lane takes them. So a
// call writes only to the cell of its lane, and only reads the word. [Semaphore.lock] collects the
// units of the lanes before any decision that depends on them, and nothing is lent again until as
// many swaps have failed again. So under frequent reads or rejections the semaphore uses the word.
//
// At every instant the total is the sum of the held units, the unseen units and the units left with
// lanes: a call that takes units from a lane, or leaves units there, changes the held units and the
// cell by the same amount. The holder of mu freezes the word first, then changes each cell, empty
// ones too, to a later version without units, takes its units off the total, and only then thaws
// the word or ends lending. Each change of a cell changes its version (see [lending.Credit]), and a
// call loads the cell before the word. So:
//
//   - A call that takes from its lane, and has seen a total within its limit, takes effect at the
//     instant of that load. The units were with the lane at that time, because the cell did not
//     change: the held units were less than the total by at least that amount, regardless of the
//     limits of other calls.
//   - A call that leaves units with its lane has seen the word lend, and not frozen. If the word is
//     frozen afterwards, either the cell is collected after the call, with the units, or before it,
//     and then the call fails. So lanes hold nothing once they are collected, and nothing while a
//     call is queued, because the word is frozen then.
//   - A call is rejected only because of a word that doesn't lend, whose total is the held units,
//     or under the lock.
//   - A call that finds no units in its lane takes them from the word, if the total leaves room. The
//     total is not less than the held units, so the limit holds.
//
// [Semaphore.Rest] drops the cells. A call that still has a pointer to them must not leave units
// there: each cell is permanently marked as dropped.
func (g *Semaphore) take(lane uint32, n, limit int64, mark uint64) attempt {
	bits := uint64(markBits)
	if mark == 0 {
		bits = 0
	}
	for {
		if g.spend(lane, n, limit, bits, mark) {
			return taken
		}
		w := g.word.Load()
		switch {
		case w&bits != mark:
			return unsure
		case total(w) > limit-n && w&lends == 0:
			return full
		case w&frozen != 0 || total(w) > limit-n:
			return unsure
		case w&lends == 0 && g.contend():
		case g.exchange(w, n):
			return taken
		}
	}
}

// spend takes units that were left with the lane, if total is within limit and the word has the
// same mark bits as mark. Like TryReleaseOn it calls no function, not even to find its cell: that
// would double its cost.
func (g *Semaphore) spend(lane uint32, n, limit int64, bits, mark uint64) bool {
	all := g.credits.Load()
	if all == nil {
		return false
	}
	cells := all.Cells
	i := int(lane) & (len(cells) - 1)
	if i >= len(cells) { // never
		return false
	}
	c := &cells[i]
	credit := c.Load() // before the word
	w := g.word.Load()
	left := credit + lending.CreditChange - uint64(n)
	// left wraps around if the lane had too few units or is dropped.
	if w&(frozen|bits) != mark || total(w) > limit || n > maxCredit || uint32(left) > maxCredit {
		return false
	}
	return c.CompareAndSwap(credit, left)
}

// TryReleaseOn is like TryRelease, but for a semaphore under contention: it leaves the units with
// the lane.
func (g *Semaphore) TryReleaseOn(lane uint32, n int64) bool {
	all := g.credits.Load()
	if all == nil {
		return false
	}
	cells := all.Cells
	i := int(lane) & (len(cells) - 1)
	if i >= len(cells) { // never
		return false
	}
	c := &cells[i]
	credit := c.Load() // before the word
	if g.word.Load()&(frozen|lends) != lends || units(credit)+n > maxCredit {
		return false
	}
	return c.CompareAndSwap(credit, credit+lending.CreditChange+uint64(n))
}

// tryRelease is like Release, but without the lock.
func (g *Semaphore) tryRelease(lane uint32, n int64) bool {
	for {
		if g.TryReleaseOn(lane, n) {
			return true
		}
		w := g.word.Load()
		switch {
		case w&frozen != 0:
			return false
		case w&lends == 0 && g.contend():
		case g.exchange(w, -n):
			return true
		}
	}
}

// dropped is the content of a dropped cell: more units than a lane can have, regardless of what a
// call takes or leaves.
const dropped = 1 << 31

func units(credit uint64) int64 { return int64(uint32(credit)) }

// exchange changes the total by a swap of the word.
func (g *Semaphore) exchange(w uint64, n int64) bool {
	return g.word.CompareAndSwap(w, w+uint64(n)*oneUnit)
}

// contend records a failed swap of the word: a call gets here while the word suffices only after a
// failed swap. It reports whether it changed the word to show whether it lends.
func (g *Semaphore) contend() bool {
	if g.failed.Add(1) != lending.After && !lending.Always {
		return false
	}
	g.refresh()
	return true
}

// Contended makes the semaphore lend as if processors had contended for it, for measurements on one
// processor.
func (g *Semaphore) Contended() {
	g.failed.Store(lending.After)
	g.refresh()
}

// refresh updates the bit of the word that shows whether it lends.
func (g *Semaphore) refresh() {
	g.lock()
	g.release()
}

// Rest releases the memory needed only under contention, until processors contend again, and
// reports whether there was any.
func (g *Semaphore) Rest() bool {
	if g.credits.Load() == nil {
		return false
	}
	g.lock()
	c := g.credits.Load()
	if c != nil {
		recall(c, dropped) // nothing is lent: see lock
		g.credits.Store(nil)
	}
	g.failed.Store(0)
	g.release()
	return c != nil
}

// The methods below need lock.

// lend lets the word lend.
func (g *Semaphore) lend() {
	if g.credits.Load() == nil {
		g.credits.Store(lending.NewCredits())
	}
	g.next |= lends
}

// collect takes the units of the lanes off the total.
func (g *Semaphore) collect() {
	g.add(-recall(g.credits.Load(), 0))
	g.next &^= lends
	g.failed.Store(0)
}

// recall takes the units of all lanes, and returns their number. It changes every cell, because
// units are returned without the owner's lock: a caller that loaded a cell earlier then leaves
// nothing there.
func recall(c *lending.Credits, leave uint64) (sum int64) {
	for i := range c.Cells {
		w := &c.Cells[i]
		credit := w.Load()
		for !w.CompareAndSwap(credit, (credit|lending.CreditUnits)+1+leave) {
			credit = w.Load()
		}
		sum += units(credit)
	}
	return sum
}
