package stat

// TryAdd counts n units at now if the window then holds at most limit, and
// returns the bucket they were counted in.
//
// # Without the lock
//
// While nothing is borrowed and nobody holds mu, sum is open: it has the number of the
// newest bucket and the exact total in one word, and who finds room there counts by
// compare-and-swap of the whole. Who holds mu has closed the word first and added what
// was counted so to the newest bucket (see [Window.lock]), so a swap never meets a
// window that is being changed, and the total that it was decided on is the one that
// it changes.
//
// Every writer stores sum before newest. So a caller that loads newest and then sum, and
// finds its time before the end of that bucket, holds a total that was exact at the
// instant of the second load and belongs to the bucket it would join (or to a newer one,
// which it would have to join as well by then). If that total leaves no room, a serial
// order in which the call came at that instant refuses it too, also while the word is
// closed: then it says what was before, and who closed it comes after. If it leaves room
// and sum is open for that bucket, the swap is the instant at which the call is admitted.
//
// The word has 23 bits of the bucket's number. A caller that is held up between load
// and swap for exactly a multiple of 2^23 buckets and finds the same total is within
// the limit all the same. Only the bucket that it is told is long gone, so that units
// which it gives back stay until theirs is.
func (w *Window) TryAdd(now, n, limit int64) (bucket int64, ok bool) {
	for {
		newest := w.newest.Load()
		if now >= (newest+1)*w.width {
			return w.tryAdd(now, n, limit)
		}
		sum := w.sum.Load()
		total := int64(sum & mostTotal)
		if total > limit-n {
			return 0, false
		}
		if sum>>totalBits != uint64(newest)&newestMask || uint64(total+n) >= mostTotal {
			return w.tryAdd(now, n, limit)
		}
		if w.sum.CompareAndSwap(sum, sum+uint64(n)) {
			return newest, true
		}
	}
}

// tryAdd is TryAdd with the lock.
func (w *Window) tryAdd(now, n, limit int64) (bucket int64, ok bool) {
	w.lock()
	w.roll(now)
	bucket, ok = w.head, w.fits(w.head, n, limit)
	if ok {
		w.put(bucket, n)
	}
	w.unlock()
	return bucket, ok
}

// The word of a window's sum: whether it takes the lock to count, the number of the
// newest bucket, and the total.
const (
	totalBits  = 40
	mostTotal  = 1<<totalBits - 1 // or more; then it takes the lock
	locked     = 1 << 63
	newestMask = 1<<(63-totalBits) - 1
)

// packed is the word that says what stands under mu.
func (w *Window) packed() uint64 {
	word := uint64(w.head)&newestMask<<totalBits | uint64(min(max(w.total, 0), mostTotal))
	if w.waiting != 0 || w.total < 0 || w.total >= mostTotal {
		word |= locked
	}
	return word
}

// lock takes mu and closes the word. What was counted without the lock is now in the
// newest bucket.
func (w *Window) lock() {
	w.mu.Lock()
	if w.sum.Load() >= locked { // it was left so
		return
	}
	if n := int64(w.sum.Or(locked)&mostTotal) - w.total; n != 0 {
		w.put(w.head, n)
	}
}

// unlock shows what has become of the window, all at once, and opens the word if calls may
// be counted without the lock.
func (w *Window) unlock() {
	w.sum.Store(w.packed()) // before newest, see TryAdd
	if w.newest.Load() != w.head {
		w.newest.Store(w.head)
	}
	w.mu.Unlock()
}
