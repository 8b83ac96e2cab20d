package stat

// The ring of a window: the buckets it keeps, and their counts. Everything here needs mu.
//
// # Invariants
//
// total is the sum of the buckets that count, waiting that of the buckets ahead. head only moves
// forward, in rollLocked and nowhere else. counts has one element for each kept bucket, at its
// number modulo the length.

// rollLocked opens the bucket of now and all before it. It is the only place where head moves, and
// it only moves forward.
func (w *Window) rollLocked(now int64) {
	if now < (w.head+1)*w.width { // avoids a division if there is nothing to do
		return
	}
	w.collectLocked() // lent units are of the bucket that ends
	w.restLocked(now)
	to := number(now, w.width)
	if to-w.head >= int64(len(w.counts)) {
		clear(w.counts)
		w.head, w.total, w.waiting = to, 0, 0
	}
	for w.head < to {
		w.head++
		opened, expired := w.atLocked(w.head), w.atLocked(w.head-w.span)
		w.waiting -= *opened
		w.total += *opened - *expired
		*expired = 0 // its element is now that of the farthest bucket ahead
	}
}

// putLocked changes the count of a bucket that the window keeps.
func (w *Window) putLocked(bucket, n int64) {
	*w.atLocked(bucket) += n
	if bucket > w.head {
		w.waiting += n
		return
	}
	w.total += n
}

// fitsLocked reports whether the window would hold at most limit with n more units in the given
// bucket, from now on for as long as that bucket counts. While nothing is borrowed, only the
// present matters: the total can only fall.
func (w *Window) fitsLocked(bucket, n, limit int64) bool {
	total := w.total
	if bucket <= w.head && total > limit-n {
		return false
	}
	if w.waiting == 0 && bucket <= w.head {
		return true
	}
	for b := w.head + 1; b <= w.head+w.ahead && b < bucket+w.span; b++ {
		total += *w.atLocked(b) - *w.atLocked(b - w.span)
		if b >= bucket && total > limit-n {
			return false
		}
	}
	return true
}

// heldLocked returns the units in a bucket that counts or has not begun.
func (w *Window) heldLocked(bucket int64) int64 {
	if !w.keepsLocked(bucket) {
		return 0
	}
	return *w.atLocked(bucket)
}

func (w *Window) keepsLocked(bucket int64) bool {
	return bucket > w.head-w.span && bucket <= w.head+w.ahead
}

func (w *Window) clampLocked(bucket int64) int64 {
	return min(max(bucket, w.head), w.head+w.ahead)
}

func (w *Window) atLocked(bucket int64) *int64 {
	size := int64(len(w.counts))
	i := bucket % size
	if i < 0 {
		i += size
	}
	return &w.counts[i]
}

// number returns the number of the bucket that t falls in, also before 1970.
func number(t, width int64) int64 { return floor(t, width) / width }
