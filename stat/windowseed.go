package stat

// Hand-over: a window begins with what was counted before it existed.
//
// # Invariants
//
//  1. What is handed over is what the old window counts at one instant, at which both are locked:
//     units that it counted before are in the new one, those that it counts later are not, and the
//     era in their receipts says which is the case (see windowera.go).
//  2. The locks of several windows are taken from the oldest to the youngest, so there is no deadlock.

// seed counts n units that passed at t, before the window existed. Units older than the window are
// ignored.
func (w *Window) seed(now, t, n int64) {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	if bucket := min(number(t, w.width), w.head); w.keepsLocked(bucket) {
		w.putLocked(bucket, n)
	}
}

// SeedFrom counts what another window of any shape counted, borrowed units
// included. A count that covers several buckets here goes to the newest of them. Calls that hold
// some of it hold it here too, see [Window.Follow].
//
// The old window must have been made before this one, here and in Reseed.
func (w *Window) SeedFrom(old *Window, now int64) {
	old.lock()
	defer old.unlock()
	old.rollLocked(now)
	now = max(now, old.head*old.width) // the caller may be late, and the units newer
	old.forgetSuccessorsLocked(w, now)
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	w.takeOverLocked(old.handOverLocked(w, now))
}

// Reseed makes the window count what old counts and nothing else, and calls then, all in
// one step: what old counts later, and only that, is missing. Both must be of the same
// calls. What was taken here before is gone; giving it back does nothing.
func (w *Window) Reseed(old *Window, now int64, then func()) {
	old.lock()
	defer old.unlock()
	old.rollLocked(now)
	now = max(now, old.head*old.width)
	old.forgetSuccessorsLocked(w, now)
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	clear(w.counts)
	w.total, w.waiting = 0, 0
	w.born = w.era.Add(1)
	w.takeOverLocked(old.handOverLocked(w, now))
	then()
}

// counted is units in a bucket.
type counted struct{ bucket, n int64 }

// takeOverLocked counts what another window has counted, as far as it lies in this one.
func (w *Window) takeOverLocked(found []counted) {
	for _, p := range found {
		if w.keepsLocked(p.bucket) {
			w.putLocked(p.bucket, p.n)
		}
	}
}
