package stat

import "time"

// Borrowing: units are counted in buckets that have not begun, and may change the bucket.

// TryBorrow takes n units from a bucket that has not begun, so that the caller may run when that
// begins. It returns how long that takes, less than maxWait, and the bucket.
//
// Only what expires can be borrowed: a coming bucket has room as far as the
// bucket that it pushes out has units. The arithmetic is that of
// alibaba/Sentinel's StatisticNode.tryOccupyNext; making check and booking one step is ours.
func (w *Window) TryBorrow(now, n, limit int64, maxWait time.Duration) (wait time.Duration, bucket int64, ok bool) {
	w.lock()
	defer w.unlock()
	w.roll(now)
	if wait, bucket, ok = w.borrowable(now, n, limit, maxWait); ok {
		w.put(bucket, n)
	}
	return wait, w.stamp(bucket), ok
}

// CanBorrow is [Window.TryBorrow] without taking.
func (w *Window) CanBorrow(now, n, limit int64, maxWait time.Duration) (wait time.Duration, ok bool) {
	w.lock()
	defer w.unlock()
	w.roll(now)
	wait, _, ok = w.borrowable(now, n, limit, maxWait)
	return wait, ok
}

// Rebook is [Window.TryBorrow] for a caller that holds n units in a bucket
// already: on success they are moved, otherwise they stay. What has been handed over
// must be followed before (see [Window.Follow]), or it stays.
func (w *Window) Rebook(now, held, n, limit int64, maxWait time.Duration) (wait time.Duration, bucket int64, ok bool) {
	w.lock()
	defer w.unlock()
	w.roll(now)
	from, era := w.find(held)
	switch {
	case !w.keeps(from):
		return 0, held, true
	case w.follows(era):
		return 0, held, false
	}
	w.put(from, -n)
	if wait, bucket, ok = w.borrowable(now, n, limit, maxWait); !ok {
		bucket = from
	}
	w.put(bucket, n)
	return wait, w.stamp(bucket), ok
}

// Move carries n units from the bucket that holds them to the one of a later
// time, if limit holds there too; otherwise they stay, as do units that have been handed over and
// not followed. It returns the bucket that holds them now.
func (w *Window) Move(held, at, n, limit int64) int64 {
	w.lock()
	defer w.unlock()
	from, era := w.find(held)
	to := w.clamp(number(at, w.width))
	if !w.keeps(from) || to <= from || w.follows(era) {
		return held
	}
	w.put(from, -n)
	if !w.fits(to, n, limit) {
		to = from
	}
	w.put(to, n)
	return w.stamp(to)
}

// borrowable needs mu.
func (w *Window) borrowable(now, n, limit int64, maxWait time.Duration) (wait time.Duration, bucket int64, ok bool) {
	if w.waiting >= limit {
		return 0, 0, false
	}
	passed := w.total
	for bucket = w.head + 1; bucket <= w.head+w.ahead; bucket++ {
		wait = time.Duration(bucket*w.width - now)
		if wait >= maxWait {
			return 0, 0, false
		}
		expiring := *w.at(bucket - w.span)
		if passed-expiring+w.waiting <= limit-n {
			return wait, bucket, true
		}
		passed -= expiring
	}
	return 0, 0, false
}
