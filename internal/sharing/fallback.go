package sharing

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/stat"
)

// fallback decides for a window while the store is unreachable, according to the rule's onFailure.
// With [cluster.Local] it counts in a window of its own, with the member's share of the limit.
//
// Invariant: local counts the member's admitted units that still count, the units the fallback
// admitted, and all units of the lots in leased until they end. Leases are spent first; their
// unspent rest stops counting when they end. So an isolated member admits at most its share, or its
// leases if they are more, while the connected members admit the whole limit. Units the fallback
// admitted are charged once the store is back.
//
// The window's mutex guards it. The zero value belongs to a store that answers.
type fallback struct {
	used   bool         // it has decided since the store last answered
	local  *stat.Window // made when needed, even if only to look
	share  share
	leased [2]leasedLot // lots that may still be spent
	spent  []spentUnits // that local counts, and that may come back
	own    []ownBucket  // of the units that local granted, in order
}

// leasedLot is a lot whose units count in the local window.
type leasedLot struct {
	lot     uint32 // the lot's number, 0 for none
	receipt stat.Receipt
}

// spentUnits are units of lots that have ended, as local counts them.
type spentUnits struct {
	bucket  int64 // of the store
	receipt stat.Receipt
	units   int64
}

// ownBucket is a bucket of local, and the bucket of the store in which the first of its units are to be
// charged.
type ownBucket struct {
	receipt stat.Receipt
	bucket  int64
}

// share is a part of a limit: units per number of intervals.
type share struct{ units, intervals int64 }

// shareOf returns one of n members' share of a limit. A share below one unit becomes one unit in
// several intervals, or none if those are longer than a window lasts.
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

// begin makes the local window for the member's share, unless it exists with that share. It starts
// with the units already admitted and the lots that may still be spent; each lot may be nil. A
// change of the share's interval keeps the counts.
func (f *fallback) begin(now int64, part share, shape stat.Shape, admitted account, lots [2]*lot, rand random) {
	if f.local != nil && f.share.intervals == part.intervals {
		f.share = part
		return
	}
	shape.Interval *= time.Duration(part.intervals)
	own, err := stat.NewWindow(shape)
	if err != nil { // the shape was valid, so its multiple is too
		return
	}
	if f.local != nil {
		own.SeedFrom(f.local, now)
		f.leased, f.spent, f.own = [2]leasedLot{}, nil, nil // in buckets of the previous window
	} else {
		if part.intervals > 1 && len(admitted) == 0 { // not all members start with their unit
			at := now - rand(int64(shape.Interval))
			own.AddAt(0, at, at, 1)
		}
		for _, e := range admitted {
			n := e.units()
			f.spent = append(f.spent, spentUnits{e.bucket, own.AddAt(0, min(e.at, now), min(e.at, now), n), n})
		}
		for i, l := range lots {
			if l != nil { // may be spent until it ends
				f.leased[i] = leasedLot{l.number, own.AddAt(0, now, l.ends-1, l.granted)}
			}
		}
	}
	f.local, f.share = own, part
}

// ended stops counting the unspent units of a lot that has ended.
func (f *fallback) ended(l *lot, unspent int64) {
	for i := range f.leased {
		if at := &f.leased[i]; at.lot != 0 && at.lot == l.number {
			f.local.Cancel(at.receipt, unspent)
			f.spent = append(f.spent, spentUnits{l.bucket, at.receipt, l.granted - unspent})
			at.lot = 0
		}
	}
}

// giveBack gives back n units of a lot that has ended, if local counts them.
func (f *fallback) giveBack(bucket, n int64) {
	for i := range f.spent {
		if s := &f.spent[i]; s.bucket == bucket {
			back := min(n, s.units)
			f.local.Cancel(s.receipt, back)
			s.units -= back
			n -= back
		}
	}
}

// charge counts n units in the local window, if there is one, whatever its limit.
func (f *fallback) charge(now, n int64) {
	if f.local != nil {
		f.local.AddAt(0, now, now, n)
	}
}

// fits reports whether n units fit at now and, if not, whether they would once the leases, which
// hold too few for them, are given up. With [cluster.Local], call begin first.
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

// take takes n units that fit, and returns their token.
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

// granted records the bucket in which the units of a token are to be charged. A bucket counts until
// span later ones have begun.
func (f *fallback) granted(token, bucket, span int64) {
	if token&(1<<tokenBits-1) != fromFallback {
		return
	}
	receipt := stat.Receipt(token >> tokenBits)
	if n := len(f.own); n > 0 && f.own[n-1].receipt == receipt {
		return
	}
	f.own = slices.DeleteFunc(f.own, func(o ownBucket) bool { return o.bucket <= bucket-span })
	f.own = append(f.own, ownBucket{receipt, bucket})
}

// cancel gives n units back to the local window, and returns the bucket in which they need no
// charging. It returns false for units that are from elsewhere, such as the local window of an earlier
// outage: they stay charged until their bucket ends.
func (f *fallback) cancel(token, n int64) (bucket int64, ok bool) {
	if token&(1<<tokenBits-1) != fromFallback {
		return 0, false
	}
	receipt := stat.Receipt(token >> tokenBits)
	for _, o := range f.own {
		if o.receipt == receipt {
			f.local.Cancel(receipt, n)
			return o.bucket, true
		}
	}
	return 0, false
}

// holds reports whether a call may still run with units granted without the store: until the store
// is back, and with units of local only during their bucket.
func (f *fallback) holds(now, token int64) bool {
	if token&(1<<tokenBits-1) != fromFallback {
		return f.used
	}
	if f.local == nil {
		return false
	}
	current, _ := f.local.TryAdd(0, now, 0, math.MaxInt64) // no units: only for the bucket's receipt
	return current == stat.Receipt(token>>tokenBits)
}

// fallbackPermits returns the number of permits for the member's calls while the store is
// unreachable. With [cluster.Local] it is the share of the limit, at least one.
func fallbackPermits(how cluster.OnFailure, limit, members int64) int64 {
	switch how {
	case cluster.Open:
		return math.MaxInt64
	case cluster.Local:
		return max(min(1, limit), limit/members)
	}
	return 0
}

// turnFallback gives out turns while the store is unreachable, according to the rule's onFailure.
//
// Invariant: with [cluster.Local], turns are spaced by the member's share of the rate, from the
// latest turn of the store or the fallback.
//
// The throttle's mutex guards it.
type turnFallback struct {
	last int64 // the latest turn given without the store
}

// next returns the time of the turn one gap after the latest, whoever gave that: the store or the
// fallback. The gap spans the calls of all members, as each has its share of the turns.
func (f *turnFallback) next(latest, gap int64) int64 { return max(f.last, latest) + gap }

// take gives a call the next turn, unless it would wait longer than maxWait. If takes is false, it
// only looks.
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
