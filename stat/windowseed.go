package stat

// Hand-over: a window begins with what was counted before it was there.

// Seed counts n units that happened at t, before the window was there. Units
// older than the window are ignored.
func (w *Window) Seed(now, t, n int64) {
	w.lock()
	defer w.unlock()
	w.roll(now)
	if bucket := min(number(t, w.width), w.head); w.keeps(bucket) {
		w.put(bucket, n)
	}
}

// SeedFrom counts what another window of any shape counted, borrowed units
// included. What covers several buckets here goes to the newest of them.
func (w *Window) SeedFrom(old *Window, now int64) {
	old.lock()
	old.roll(now)
	now = max(now, old.head*old.width) // the caller may be late, and the units not as old
	found := old.past(now)
	old.unlock()

	w.lock()
	defer w.unlock()
	w.roll(now)
	w.inherit(found)
}

// Reseed makes the window count what old counts and nothing else, and calls then, all in
// one step: what old counts later, and only that, is missing. Both must be of the same
// calls. What was taken here is gone, and must not be given back: so who may take here is
// told by then.
func (w *Window) Reseed(old *Window, now int64, then func()) {
	old.lock()
	defer old.unlock()
	old.roll(now)
	w.lock()
	defer w.unlock()
	w.roll(max(now, old.head*old.width))
	clear(w.counts)
	w.total, w.waiting = 0, 0
	w.inherit(old.past(now))
	then()
}

// What is below needs mu.

// counted is units that were counted at a time, or will be.
type counted struct{ at, n int64 }

// past is what the window counts, and when; a coming bucket counts from its start.
func (w *Window) past(now int64) []counted {
	now = max(now, w.head*w.width)
	var found []counted
	for b := w.head - w.span + 1; b <= w.head+w.ahead; b++ {
		if n := *w.at(b); n != 0 {
			at := b * w.width
			if b <= w.head {
				at = min(at+w.width-1, now)
			}
			found = append(found, counted{at, n})
		}
	}
	return found
}

// inherit counts what another window has counted, as far as it lies in this one.
func (w *Window) inherit(found []counted) {
	for _, p := range found {
		if bucket := min(number(p.at, w.width), w.head+w.ahead); w.keeps(bucket) {
			w.put(bucket, p.n)
		}
	}
}
