package stat

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/shared"
)

// Window meters admissions over a sliding interval, exactly: [Window.TryAdd] checks and counts in
// one atomic step. Calls on one window are linearizable: they never exceed the limit, and every
// rejection is one that some serial order would make as well. It is safe for concurrent use.
//
// Buckets are identified by their number, time / width. One ring holds the buckets that count and,
// for borrowing, buckets that have not begun:
//
//	          span: they count now           ahead: can be borrowed
//	... | head-2 | head-1 | head (newest) | head+1 | head+2 | ...
//	    \____________ used ____________/  \____ waiting ____/
//
// When time reaches a bucket, it opens with its borrowed units already counted, and the oldest
// bucket expires.
//
// mu guards the fields below it. Of the fields above it, calls swap word and increment failed
// without mu; the others change only under mu.
//
// # Reading order
//
// windowring.go: which buckets are kept. windowword.go: the word through which calls count without
// mu, bit by bit. windowadd.go: how a call counts through it, and why the count is exact.
// windowborrow.go: units from later buckets. windowlend.go: units lent to processors ahead of their
// calls, if they contend for the word. windowseed.go and windowera.go: how one window continues
// another, and how calls find their units there.
//
// All of them use two words of windowera.go: a [Receipt] holds the bucket and the era of a call's
// units, and an era is a number that changes when one window is handed over to another.
type Window struct {
	newest  shared.Int64                    // mirrors head
	word    shared.Uint64                   // mirrors total, or is ahead of it; see word
	era     shared.Uint64                   // changes under mu
	credits shared.Pointer[lending.Credits] // nil unless calls contended lately; changes under mu

	failed shared.Uint32 // swaps of the word that failed in this bucket

	mu         shared.Mutex
	width      int64       // of a bucket, ns
	span       int64       // number of buckets that count
	ahead      int64       // number of buckets that can be borrowed from
	head       int64       // number of the newest bucket
	waiting    int64       // sum of the buckets ahead
	counts     []int64     // ring of span+ahead buckets
	total      int64       // of the buckets that count
	lent       int64       // to lanes since the last collection, spent or not; all of it counts in head
	lentAt     int64       // number of the last bucket in which units were lent
	born       uint64      // era in which it took the place of another
	successors []successor // windows it was handed over to, the latest last; replaced as a whole
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

// Fits reports whether [Window.TryAdd] would admit n units at now. It takes nothing, so the answer
// is only a prediction: TryAdd decides.
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

// HasRoom is Fits for units that will not be counted here: it checks only the present, no later
// bucket.
func (w *Window) HasRoom(now, n, limit int64) bool {
	if now < (w.newest.Load()+1)*w.width {
		seen := w.load()
		if total := seen.total(); total < maxTotal && (total <= limit-n || !seen.lends()) {
			return total <= limit-n
		}
	}
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	return w.total <= limit-n
}

// AddAt counts n units on a lane, whatever the total, in the bucket of at, and returns a receipt for
// them. A past time counts as now, and a time beyond the look-ahead is counted in its last bucket.
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

// Cancel takes n units out of the bucket they were counted in, unless that has expired, and out of
// every window that they were handed over to.
//
// Units of the newest bucket leave through the word, like units that are counted there: see
// [Window.TryAdd]. The receipt shows that they were not handed over.
func (w *Window) Cancel(r Receipt, n int64) {
	newest := w.newest.Load()
	if seen := w.load(); seen.total() >= n && seen.takes(newest, seen.total()) && !seen.lends() &&
		w.receiptBy(seen, newest) == r && w.swap(seen, -n) {
		return
	}
	w.lockOnly() // no need to collect: these n units are not lent
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

// Charge counts n more units for a call that holds a receipt here, in the newest bucket and whatever
// the limit, but none that would take the total beyond most. It returns how many were counted, and
// where else the call's units are since the window was handed over: the debit is not there yet, so
// the caller charges those windows as well. Later successors inherit them.
//
// If the window has taken the place of another since the receipt, ok is false and nothing is
// counted: the call's units there came back with those of the other window. A receipt whose bucket
// has expired is charged like any other.
func (w *Window) Charge(r Receipt, now, n, most int64) (counted int64, elsewhere []Held, ok bool) {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	bucket, era := w.findLocked(r)
	if w.replacedLocked(r) {
		return 0, nil, false
	}
	counted = max(0, min(n, most-w.total, maxSum-w.total))
	w.putLocked(w.head, counted)
	return counted, w.elsewhereLocked(bucket, era), true
}

// maxSum is the number of units at which a window stops counting, so that no sum overflows.
const maxSum = 1 << 62

// Within reports whether the window stays within limit for as long as the bucket of the receipt
// counts. It is for a second limit on a call that has units in the window.
func (w *Window) Within(r Receipt, limit int64) bool {
	if seen := w.load(); !seen.closed() && seen.total() <= limit {
		return true // nothing is borrowed: the total only falls
	}
	w.lock()
	defer w.unlock()
	bucket, _ := w.findLocked(r)
	return !w.keepsLocked(bucket) || w.fitsLocked(bucket, 0, limit)
}

// Sum returns the units that count at now.
func (w *Window) Sum(now int64) int64 {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	return w.total
}

// Waiting returns the units borrowed from buckets that have not begun at now.
func (w *Window) Waiting(now int64) int64 {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	return w.waiting
}

// RetryAfter returns the time from now until n units fit if no other call comes first; false if
// they never will.
func (w *Window) RetryAfter(now, n, limit int64) (time.Duration, bool) {
	w.lock()
	defer w.unlock()
	w.rollLocked(now)
	if n > limit {
		return 0, false
	}
	// They fit from the first bucket on for whose whole span there is room. The last borrowed
	// bucket expires after ahead+span.
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

// Room returns the maximum number of units that [Window.Fits] would admit at now, 0 if none.
func (w *Window) Room(now, limit int64) int64 {
	if now < (w.newest.Load()+1)*w.width {
		if seen := w.load(); !seen.closed() && !seen.lends() && seen.total() < maxTotal {
			return max(0, limit-seen.total()) // nothing is borrowed
		}
	}
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
