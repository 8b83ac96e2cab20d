package stat

import "time"

// Borrowing: units are counted in buckets that have not begun, and can be moved to another bucket.
//
// # Invariants
//
//  1. As long as a bucket with borrowed units counts, the window is within the limit under which they
//     were borrowed, as was known then: units counted later look ahead as well, see fitsLocked.
//  2. While anything is borrowed the word is closed: every call takes mu and looks ahead.

// TryBorrow takes n units from a bucket that has not begun, so that the caller may run when it
// begins. It returns the wait, less than maxWait, and a receipt for the units.
//
// Only expiring units can be borrowed: the room of a later bucket is the number of units in the
// bucket that it pushes out. The arithmetic follows alibaba/Sentinel's
// StatisticNode.tryOccupyNext, but checks and reserves in one step.
func (w *Window) TryBorrow(now, n, limit int64, maxWait time.Duration) (wait time.Duration, r Receipt, ok bool) {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	wait, bucket, ok := w.borrowableLocked(now, n, limit, maxWait)
	if ok {
		w.putLocked(bucket, n)
	}
	return wait, w.receiptLocked(bucket), ok
}

// CanBorrow is [Window.TryBorrow] without taking.
func (w *Window) CanBorrow(now, n, limit int64, maxWait time.Duration) (wait time.Duration, ok bool) {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	wait, _, ok = w.borrowableLocked(now, n, limit, maxWait)
	return wait, ok
}

// Rebook is [Window.TryBorrow] for a caller that already holds n units in a bucket: on success they
// are moved, otherwise they stay. Units that have been handed over stay unless the caller followed
// them first (see [Window.Follow]). If their bucket has expired, there is nothing to move: ok is
// true, and the wait 0.
func (w *Window) Rebook(now int64, held Receipt, n, limit int64, maxWait time.Duration) (wait time.Duration, r Receipt, ok bool) {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	from, era := w.findLocked(held)
	switch {
	case !w.keepsLocked(from):
		return 0, held, true
	case w.handedOnLocked(era):
		return 0, held, false
	}
	w.putLocked(from, -n)
	wait, bucket, ok := w.borrowableLocked(now, n, limit, maxWait)
	if !ok {
		bucket = from
	}
	w.putLocked(bucket, n)
	return wait, w.receiptLocked(bucket), ok
}

// Move moves n units from their bucket to the bucket of a later time, if limit holds there too;
// otherwise they stay, as do units that have been handed over and not followed. It returns their
// current receipt.
func (w *Window) Move(held Receipt, at, n, limit int64) Receipt {
	w.lock()
	defer w.unlock()
	from, era := w.findLocked(held)
	to := w.clampLocked(number(at, w.width))
	if !w.keepsLocked(from) || to <= from || w.handedOnLocked(era) {
		return held
	}
	w.putLocked(from, -n)
	if !w.fitsLocked(to, n, limit) {
		to = from
	}
	w.putLocked(to, n)
	return w.receiptLocked(to)
}

// borrowableLocked returns the first coming bucket that n units can be borrowed from, and the wait
// until it begins; false if none begins in less than maxWait.
func (w *Window) borrowableLocked(now, n, limit int64, maxWait time.Duration) (wait time.Duration, bucket int64, ok bool) {
	if w.waiting >= limit {
		return 0, 0, false
	}
	passed := w.total
	for bucket = w.head + 1; bucket <= w.head+w.ahead; bucket++ {
		wait = time.Duration(bucket*w.width - now)
		if wait >= maxWait {
			return 0, 0, false
		}
		expiring := *w.atLocked(bucket - w.span)
		if passed-expiring+w.waiting <= limit-n {
			return wait, bucket, true
		}
		passed -= expiring
	}
	return 0, 0, false
}
