package stat

import (
	"time"

	"github.com/penstock-go/penstock/internal/lending"
)

// Lending: where many processors contend for the word, lanes are lent units ahead of their calls.
//
// # Invariants
//
//  1. What is lent counts in the newest bucket, in total and in the word's total, from before it can
//     be spent until after it no longer can: a unit is charged in the word before it is put into a
//     lane's cell, and taken out of the cell before it is taken off. So at every instant the word's
//     total is at least what was admitted and not yet expired, plus what lanes hold.
//  2. After [Window.collectLocked] no lane holds anything. It comes before head moves, before
//     anything is borrowed and before the window is handed over: what lanes hold is of the newest
//     bucket and the current era.
//  3. Nothing is lent while units are borrowed: then the word is closed, and each call looks ahead.
//  4. The word says whether something is lent. Where it doesn't, total is exact.
//
// A call that spends has found its time before the end of the newest bucket, which only moves
// forward. It has loaded the cell, then newest, then the word, and nothing was collected since, or
// the cell would have another version. So the bucket that it loaded is still the newest, and at the
// load of the word its units were lent: by (1) what was admitted and its own n units were together
// at most the total there, which is within its limit. That load is the instant at which it is
// admitted. Other calls may have other limits on the same window; each looks at its own.
//
// A call is refused by a total in which nothing is lent, or under mu after collecting. So the
// verdicts are those of a window that never lends.

// cell is the cell of a lane and what is there, and all of them; nil if there are none.
func (w *Window) cell(lane uint32) (all *lending.Credits, cell *lending.Cell, credit uint64) {
	if all = w.credits.Load(); all == nil {
		return nil, nil, 0
	}
	cell = all.Of(lane)
	return all, cell, cell.Load()
}

// contend notes that a swap of the word has failed, and makes cells when many have.
func (w *Window) contend() {
	if w.failed.Add(1) != lending.After {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.credits.Load() == nil {
		w.lentAt = w.head
		w.credits.Store(lending.NewCredits())
	}
}

// Contended makes the window lend as if processors had contended for it, for measurements on one
// processor.
func (w *Window) Contended() {
	w.failed.Store(lending.After - 1)
	w.contend()
}

// Rest releases what the window needs only while processors contend for it, until they do so
// again, and reports whether there was anything to release. A window that is in use does so by
// itself, as a bucket ends.
func (w *Window) Rest() bool {
	if w.credits.Load() == nil || lending.Always {
		return false
	}
	w.lock()
	rested := w.credits.Load() != nil
	w.credits.Store(nil) // no lane holds anything: a call that still has a cell finds nothing there to spend
	w.failed.Store(0)
	w.unlock()
	return rested
}

// lendLocked puts a part of the room into the cell of a lane.
func (w *Window) lendLocked(lane uint32, limit int64) {
	c := w.credits.Load()
	if c == nil || w.waiting != 0 {
		return
	}
	n := c.Part(min(limit, mostTotal-1) - w.total)
	if n == 0 {
		return
	}
	w.putLocked(w.head, n)
	w.lent += n
	w.lentAt = w.head
	w.showLocked(closed) // before any call can spend it, in the bucket that it is lent in
	c.Of(lane).Lend(n)
}

// collectLocked takes back what lanes have not spent.
func (w *Window) collectLocked() {
	if w.lent == 0 {
		return
	}
	if n := w.credits.Load().Collect(); n != 0 {
		w.putLocked(w.head, -n)
	}
	w.lent = 0
}

// restLocked drops the cells if nothing was lent for a minute. Nothing is lent now.
func (w *Window) restLocked(now int64) {
	if w.failed.Load() != 0 {
		w.failed.Store(0)
	}
	if w.credits.Load() != nil && !lending.Always && now-w.lentAt*w.width > int64(idle) {
		w.credits.Store(nil)
	}
}

// idle is how long cells outlast the contention that they were made for.
const idle = time.Minute
