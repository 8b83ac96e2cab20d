package stat

import (
	"time"

	"github.com/penstock-go/penstock/internal/lending"
)

// Lending: if many processors contend for the word, lanes are lent units ahead of their calls.
//
// # Invariants
//
//  1. Lent units count in the newest bucket, in total and in the word's total, from before they can be
//     spent until after they no longer can: a unit is charged in the word before it is put into a
//     lane's cell, and taken out of the cell before it is taken off. So at every instant the word's
//     total is at least the units admitted and not yet expired plus those in the lanes.
//  2. After [Window.collectLocked] no lane holds anything. It runs before head moves, before anything is
//     borrowed and before the window is handed over: units in lanes are of the newest bucket and the
//     current era.
//  3. Nothing is lent while units are borrowed: then the word is closed, and each call looks ahead.
//  4. A bit of the word shows whether units are lent. If it is clear, total is exact.
//
// A call that spends has found its time before the end of the newest bucket, which only moves
// forward. It has loaded the cell, then newest, then the word, and nothing was collected since, or
// the cell would have another version. So the bucket that it loaded is still the newest, and at the
// load of the word its units were lent: by (1), the units admitted and its own n were together at
// most the total there, which is within its limit. That load is the instant at which it is
// admitted. Other calls may have other limits on the same window; each checks its own.
//
// A call is rejected by a total in which nothing is lent, or under mu after collecting. So the
// verdicts are those of a window that never lends.

// cell returns all cells, the lane's cell and its content; nil, nil and 0 if there are none.
func (w *Window) cell(lane uint32) (all *lending.Credits, cell *lending.Cell, credit uint64) {
	if all = w.credits.Load(); all == nil {
		return nil, nil, 0
	}
	cell = all.Of(lane)
	return all, cell, cell.Load()
}

// contend records that a swap of the word failed, and makes cells after many failures.
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

// Rest releases the memory needed only under contention, until processors contend again, and
// reports whether there was any. A window in use does this by itself, at the end of a bucket.
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

// lendLocked moves part of the room into the cell of a lane.
func (w *Window) lendLocked(lane uint32, limit int64) {
	c := w.credits.Load()
	if c == nil || w.waiting != 0 {
		return
	}
	n := c.Part(min(limit, maxTotal-1) - w.total)
	if n == 0 {
		return
	}
	w.putLocked(w.head, n)
	w.lent += n
	w.lentAt = w.head
	w.showLocked(closed) // before any call can spend it, in the bucket that it is lent in
	c.Of(lane).Lend(n)
}

// collectLocked takes back the unspent units of the lanes.
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

// idle is the time that cells outlast the contention they were made for.
const idle = time.Minute
