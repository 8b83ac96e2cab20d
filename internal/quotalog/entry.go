package quotalog

import (
	"math"

	"github.com/penstock-go/penstock/internal/shared"
)

// Margin returns the distance between the use of a key with that limit and its next mark: a hundredth of
// the limit, or 16 if that is more; but the latter no more than a tenth of the limit. At least 1.
func Margin(limit int64) int64 { return max(1, limit/100, min(16, limit/10)) }

// Period is a period in which a meter counts.
type Period struct {
	ID         int64 // grows from each period of a meter to the next
	Start, End int64
}

// never is the ID of the period before the first one.
const never = math.MinInt64

// Entry is a key in the log. Meters that count for it call Take before they count units, and Settle
// after they count otherwise. Usually it has one meter. If it has several, as for values that another
// process can't distinguish, it has the use of the one that has used most. Safe for concurrent
// use.
//
// Invariants, under mu, for the period:
//
//  1. A meter takes units only up to allowed, and after a crash the key would be charged with at
//     least that: mark is on the disk, and so is the slack of the book. A lower mark holds from the
//     moment in which it is asked for, thus before it is on the disk.
//  2. use is no less than the units of any meter, except that units
//     used beyond a reservation count before their mark is written.
type Entry struct {
	book *Book
	key  string

	// The record found when the log was opened, which doesn't change.
	restored int64 // units
	until    int64 // end of their period
	exact    bool  // the process had closed the log

	mu       shared.Mutex // guards the fields below
	meters   int
	closed   bool
	period   int64 // ID
	end      int64
	floor    int64 // units charged without a mark
	slack    bool  // and beyond them the slack may be taken
	use      int64
	mark     int64 // 0 until one is on the disk
	want     int64 // the mark to write
	lowered  int64 // number of times that mark was lowered
	margin   int64 // of the latest limit
	queued   bool  // for the next write
	recorded bool  // the mark is on the disk

	forgotten bool // the period is over, and the book has no such entry any longer
}

// Base returns the units charged to a meter that begins to count at now, in a period with that start;
// first means that it has not counted before. It has no side effect.
func (e *Entry) Base(first bool, start, now int64) int64 {
	base, _ := e.base(first, start, now)
	return base
}

func (e *Entry) base(first bool, start, now int64) (base int64, slack bool) {
	switch {
	case first && now < e.until:
		return e.restored, e.exact
	case start <= e.book.log.crashed && e.book.charged > 0:
		return e.book.charged, false
	}
	return 0, true
}

// Take reports whether a meter that has used some units in a period may take n more. If it may not,
// or has little left, the next mark is written. The meter must then count the units.
func (e *Entry) Take(p Period, now, used, n, limit int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.forgotten || !e.enterLocked(p, now) {
		return false
	}
	e.margin = Margin(limit)
	to, allowed := used+n, e.allowedLocked()
	if to+(e.margin+1)/2 > allowed && (to > allowed || allowed < limit) {
		e.wantLocked(min(to+e.margin, max(to, limit)))
	}
	if to > allowed {
		return false
	}
	e.countLocked(to)
	return true
}

// Settle records that a meter has used units in the period that it counts in, by giving some back or
// by using more than it took.
func (e *Entry) Settle(p Period, used int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.forgotten || p.ID != e.period {
		return
	}
	e.countLocked(used)
	allowed := e.allowedLocked()
	switch {
	case used > allowed:
		e.wantLocked(used + e.margin)
	case e.meters == 1 && e.recorded && allowed-used > 2*e.margin:
		e.mark, e.want = used+e.margin, used+e.margin
		e.lowered++
		e.queueLocked()
	}
}

// enterLocked goes on to a period. It returns false if a later one has begun.
func (e *Entry) enterLocked(p Period, now int64) bool {
	if p.ID < e.period {
		return false
	}
	if p.ID > e.period {
		e.floor, e.slack = e.base(e.period == never, p.Start, now)
		e.period, e.use, e.mark, e.want, e.recorded = p.ID, e.floor, 0, 0, false
	}
	e.end = p.End // of another calendar, perhaps
	return true
}

func (e *Entry) allowedLocked() int64 {
	switch {
	case e.recorded:
		return e.mark
	case e.slack:
		return e.floor + e.book.slack.Load()
	}
	return e.floor
}

func (e *Entry) countLocked(used int64) {
	if e.meters > 1 {
		used = max(used, e.use)
	}
	e.use = used
}

func (e *Entry) wantLocked(mark int64) {
	if mark > e.want {
		e.want = mark
		e.queueLocked()
	}
}

func (e *Entry) queueLocked() {
	if !e.queued {
		e.queued = true
		e.book.log.queue(e)
	}
}

// Leave ends the count of a meter, which is about to be dropped. The entry is forgotten with the
// last one, unless units may have been used in a period that is not over.
func (e *Entry) Leave(now int64) {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.meters--; e.meters == 0 && !e.queued && now >= e.until && (now >= e.end || e.use == 0) && e.book.entries[e.key] == e {
		e.forgotten = true
		delete(e.book.entries, e.key)
	}
}
