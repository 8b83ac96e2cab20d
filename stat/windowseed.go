package stat

// Hand-over: a new window starts with counts from before it existed.
//
// # Invariants
//
//  1. The old window hands over its counts at one instant, at which both are locked: units counted
//     before are in the new one, units counted later are not, and the era in their receipts tells them
//     apart (see windowera.go).
//  2. The locks of several windows are taken from the oldest to the youngest, so there is no deadlock.

// seed counts n units that were admitted at t, before the window existed. Units older than the
// window are ignored.
func (w *Window) seed(now, t, n int64) {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	if bucket := min(number(t, w.width), w.head); w.keepsLocked(bucket) {
		w.putLocked(bucket, n)
	}
}

// SeedFrom counts the units of another window of any shape. The units of a bucket that covers
// several buckets here go to the newest of these that has begun; borrowed units go to the bucket in
// which theirs begins. Calls that hold some of these units hold them here too, see [Window.Follow].
//
// The old window must have been made before this one, here and in Reseed.
func (w *Window) SeedFrom(old *Window, now int64) {
	old.lock()
	defer old.unlock()
	old.rollLocked(now)
	now = max(now, old.head*old.width) // the caller may be late, and the units newer
	old.forgetSuccessorsLocked(w)
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	w.takeOverLocked(old.handOverLocked(w, now))
}

// Reseed makes the window count exactly the units of old and calls the function then, all in one
// step: only units that old counts later are missing. Both windows must meter the same calls. Units
// taken here earlier are gone; giving them back does nothing.
func (w *Window) Reseed(old *Window, now int64, then func()) {
	old.lock()
	defer old.unlock()
	old.rollLocked(now)
	now = max(now, old.head*old.width)
	old.forgetSuccessorsLocked(w)
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	clear(w.counts)
	w.total, w.waiting = 0, 0
	w.born = w.era.Add(1)
	w.takeOverLocked(old.handOverLocked(w, now))
	then()
}

// counted is a number of units in a bucket.
type counted struct{ bucket, n int64 }

// takeOverLocked counts the units of another window that lie within this one.
func (w *Window) takeOverLocked(found []counted) {
	for _, p := range found {
		if w.keepsLocked(p.bucket) {
			w.putLocked(p.bucket, p.n)
		}
	}
}
