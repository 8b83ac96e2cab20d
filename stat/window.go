package stat

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/shared"
)

// Window meters admissions over a sliding interval, exactly: [Window.TryAdd]
// checks and counts in one atomic step. Calls on one window are linearizable:
// never over the limit, and nothing refused that some serial order would have
// admitted. It is safe for concurrent use.
//
// Buckets are known by their number, time / width. One ring holds those that
// count and those that have not begun, which is what borrowing needs:
//
//	          span: they count now           ahead: can be borrowed
//	... | head-2 | head-1 | head (newest) | head+1 | head+2 | ...
//	    \____________ used ____________/  \____ waiting ____/
//
// When time reaches a bucket, it opens with what was borrowed from it already
// counted, and the oldest one is forgotten.
//
// mu guards the fields below it. Of those above, calls swap the word and count failed without mu;
// the others change under mu.
//
// # Reading order
//
// Each file begins with its invariants. windowring.go: which buckets are kept. windowword.go: the
// word by which calls count without mu, bit by bit. windowadd.go: how a call counts by it, and why
// that is exact. windowborrow.go: units from coming buckets. windowlend.go: units that processors
// get ahead of their calls, where they contend for the word. windowseed.go and windowera.go: how one
// window continues another, and how calls find there what they hold.
type Window struct {
	newest  shared.Int64                    // mirrors head
	word    shared.Uint64                   // mirrors total, or is ahead of it; see word
	era     shared.Uint64                   // changes under mu
	credits shared.Pointer[lending.Credits] // nil while nothing was ever lent, or nothing for long; changes under mu

	failed shared.Uint32 // swaps of the word that failed in this bucket

	mu         shared.Mutex
	width      int64       // of a bucket, ns
	span       int64       // how many buckets count
	ahead      int64       // how many can be borrowed from
	head       int64       // number of the newest bucket
	waiting    int64       // sum of the buckets ahead
	counts     []int64     // ring of span+ahead buckets
	total      int64       // of the buckets that count
	lent       int64       // to lanes since it was collected last, spent or not; all of it counts in head
	lentAt     int64       // number of the bucket in which something was lent last
	born       uint64      // the era in which it took over another's place
	successors []successor // that it was handed over to, the latest last; replaced as a whole
	retired    bool
}

// NewWindow returns an empty window.
func NewWindow(shape Shape) (*Window, error) {
	if err := shape.Validate(); err != nil {
		return nil, err
	}
	w := &Window{width: int64(shape.Width()), span: int64(shape.Buckets), ahead: int64(shape.Buckets)}
	if shape.Strict {
		w.span++
	}
	w.counts = make([]int64, w.span+w.ahead)
	w.head = number(never, w.width)
	w.newest.Store(w.head)
	w.word.Store(uint64(w.packedLocked()))
	if lending.Always {
		w.credits.Store(lending.NewCredits())
	}
	return w, nil
}

// Fits reports whether [Window.TryAdd] would admit n units at now, as things stand. It
// takes nothing, so the answer commits to nothing: only TryAdd decides.
func (w *Window) Fits(now, n, limit int64) bool {
	if now < (w.newest.Load()+1)*w.width {
		switch seen := w.load(); {
		case seen.total() > limit-n:
			if !seen.lends() {
				return false
			}
		case !seen.closed():
			return true // nothing is borrowed
		}
	}
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	return w.fitsLocked(w.head, n, limit)
}

// HasRoom is Fits for units that will not be counted here: it looks at no coming
// bucket, only at the present.
func (w *Window) HasRoom(now, n, limit int64) bool {
	if now < (w.newest.Load()+1)*w.width {
		seen := w.load()
		if total := seen.total(); total < mostTotal && (total <= limit-n || !seen.lends()) {
			return total <= limit-n
		}
	}
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	return w.total <= limit-n
}

// AddAt counts n units on a lane, whatever the total, in the bucket of a time that may lie
// ahead of now, as far as the window can look ahead. It returns a receipt for them.
func (w *Window) AddAt(lane uint32, now, at, n int64) Receipt {
	if at <= now {
		r, _ := w.TryAdd(lane, now, n, math.MaxInt64)
		return r
	}
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	bucket := w.clampLocked(number(at, w.width))
	w.putLocked(bucket, n)
	return w.receiptLocked(bucket)
}

// Cancel takes n units out of the bucket they were counted in, if it still
// counts or is still to come, and out of every window that they were handed over to.
func (w *Window) Cancel(r Receipt, n int64) {
	w.close() // what is lent may stay so: n units of the bucket are not
	bucket, era := w.findLocked(r)
	if w.keepsLocked(bucket) {
		w.putLocked(bucket, -n)
	}
	successors := w.successors
	w.unlock()
	for i := range successors {
		if h := &successors[i]; h.era > era {
			if there, ok := h.bucket(bucket); ok {
				h.to.Cancel(receiptOf(there, h.toEra), n)
			}
		}
	}
}

// Within reports whether the window holds at most limit wherever the bucket of units that a call
// holds counts. The call asks that for a second limit.
func (w *Window) Within(r Receipt, limit int64) bool {
	if seen := w.load(); !seen.closed() && seen.total() <= limit {
		return true // nothing is borrowed: there will only be less
	}
	w.lock()
	defer w.unlock()
	bucket, _ := w.findLocked(r)
	return !w.keepsLocked(bucket) || w.fitsLocked(bucket, 0, limit)
}

// Sum is the units that count at now.
func (w *Window) Sum(now int64) int64 {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	return w.total
}

// Waiting is the units borrowed from buckets that have not begun at now.
func (w *Window) Waiting(now int64) int64 {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	return w.waiting
}

// RetryAfter is how long after now n units will fit if no other call comes first; false if they
// never will.
func (w *Window) RetryAfter(now, n, limit int64) (time.Duration, bool) {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	if n > limit {
		return 0, false
	}
	// They fit in the first bucket after which the window keeps their room for as
	// long as that bucket counts. The last that is borrowed leaves after ahead+span.
	total, first := w.total, w.head
	for b := w.head; b < first+w.span && b <= w.head+w.ahead+w.span; b++ {
		if b > w.head {
			total += w.heldLocked(b) - w.heldLocked(b-w.span)
		}
		if total > limit-n {
			first = b + 1
		}
	}
	return time.Duration(max(0, first*w.width-now)), true
}

// Room is the most units that [Window.Fits] would admit at now, 0 if none.
func (w *Window) Room(now, limit int64) int64 {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	total, most := w.total, w.total
	for b := w.head + 1; w.waiting != 0 && b <= w.head+w.ahead && b < w.head+w.span; b++ {
		total += *w.atLocked(b) - *w.atLocked(b - w.span)
		most = max(most, total)
	}
	return max(0, limit-most)
}
