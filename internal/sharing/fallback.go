package sharing

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/stat"
)

// fallback decides for a window while the store is unreachable, as the rule's onFailure says. With
// [cluster.Local] it goes by a window of the member's own, which has the member's share of the limit.
//
// Invariant: local counts what the member has admitted and still counts, what the fallback admitted, and all
// units of the lots in leased, until they end: a lease is spent first, and what is left of it counts no
// longer. So a member that is cut off admits at most its share, or what it had leased if that is more, while
// those that are not cut off admit the whole limit. What the fallback admits is charged once the store is
// back.
//
// The window's mutex guards it. The zero value is that of a store that answers.
type fallback struct {
	used   bool         // something was decided without the store since it answered last
	local  *stat.Window // nil until it is needed, if only by somebody who looks
	share  share
	leased [2]leasedLot // the lots that may still be spent
}

// leasedLot is a lot whose units count in the fallback's window.
type leasedLot struct {
	lot     uint32 // its number, 0 for none
	receipt stat.Receipt
}

// share is a part of a limit: a number of units in a number of intervals.
type share struct{ units, intervals int64 }

// shareOf returns the share of one of n members in a limit. A share of less than one unit becomes one
// unit in as many intervals as it takes, none if that is longer than a window lasts.
func shareOf(limit, n int64, interval time.Duration) share {
	switch {
	case limit <= 0:
		return share{0, 1}
	case limit < n:
		intervals := (n + limit - 1) / limit
		if intervals > int64(stat.MaxInterval/interval) {
			return share{0, 1}
		}
		return share{1, intervals}
	}
	return share{limit / n, 1}
}

// begin makes the window of the member's own for its share of a window of that shape, unless there is one
// already. It begins with what the member has admitted and with lots that may be spent, each nil if there is
// none. If the share has another interval than before, what counted goes on counting.
func (f *fallback) begin(now int64, part share, shape stat.Shape, admitted account, lots [2]*lot, rand random) {
	if f.local != nil && f.share.intervals == part.intervals {
		f.share = part
		return
	}
	shape.Interval *= time.Duration(part.intervals)
	own, err := stat.NewWindow(shape)
	if err != nil { // the shape was valid, so a multiple of it is too
		return
	}
	if f.local != nil {
		own.SeedFrom(f.local, now)
		f.leased = [2]leasedLot{} // in buckets of the window before
	} else {
		if part.intervals > 1 && len(admitted) == 0 { // not all members begin with their unit
			at := now - rand(int64(shape.Interval))
			own.AddAt(0, at, at, 1)
		}
		for _, e := range admitted {
			own.AddAt(0, min(e.at, now), min(e.at, now), e.units())
		}
		for i, l := range lots {
			if l != nil { // it may be spent until it ends
				f.leased[i] = leasedLot{l.number, own.AddAt(0, now, l.ends-1, l.granted)}
			}
		}
	}
	f.local, f.share = own, part
}

// ended has what is unspent of a lot count no longer, as the lot is over.
func (f *fallback) ended(l *lot, unspent int64) {
	for i := range f.leased {
		if at := &f.leased[i]; at.lot != 0 && at.lot == l.number {
			f.local.Cancel(at.receipt, unspent)
			at.lot = 0
		}
	}
}

// fits reports whether n units fit at now or, failing that, would fit if the leases, which have too few for
// them, were given up. With [cluster.Local], begin was called.
func (f *fallback) fits(how cluster.OnFailure, now, n, leased int64) (fits, afterClosing bool) {
	switch {
	case how == cluster.Open:
		return true, false
	case how != cluster.Local || f.local == nil:
		return false, false
	case f.local.Fits(now, n, f.share.units):
		return true, false
	}
	return false, n <= f.share.units && leased > 0 && f.local.Fits(now, n, f.share.units+leased)
}

// take takes n units, and returns their token. They fit.
func (f *fallback) take(how cluster.OnFailure, now, n int64) (token int64, ok bool) {
	if how == cluster.Open {
		return fromNowhere, true
	}
	receipt, ok := f.local.TryAdd(0, now, n, f.share.units)
	if !ok {
		return 0, false
	}
	return int64(receipt)<<tokenBits | fromFallback, true
}

// cancel gives n units back, and reports whether they are not to be charged. Others stay charged until their
// bucket is over.
func (f *fallback) cancel(token, n int64) bool {
	if token&(1<<tokenBits-1) != fromFallback || f.local == nil {
		return false
	}
	f.local.Cancel(stat.Receipt(token>>tokenBits), n)
	return true
}

// holds reports whether a call may still run with units that were granted without the store: until the store
// is back, and those that count in local only during their bucket.
func (f *fallback) holds(now, token int64) bool {
	if token&(1<<tokenBits-1) != fromFallback {
		return f.used
	}
	if f.local == nil {
		return false
	}
	current, _ := f.local.TryAdd(0, now, 0, math.MaxInt64)
	return current == stat.Receipt(token>>tokenBits)
}

// fallbackPermits returns the permits that the calls of a member may have while the store is unreachable:
// with [cluster.Local] its share of the limit, but at least one, as no call takes less.
func fallbackPermits(how cluster.OnFailure, limit, members int64) int64 {
	switch how {
	case cluster.Open:
		return math.MaxInt64
	case cluster.Local:
		return max(min(1, limit), limit/members)
	}
	return 0
}

// turnFallback gives turns while the store is unreachable, as the rule's onFailure says.
//
// Invariant: with [cluster.Local], the turn of a call is its member's share of the store's turns after the
// latest one, whoever gave that.
//
// The throttle's mutex guards it.
type turnFallback struct {
	last int64 // the latest turn that was given without the store
}

// next returns when the call may run whose turn comes a gap after the latest one, of the store or without it.
// A gap is that of all members' calls, as each has its share of the turns.
func (f *turnFallback) next(latest, gap int64) int64 { return max(f.last, latest) + gap }

// take gives a call the next turn, unless it would wait longer than maxWait. Without takes it only says so.
func (f *turnFallback) take(
	how cluster.OnFailure, now, next int64, maxWait time.Duration, takes bool,
) (wait time.Duration, ok bool) {
	switch how {
	case cluster.Open:
		return 0, true
	case cluster.Closed:
		return 0, false
	}
	at := max(now, next)
	if at-now > int64(maxWait) {
		return 0, false
	}
	if takes {
		f.last = at
	}
	return time.Duration(at - now), true
}
