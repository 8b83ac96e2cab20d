package stat

import "github.com/penstock-go/penstock/internal/lending"

// TryAdd counts n units at now if the window then holds at most limit, and returns a receipt for
// them. The caller chooses the lane, as in [Counters]; concurrent callers should use different
// lanes.
//
// # Without the lock
//
// While nothing is borrowed and mu is free, the word is open: it has the number of the newest
// bucket and the exact total, and a call that finds room there counts by swapping the whole word.
// While it is closed, calls take mu.
//
// Every writer stores the word before newest. So a caller that loads newest and then the word, and
// finds its time before the end of that bucket, holds a total that was exact at the instant of the
// second load and belongs to the bucket it would join (or to a newer one, which is then the one to
// join). If that total leaves no room, a serial order in which the call arrived at that instant
// rejects it too, even while the word is closed: the word then holds the earlier state, and the
// goroutine that closed it comes later in the order. If it leaves room and the word is open for
// that bucket, the swap is the instant at which the call is admitted. While units are lent the
// total is too high by their number, and rejects no call (see windowlend.go).
//
// The word has 20 bits of the bucket's number. A caller that is delayed between load and swap for
// exactly a multiple of 2^20 buckets (5.8 hours at 50 a second) and finds the same total is still
// within the limit. Only its receipt names a bucket that expired long ago, so units that it gives
// back stay until their bucket expires.
//
// The word has the era's mark too, so a swap never counts in a later era than that of the loaded
// word, and the receipt shows whether the units have been handed over since.
func (w *Window) TryAdd(lane uint32, now, n, limit int64) (r Receipt, ok bool) {
	if newest := w.newest.Load(); now < (newest+1)*w.width {
		seen := w.load()
		total := seen.total()
		if total > limit-n && !seen.lends() {
			return 0, false
		}
		if total <= limit-n && w.credits.Load() == nil && seen.takes(newest, total+n) {
			if w.swap(seen, n) {
				return w.receiptBy(seen, newest), true
			}
			w.contend()
		}
	}
	return w.tryAddOn(lane, now, n, limit)
}

// tryAddOn is TryAdd after the fast path.
func (w *Window) tryAddOn(lane uint32, now, n, limit int64) (r Receipt, ok bool) {
	for {
		c, cell, credit := w.cell(lane) // first, see windowlend.go
		newest := w.newest.Load()
		if now >= (newest+1)*w.width {
			return w.tryAddWithMutex(lane, now, n, limit)
		}
		seen := w.load()
		total := seen.total()
		if lending.Held(credit) >= max(n, 1) && total <= limit && cell.Spend(credit, n) {
			return w.receiptBy(seen, newest), true
		}
		if total > limit-n && !seen.lends() {
			return 0, false
		}
		// The lock collects or lends; c is nil if lending began after it was loaded.
		if total > limit-n || c != nil && c.Part(limit-n-total) > 0 {
			return w.tryAddWithMutex(lane, now, n, limit)
		}
		if !seen.takes(newest, total+n) {
			return w.tryAddWithMutex(lane, now, n, limit)
		}
		if w.swap(seen, n) {
			return w.receiptBy(seen, newest), true
		}
		w.contend()
	}
}

// tryAddWithMutex is TryAdd with mu.
func (w *Window) tryAddWithMutex(lane uint32, now, n, limit int64) (r Receipt, ok bool) {
	w.lockOnly()
	if w.total > limit-n {
		w.collectLocked()
	}
	w.rollLocked(now)
	if ok = w.fitsLocked(w.head, n, limit); ok {
		w.putLocked(w.head, n)
		w.lendLocked(lane, limit)
	}
	r = w.receiptLocked(w.head)
	w.unlock()
	return r, ok
}

// receiptBy returns the receipt of a call that counted in the newest bucket through the word.
func (w *Window) receiptBy(x word, newest int64) Receipt {
	if x&eraBits == 0 {
		return Receipt(newest)
	}
	return receiptOf(newest, x.era(w.era.Load()))
}
