package stat

// Hand-over: a window begins with what was counted before it existed.

// seed counts n units that passed at t, before the window existed. Units older than the window are
// ignored.
func (w *Window) seed(now, t, n int64) {
	w.lock()
	defer w.unlock()
	w.roll(now)
	if bucket := min(number(t, w.width), w.head); w.keeps(bucket) {
		w.put(bucket, n)
	}
}

// SeedFrom counts what another window of any shape counted, borrowed units
// included. A count that covers several buckets here goes to the newest of them. Calls that hold
// some of it hold it here too, see [Window.Follow].
//
// The old window must have been made before this one, here and in Reseed: the locks of several
// windows are taken from the oldest to the youngest, so there is no deadlock.
func (w *Window) SeedFrom(old *Window, now int64) {
	old.lock()
	defer old.unlock()
	old.roll(now)
	now = max(now, old.head*old.width) // the caller may be late, and the units newer
	old.forgetHeirs(w, now)
	w.lock()
	defer w.unlock()
	w.roll(now)
	w.inherit(old.bequeath(w, now))
}

// Reseed makes the window count what old counts and nothing else, and calls then, all in
// one step: what old counts later, and only that, is missing. Both must be of the same
// calls. What was taken here before is gone; giving it back does nothing.
func (w *Window) Reseed(old *Window, now int64, then func()) {
	old.lock()
	defer old.unlock()
	old.roll(now)
	now = max(now, old.head*old.width)
	old.forgetHeirs(w, now)
	w.lock()
	defer w.unlock()
	w.roll(now)
	clear(w.counts)
	w.total, w.waiting = 0, 0
	w.born = w.era.Add(1)
	w.inherit(old.bequeath(w, now))
	then()
}

// What is below needs mu.

// counted is units in a bucket.
type counted struct{ bucket, n int64 }

// inherit counts what another window has counted, as far as it lies in this one.
func (w *Window) inherit(found []counted) {
	for _, p := range found {
		if w.keeps(p.bucket) {
			w.put(p.bucket, p.n)
		}
	}
}
