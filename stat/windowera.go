package stat

import "slices"

// Eras: a call's units follow it when the window is handed over.
//
// When a rule changes to another shape, its new window begins with the counts of the old one (see
// [Window.SeedFrom], [Window.Reseed]), while calls still hold some of these units: they wait and
// may give up. Units that they give back must leave the new window too, and must not be counted
// there a second time when the calls run.
//
// So a window has eras. Each hand-over ends one, and the [Receipt] of a call carries the era in
// which the call took its units. The old window records its successor: everything counted up to
// then goes there, and nothing counted later, so the era decides whether units did, and the bucket
// where they are. [Window.Cancel] continues in the successors, and in theirs; [Window.Follow]
// returns where a call's units are now.
//
// A receipt has an era's last 11 bits, and the word that is swapped without the lock a mark that
// distinguishes seven eras. Of the possible eras, the latest is assumed. If that is wrong, units
// may stay that could have been given back, but no unit is given back twice. It takes 2,048
// hand-overs of one window while a call holds units there, or seven between the swap and the next
// step of the call.

// successor is a window that another one was handed over to, and the mapping of its buckets.
type successor struct {
	to       *Window
	era      uint64 // begun by the hand-over; units of earlier eras are in the successor
	toEra    uint64 // era of the successor at that time
	oldest   int64  // bucket that counted
	head     int64  // the newest one
	width    int64
	now      int64
	farthest int64 // farthest bucket that the successor could look ahead to
}

// bucket returns the successor's bucket for the units of a bucket; false if they had expired.
func (h *successor) bucket(b int64) (bucket int64, ok bool) {
	if b < h.oldest {
		return nowhere, false
	}
	at := b * h.width // a later bucket counts from its start
	if b <= h.head {
		at = min(at+h.width-1, h.now)
	}
	return min(number(at, h.to.width), h.farthest), true
}

// over reports whether no call is decided by the successor, nor by its own successors. A successor
// whose units have expired still counts what a running call is charged, see [Window.Charge].
func (h *successor) over() bool {
	h.to.lockOnly()
	defer h.to.unlock()
	return h.to.retired && !slices.ContainsFunc(h.to.successors, func(next successor) bool { return !next.over() })
}

// Retire records that the window no longer decides calls. Calls can still give back the units that
// they hold there.
func (w *Window) Retire() {
	w.lock()
	defer w.unlock()
	w.retired = true
}

// Receipt identifies where a window counts units: the number of the bucket, and in its upper bits
// the era of the window. In a window that was never handed over it is the number alone, time /
// width.
type Receipt int64

const (
	eraShift = 52 // the number of a bucket takes 51 bits and a sign: the shortest has 8 µs
	eras     = 1 << (63 - eraShift)
	nowhere  = 1 - 1<<(eraShift-1) // a bucket that has expired in every window
)

func receiptOf(bucket int64, era uint64) Receipt { return Receipt(bucket + int64(era%eras)<<eraShift) }

// split returns the bucket and the last bits of the era.
func (r Receipt) split() (bucket int64, era uint64) {
	era = uint64(r+1<<(eraShift-1)) >> eraShift
	return int64(r) - int64(era)<<eraShift, era
}

// HandedOver reports whether the window was handed over since the units were counted.
func (w *Window) HandedOver(r Receipt) bool {
	_, era := r.split()
	return w.era.Load()%eras != era
}

// Held is a number of units that a window counts.
type Held struct {
	Window  *Window
	Receipt Receipt
}

// Follow returns where else the units of a receipt are since the window was handed over. From then
// on they are separate: the receipt here covers only the units in this window.
func (w *Window) Follow(r Receipt) (here Receipt, elsewhere []Held) {
	w.lock()
	defer w.unlock()
	if w.replacedLocked(r) {
		return r, nil // a newer receipt would look as if its bucket had expired; see Charge
	}
	bucket, era := w.findLocked(r)
	return w.receiptLocked(bucket), w.elsewhereLocked(bucket, era)
}

// elsewhereLocked returns where the successors count the units of a bucket and an era.
func (w *Window) elsewhereLocked(bucket int64, era uint64) (elsewhere []Held) {
	for i := range w.successors {
		if h := &w.successors[i]; h.era > era {
			there, _ := h.bucket(bucket)
			elsewhere = append(elsewhere, Held{h.to, receiptOf(there, h.toEra)})
		}
	}
	return elsewhere
}

// receiptLocked returns the receipt for units that are counted in a bucket now.
func (w *Window) receiptLocked(bucket int64) Receipt { return receiptOf(bucket, w.era.Load()) }

// findLocked returns the bucket and the era of a receipt. Units counted before the window took the
// place of another are nowhere.
func (w *Window) findLocked(r Receipt) (bucket int64, era uint64) {
	if w.replacedLocked(r) {
		return nowhere, w.era.Load()
	}
	bucket, _ = r.split()
	return bucket, w.eraOf(r)
}

// eraOf returns the era of a receipt, in full.
func (w *Window) eraOf(r Receipt) uint64 {
	_, era := r.split()
	current := w.era.Load()
	return current - (current-era)%eras
}

// replacedLocked reports whether the receipt is older than the window's place.
func (w *Window) replacedLocked(r Receipt) bool { return w.eraOf(r) < w.born }

// handedOnLocked reports whether units of an era are in a successor as well.
func (w *Window) handedOnLocked(era uint64) bool {
	return len(w.successors) > 0 && w.successors[len(w.successors)-1].era > era
}

// forgetSuccessorsLocked drops successors that decide no call, and next. It locks them, so
// next must not be locked yet: some of them may be older.
func (w *Window) forgetSuccessorsLocked(next *Window) {
	successors := make([]successor, 0, len(w.successors)+1) // a new slice: Cancel may be using the old one
	for _, h := range w.successors {
		if h.to != next && !h.over() {
			successors = append(successors, h)
		}
	}
	w.successors = successors
}

// handOverLocked hands the window's counts to another, whose lock is held too, and returns them.
func (w *Window) handOverLocked(to *Window, now int64) []counted {
	h := successor{
		to: to, era: w.era.Add(1), toEra: to.era.Load(), oldest: w.head - w.span + 1, head: w.head,
		width: w.width, now: max(now, w.head*w.width), farthest: to.head + to.ahead,
	}
	w.successors = append(w.successors, h)
	var found []counted
	for b := h.oldest; b <= w.head+w.ahead; b++ {
		if n := *w.atLocked(b); n != 0 {
			there, _ := h.bucket(b)
			found = append(found, counted{there, n})
		}
	}
	return found
}
