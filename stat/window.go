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
// # Invariants
//
// Under mu: total is the sum of the buckets that count, waiting of those ahead.
// head never decreases; a caller whose time is older than head's bucket joins it.
//
// The ring is in this file; windowsum.go has how calls are decided without mu (see
// [Window.TryAdd]), windowlend.go how those far from the limit don't even share a word,
// windowborrow.go borrowing, windowseed.go how one window takes over
// what another has counted, and windowera.go how calls find what they hold there.
type Window struct {
	newest  shared.Int64                    // mirrors head
	sum     shared.Uint64                   // mirrors total, or is ahead of it; see packed
	era     shared.Uint64                   // changes under mu
	credits shared.Pointer[lending.Credits] // nil while nothing was ever lent, or nothing for long; changes under mu

	failed shared.Uint32 // how many exchanges of sum have, in this bucket

	mu      shared.Mutex
	width   int64   // of a bucket, ns
	span    int64   // how many buckets count
	ahead   int64   // how many can be borrowed from
	head    int64   // number of the newest bucket
	waiting int64   // sum of the buckets ahead
	counts  []int64 // ring of span+ahead buckets
	total   int64   // of the buckets that count
	lent    int64   // to lanes since it was collected last, spent or not; all of it counts in head
	lentAt  int64   // number of the bucket in which something was lent last
	born    uint64  // the era in which it took over another's place
	heirs   []heir  // that it was handed over to, the latest last; replaced as a whole
	retired bool
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
	w.sum.Store(w.packed())
	if lending.Always {
		w.credits.Store(lending.NewCredits())
	}
	return w, nil
}

// Fits reports whether [Window.TryAdd] would admit n units at now, as things stand. It
// takes nothing, so the answer commits to nothing: only TryAdd decides.
func (w *Window) Fits(now, n, limit int64) bool {
	if now < (w.newest.Load()+1)*w.width {
		switch sum := w.sum.Load(); {
		case int64(sum&mostTotal) > limit-n:
			if sum&lent == 0 {
				return false
			}
		case sum < locked:
			return true // nothing is borrowed
		}
	}
	w.lock()
	defer w.unlock()
	w.roll(now)
	return w.fits(w.head, n, limit)
}

// HasRoom is Fits for units that will not be counted here: it looks at no coming
// bucket, only at the present.
func (w *Window) HasRoom(now, n, limit int64) bool {
	if now < (w.newest.Load()+1)*w.width {
		sum := w.sum.Load()
		if total := int64(sum & mostTotal); total < mostTotal && (total <= limit-n || sum&lent == 0) {
			return total <= limit-n
		}
	}
	w.lock()
	defer w.unlock()
	w.roll(now)
	return w.total <= limit-n
}

// AddAt counts n units on a lane, whatever the total, in the bucket of a time that may lie
// ahead of now, as far as the window can look ahead. It returns the bucket.
func (w *Window) AddAt(lane uint32, now, at, n int64) (bucket int64) {
	if at <= now {
		bucket, _ = w.TryAdd(lane, now, n, math.MaxInt64)
		return bucket
	}
	w.lock()
	defer w.unlock()
	w.roll(now)
	bucket = w.clamp(number(at, w.width))
	w.put(bucket, n)
	return w.stamp(bucket)
}

// Cancel takes n units out of the bucket they were counted in, if it still
// counts or is still to come, and out of every window that they were handed over to.
func (w *Window) Cancel(bucket, n int64) {
	w.close() // what is lent may stay so: n units of the bucket are not
	bucket, era := w.find(bucket)
	if w.keeps(bucket) {
		w.put(bucket, -n)
	}
	heirs := w.heirs
	w.unlock()
	for i := range heirs {
		if h := &heirs[i]; h.era > era {
			if there, ok := h.bucket(bucket); ok {
				h.to.Cancel(stamp(there, h.toEra), n)
			}
		}
	}
}

// Within reports whether the window holds at most limit wherever the given
// bucket counts. A caller that holds units there asks it for a second limit.
func (w *Window) Within(bucket, limit int64) bool {
	if sum := w.sum.Load(); sum < locked && int64(sum&mostTotal) <= limit {
		return true // nothing is borrowed: there will only be less
	}
	w.lock()
	defer w.unlock()
	bucket, _ = w.find(bucket)
	return !w.keeps(bucket) || w.fits(bucket, 0, limit)
}

// Sum is the units that count at now.
func (w *Window) Sum(now int64) int64 {
	w.lock()
	defer w.unlock()
	w.roll(now)
	return w.total
}

// Waiting is the units borrowed from buckets that have not begun at now.
func (w *Window) Waiting(now int64) int64 {
	w.lock()
	defer w.unlock()
	w.roll(now)
	return w.waiting
}

// RetryAfter is how long after now n units will fit if no other call comes first; false if they
// never will.
func (w *Window) RetryAfter(now, n, limit int64) (time.Duration, bool) {
	w.lock()
	defer w.unlock()
	w.roll(now)
	if n > limit {
		return 0, false
	}
	// They fit in the first bucket after which the window keeps their room for as
	// long as that bucket counts. The last that is borrowed leaves after ahead+span.
	total, first := w.total, w.head
	for b := w.head; b < first+w.span && b <= w.head+w.ahead+w.span; b++ {
		if b > w.head {
			total += w.held(b) - w.held(b-w.span)
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
	w.roll(now)
	total, most := w.total, w.total
	for b := w.head + 1; w.waiting != 0 && b <= w.head+w.ahead && b < w.head+w.span; b++ {
		total += *w.at(b) - *w.at(b - w.span)
		most = max(most, total)
	}
	return max(0, limit-most)
}

// The methods below need mu.

// roll opens the bucket of now and all before it. It is the only place where
// head moves, and it only moves forward.
func (w *Window) roll(now int64) {
	if now < (w.head+1)*w.width { // not a division where nothing is to do
		return
	}
	w.collect() // what is lent is of the bucket that ends
	w.rest(now)
	to := number(now, w.width)
	if to-w.head >= int64(len(w.counts)) {
		clear(w.counts)
		w.head, w.total, w.waiting = to, 0, 0
	}
	for w.head < to {
		w.head++
		opened, expired := w.at(w.head), w.at(w.head-w.span)
		w.waiting -= *opened
		w.total += *opened - *expired
		*expired = 0 // its slot is now the farthest bucket ahead
	}
}

// put changes the count of a bucket that the window keeps.
func (w *Window) put(bucket, n int64) {
	*w.at(bucket) += n
	if bucket > w.head {
		w.waiting += n
		return
	}
	w.total += n
}

// fits reports whether the window would hold at most limit with n more units in
// the given bucket, from now on for as long as that bucket counts. While nothing
// is borrowed, only the present matters: later there is less.
func (w *Window) fits(bucket, n, limit int64) bool {
	total := w.total
	if bucket <= w.head && total > limit-n {
		return false
	}
	if w.waiting == 0 && bucket <= w.head {
		return true
	}
	for b := w.head + 1; b <= w.head+w.ahead && b < bucket+w.span; b++ {
		total += *w.at(b) - *w.at(b - w.span)
		if b >= bucket && total > limit-n {
			return false
		}
	}
	return true
}

// held is what a bucket that counts or is to come holds.
func (w *Window) held(bucket int64) int64 {
	if !w.keeps(bucket) {
		return 0
	}
	return *w.at(bucket)
}

func (w *Window) keeps(bucket int64) bool {
	return bucket > w.head-w.span && bucket <= w.head+w.ahead
}

func (w *Window) clamp(bucket int64) int64 {
	return min(max(bucket, w.head), w.head+w.ahead)
}

func (w *Window) at(bucket int64) *int64 {
	size := int64(len(w.counts))
	i := bucket % size
	if i < 0 {
		i += size
	}
	return &w.counts[i]
}

// number is the number of the bucket that t falls in, also before 1970.
func number(t, width int64) int64 { return floor(t, width) / width }
