package stat

import "slices"

// Eras: what a call holds in a window follows it where the window is handed over.
//
// When a rule changes to another shape, its new window begins with what the old one counts (see
// [Window.SeedFrom], [Window.Reseed]), and calls still hold some of that: they wait and may give
// up. What they give back must leave the new window too, and what they hold must not be counted
// there a second time when they run.
//
// So a window has eras. Each hand-over ends one, and the bucket number that a call gets has in its
// upper bits the era in which the call took (see [stamp]). The old window notes its heir: all that
// it counts at that point goes there, and nothing that it counts later, so the era says whether
// units did, and the bucket says where they are. [Window.Cancel] continues in the heirs, and in
// theirs; with [Window.Follow] a call finds out what it now holds.
//
// An era is identified by its last bits: 11 in a bucket, and in the word that is swapped without
// the lock enough to distinguish seven. Of the eras that it may be, the latest is assumed. If that
// is wrong, units may stay that could have been given back, but none are given back that aren't
// there. It takes 2,048 hand-overs of one window while a call holds units there, or seven between
// the swap and the next step of the call.

// heir is a window that another one was handed over to, and where its buckets went.
type heir struct {
	to       *Window
	era      uint64 // that began with it; what was taken in earlier eras is in the heir
	toEra    uint64 // the era of the heir then
	oldest   int64  // bucket that counted
	head     int64  // the newest one
	width    int64
	now      int64
	farthest int64 // bucket that the heir could look ahead to
}

// bucket is where in the heir the units of a bucket are; false if they had expired.
func (h *heir) bucket(b int64) (bucket int64, ok bool) {
	if b < h.oldest {
		return nowhere, false
	}
	at := b * h.width // when a coming bucket begins, it counts
	if b <= h.head {
		at = min(at+h.width-1, h.now)
	}
	return min(number(at, h.to.width), h.farthest), true
}

// over reports whether, at now, what the heir was handed no longer makes a difference: it has
// expired, or no call is decided by the heir, and the same is true of its own heirs.
func (h *heir) over(now int64) bool {
	h.to.lock()
	defer h.to.unlock()
	if !h.to.retired && h.farthest > number(now, h.to.width)-h.to.span {
		return false
	}
	return !slices.ContainsFunc(h.to.heirs, func(next heir) bool { return !next.over(now) })
}

// Retire notes that no call is decided by the window any longer. Calls can still give back what
// they hold there.
func (w *Window) Retire() {
	w.lock()
	defer w.unlock()
	w.retired = true
}

const (
	eraShift = 52 // the number of a bucket takes 51 bits and a sign: the shortest has 8 µs
	eras     = 1 << (63 - eraShift)
	nowhere  = 1 - 1<<(eraShift-1) // a bucket that has expired in every window
)

// stamp is a bucket with the era of what is counted there; in a window that was never handed over
// it is the bucket itself.
func stamp(bucket int64, era uint64) int64 { return bucket + int64(era%eras)<<eraShift }

func unstamp(stamped int64) (bucket int64, era uint64) {
	era = uint64(stamped+1<<(eraShift-1)) >> eraShift
	return stamped - int64(era)<<eraShift, era
}

// HandedOver reports whether the window was handed over since units were counted in the
// bucket.
func (w *Window) HandedOver(bucket int64) bool {
	_, era := unstamp(bucket)
	return w.era.Load()%eras != era
}

// Held is a number of units that a window counts, in a bucket.
type Held struct {
	Window *Window
	Bucket int64
}

// Follow says where else the units that were counted in the bucket are, since the window was
// handed over. From then on they are separate: the returned bucket is only for those in this
// window.
func (w *Window) Follow(bucket int64) (here int64, elsewhere []Held) {
	w.lock()
	defer w.unlock()
	bucket, era := w.find(bucket)
	for i := range w.heirs {
		if h := &w.heirs[i]; h.era > era {
			there, _ := h.bucket(bucket)
			elsewhere = append(elsewhere, Held{h.to, stamp(there, h.toEra)})
		}
	}
	return w.stamp(bucket), elsewhere
}

// The methods below need mu.

// stamp is the bucket as returned to a caller that counts there now.
func (w *Window) stamp(bucket int64) int64 { return stamp(bucket, w.era.Load()) }

// find is the bucket and the era that a stamped one means. What was counted before the
// window took over another's place is nowhere.
func (w *Window) find(stamped int64) (bucket int64, era uint64) {
	bucket, era = unstamp(stamped)
	now := w.era.Load()
	if era = now - (now-era)%eras; era < w.born {
		return nowhere, now
	}
	return bucket, era
}

// follows reports whether units of an era are in an heir as well.
func (w *Window) follows(era uint64) bool {
	return len(w.heirs) > 0 && w.heirs[len(w.heirs)-1].era > era
}

// forgetHeirs forgets heirs that have nothing left, and the one that is about to become the latest.
// It locks them, so the next window must not be locked yet: some of them may be older.
func (w *Window) forgetHeirs(next *Window, now int64) {
	heirs := make([]heir, 0, len(w.heirs)+1) // a new slice, as the old one may be in use, see Cancel
	for _, h := range w.heirs {
		if h.to != next && !h.over(now) {
			heirs = append(heirs, h)
		}
	}
	w.heirs = heirs
}

// bequeath hands over what the window counts, which it returns, to another whose lock is held too.
func (w *Window) bequeath(to *Window, now int64) []counted {
	h := heir{
		to: to, era: w.era.Add(1), toEra: to.era.Load(), oldest: w.head - w.span + 1, head: w.head,
		width: w.width, now: max(now, w.head*w.width), farthest: to.head + to.ahead,
	}
	w.heirs = append(w.heirs, h)
	var found []counted
	for b := h.oldest; b <= w.head+w.ahead; b++ {
		if n := *w.at(b); n != 0 {
			there, _ := h.bucket(b)
			found = append(found, counted{there, n})
		}
	}
	return found
}
