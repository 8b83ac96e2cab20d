package stat

import "github.com/penstock-go/penstock/internal/lending"

// TryAdd counts n units at now if the window then holds at most limit, and
// returns the bucket they were counted in. The lane is the caller's choice, as in
// [Counters]: callers that run at the same time should use different ones.
//
// # Without the lock
//
// While nothing is borrowed and mu is free, sum is open: it has the number of the newest bucket and
// the exact total in one word, and a call that finds room there counts by compare-and-swap of the
// whole. A call that holds mu has closed the word first and added what was counted so to the newest
// bucket (see [Window.close]), so a swap never meets a window that is being changed, and the total
// that it was decided on is the one that it changes.
//
// Every writer stores sum before newest. So a caller that loads newest and then sum, and
// finds its time before the end of that bucket, holds a total that was exact at the
// instant of the second load and belongs to the bucket it would join (or to a newer one,
// which it would have to join as well by then). If that total leaves no room, a serial order in
// which the call arrived at that instant refuses it too, even while the word is closed: it then
// holds the state before, and the goroutine that closed it comes later in the order. If it leaves
// room and sum is open for that bucket, the swap is the instant at which the call is admitted.
// While something is lent the total is too high by that, and refuses no call (see windowlend.go).
//
// The word has 20 bits of the bucket's number. A caller that is delayed between load and swap for
// exactly a multiple of 2^20 buckets (5.8 hours at 50 a second) and finds the same total is still
// within the limit. Only the bucket that it is told is long gone, so units that it gives back stay
// until the bucket they are in has expired.
//
// The word has the era's mark too, so a swap never counts in a later era than that of the
// word that was loaded, and the caller knows whether what it counted was handed over.
func (w *Window) TryAdd(lane uint32, now, n, limit int64) (bucket int64, ok bool) {
	if newest := w.newest.Load(); now < (newest+1)*w.width {
		sum := w.sum.Load()
		total := int64(sum & mostTotal)
		if total > limit-n && sum&lent == 0 {
			return 0, false
		}
		if total <= limit-n && w.credits.Load() == nil && w.open(sum, newest, total+n) {
			if w.sum.CompareAndSwap(sum, sum+uint64(n)) {
				return w.stampOf(newest, sum), true
			}
			w.contend()
		}
	}
	return w.tryAddOn(lane, now, n, limit)
}

// tryAddOn is TryAdd past the quick path.
func (w *Window) tryAddOn(lane uint32, now, n, limit int64) (bucket int64, ok bool) {
	for {
		c, cell, credit := w.cell(lane) // first, see windowlend.go
		newest := w.newest.Load()
		if now >= (newest+1)*w.width {
			return w.tryAdd(lane, now, n, limit)
		}
		sum := w.sum.Load()
		total := int64(sum & mostTotal)
		if lending.Held(credit) >= max(n, 1) && total <= limit && cell.Spend(credit, n) {
			return w.stampOf(newest, sum), true
		}
		if total > limit-n && sum&lent == 0 {
			return 0, false
		}
		if total > limit-n || c != nil && c.Part(limit-n-total) > 0 { // even if the word began to lend after this call looked
			return w.tryAdd(lane, now, n, limit)
		}
		if !w.open(sum, newest, total+n) {
			return w.tryAdd(lane, now, n, limit)
		}
		if w.sum.CompareAndSwap(sum, sum+uint64(n)) {
			return w.stampOf(newest, sum), true
		}
		w.contend()
	}
}

// open reports whether a call may be counted by a swap of the word, which would then have that
// total.
func (w *Window) open(sum uint64, newest, total int64) bool {
	return sum&(locked|newestBits) == uint64(newest)<<newestAt&newestBits && uint64(total) < mostTotal
}

// stampOf is the bucket as returned to a caller that counted there by the word.
func (w *Window) stampOf(bucket int64, sum uint64) int64 {
	if sum&eraBits == 0 {
		return bucket
	}
	return stamp(bucket, eraOf(sum, w.era.Load()))
}

// tryAdd is TryAdd with the lock.
func (w *Window) tryAdd(lane uint32, now, n, limit int64) (bucket int64, ok bool) {
	w.close()
	if w.total > limit-n {
		w.collect()
	}
	w.roll(now)
	if ok = w.fits(w.head, n, limit); ok {
		w.put(w.head, n)
		w.lend(lane, limit)
	}
	bucket = w.stamp(w.head)
	w.unlock()
	return bucket, ok
}

// The word of a window's sum: whether it takes the lock to count, a mark of the era, the
// last bits of the number of the newest bucket, whether something is lent, and the total.
const (
	totalBits  = 39
	mostTotal  = 1<<totalBits - 1 // or more; then it takes the lock
	lent       = 1 << totalBits
	newestAt   = totalBits + 1
	locked     = 1 << 63
	eraAt      = 60
	eraBits    = locked - 1<<eraAt
	newestBits = 1<<eraAt - 1<<newestAt
	eraMarks   = 7
)

// eraMark tells an era from the six before it, and the first, whose mark is 0, from all.
func eraMark(era uint64) uint64 {
	if era == 0 {
		return 0
	}
	return 1 + (era-1)%eraMarks
}

// eraOf is the latest era up to now that a word may belong to, if its mark is not 0.
func eraOf(word, now uint64) uint64 { return now - (now-word&eraBits>>eraAt)%eraMarks }

// packed is the word for the state under mu.
func (w *Window) packed() uint64 {
	word := eraMark(w.era.Load())<<eraAt | uint64(w.head)<<newestAt&newestBits | uint64(min(max(w.total, 0), mostTotal))
	if w.waiting != 0 || w.total < 0 || w.total >= mostTotal {
		word |= locked
	}
	if w.lent != 0 {
		word |= lent
	}
	return word
}

// lock takes mu, closes the word and collects what is lent: the state under mu is then complete.
func (w *Window) lock() {
	w.close()
	w.collect()
}

// close takes mu and closes the word. What was counted without the lock is now in the
// newest bucket. So is what lanes may still spend.
func (w *Window) close() {
	w.mu.Lock()
	if w.sum.Load() >= locked { // it was left so
		return
	}
	if n := int64(w.sum.Or(locked)&mostTotal) - w.total; n != 0 {
		w.put(w.head, n)
	}
}

// unlock publishes the new state of the window in one step, and opens the word if calls may be
// counted without the lock.
func (w *Window) unlock() {
	w.show(0)
	w.mu.Unlock()
}

// show stores the state under mu where it is read without the lock, with these bits in the word as
// well.
func (w *Window) show(bits uint64) {
	w.sum.Store(w.packed() | bits) // before newest, see TryAdd
	if w.newest.Load() != w.head {
		w.newest.Store(w.head)
	}
}
