package sharing

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

// fallback is what a window decides by while the store is away: a window of the member's own, with
// its share of the limit.
//
// It begins with what the member has admitted and still counts, and with all that it has leased: that
// is spent first, and what is left of it when it ends counts no longer. What the window admits is
// charged once the store is back. So a member that is cut off admits at most its share, or what it had
// leased if that is more, while those that are not cut off admit the whole limit.
type fallback struct {
	on    bool         // something was decided without the store since it answered last
	own   *stat.Window // nil until it is needed, if only by somebody who looks
	share share
	lent  [2]lent // the lots that may still be spent, all units of which own counts
}

// lent is a lot, all of which counts in a bucket of the fallback's window.
type lent struct {
	lot     uint32 // its number, 0 for none
	receipt stat.Receipt
}

// ended has the fallback count no longer what is unspent of a lot that is over.
func (f *fallback) ended(l *lot, unspent int64) {
	for i := range f.lent {
		if at := &f.lent[i]; at.lot != 0 && at.lot == l.number {
			f.own.Cancel(at.receipt, unspent)
			at.lot = 0
		}
	}
}

// share is a part of a limit: a number of units in a number of intervals.
type share struct{ units, intervals int64 }

// shareOf is what one of n members may admit of a limit. A share of less than one unit becomes one
// unit in as many intervals as it takes.
func shareOf(limit, n int64) share {
	switch {
	case limit <= 0:
		return share{0, 1}
	case limit < n:
		return share{1, (n + limit - 1) / limit}
	}
	return share{limit / n, 1}
}

// localWindow is the window of the fallback, made if there is none or if the shape changed. When it is
// made makes no difference to calls, so it may be for somebody who only looks. It needs mu.
func (w *Window) localWindow(now int64) *stat.Window {
	f := &w.fallback
	if f.own == nil {
		w.roll(now)
	}
	shape := w.round.ring.Shape
	part := shareOf(w.limit(), w.m.Members())
	if part.intervals > int64(stat.MaxInterval/shape.Interval) {
		part = share{0, 1} // a unit in longer than a window lasts
	}
	if f.own != nil && f.share.intervals == part.intervals {
		f.share = part
		return f.own
	}
	shape.Interval *= time.Duration(part.intervals)
	own, err := stat.NewWindow(shape)
	if err != nil { // the shape was valid, so a multiple of it is too
		return nil
	}
	if f.own != nil {
		own.SeedFrom(f.own, now)
		f.lent = [2]lent{} // in buckets of the window before
	} else {
		if part.intervals > 1 && len(w.round.account) == 0 { // not all members begin with their unit
			at := now - w.m.chance(int64(shape.Interval))
			own.AddAt(0, at, at, 1)
		}
		for _, e := range w.round.account {
			own.AddAt(0, min(e.at, now), min(e.at, now), e.units())
		}
		for i, number := range [...]uint32{w.leases.cur, w.leases.next} {
			if l := w.leases.lots.find(number); l != nil { // it may be spent until it ends
				f.lent[i] = lent{number, own.AddAt(0, now, l.ends-1, l.granted)}
			}
		}
	}
	f.own, f.share = own, part
	return own
}

// LocalShare is what counts of the member's own share of the limit, that share, and the interval it is for, while the store
// is away and the rule says [cluster.Local]; ok is false otherwise. What is leased counts as used.
func (w *Window) LocalShare(now int64) (used, share int64, interval time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.away() || w.rule.Load().OnFailure != cluster.Local {
		return 0, 0, 0, false
	}
	own := w.localWindow(now)
	if own == nil {
		return 0, 0, 0, false
	}
	return own.Sum(now), w.fallback.share.units, w.round.ring.Shape.Interval * time.Duration(w.fallback.share.intervals), true
}

// askAway is Ask while the store is away. It needs mu.
func (w *Window) askAway(now, n int64) Answer {
	switch w.rule.Load().OnFailure {
	case cluster.Open:
		return Fits
	case cluster.Local:
		if fits, afterClosing := w.fitsAway(now, n); fits || afterClosing {
			return Fits
		}
	}
	return Refuses
}

// fitsAway reports whether the window of the fallback has room for n units or, failing that, would
// have it if what is leased, which is too little for them, were given up. It needs mu.
func (w *Window) fitsAway(now, n int64) (fits, afterClosing bool) {
	own := w.localWindow(now)
	if own == nil {
		return false, false
	}
	units := w.fallback.share.units
	if own.Fits(now, n, units) {
		return true, false
	}
	unspent := w.leases.units()
	return false, n <= units && unspent > 0 && own.Fits(now, n, units+unspent)
}

// takeAway is TryAdd while the store is away. It needs mu.
func (w *Window) takeAway(now, n int64) (token int64, ok bool) {
	w.fallback.on = true
	switch w.rule.Load().OnFailure {
	case cluster.Open:
		w.admitOwn(now, n)
		return fromNowhere, true
	case cluster.Local:
		fits, afterClosing := w.fitsAway(now, n)
		if afterClosing {
			w.closeLeases(now)
		}
		if fits || afterClosing {
			if receipt, ok := w.fallback.own.TryAdd(0, now, n, w.fallback.share.units); ok {
				w.admitOwn(now, n)
				return int64(receipt)<<tokenBits | fromFallback, true
			}
		}
	}
	return 0, false
}

// admitOwn accounts for units that the store has yet to be charged.
func (w *Window) admitOwn(now, n int64) {
	w.round.admit(store.Units{Bucket: w.bucketAt(now), Units: n}, now)
}

// cancelAway is Cancel of what the fallback granted. It needs mu.
func (w *Window) cancelAway(token, n int64) {
	if token&(1<<tokenBits-1) != fromFallback || w.fallback.own == nil {
		return // it stays charged until its bucket is over
	}
	w.fallback.own.Cancel(stat.Receipt(token>>tokenBits), n)
	for i := len(w.round.account) - 1; i >= 0; i-- {
		if e := &w.round.account[i]; e.own >= n {
			e.own -= n
			return
		}
	}
}

// holdsAway is Holds for units granted without the store: they hold until the store is back, and
// those that count in the fallback's window only during their bucket. It needs mu.
func (w *Window) holdsAway(now, token int64) bool {
	if token&(1<<tokenBits-1) != fromFallback {
		return w.fallback.on
	}
	own := w.fallback.own
	if own == nil {
		return false
	}
	current, _ := own.TryAdd(0, now, 0, math.MaxInt64)
	return current == stat.Receipt(token>>tokenBits)
}

// retryAway is RetryAfter while the store is away. Where only the store can say, that is when it is
// asked next, and not known if that is due: then it hasn't answered yet. It needs mu.
func (w *Window) retryAway(now, n int64) (time.Duration, bool) {
	switch w.rule.Load().OnFailure {
	case cluster.Open:
		return 0, true
	case cluster.Local:
		if fits, afterClosing := w.fitsAway(now, n); fits || afterClosing {
			return 0, true
		}
		if own := w.fallback.own; own != nil {
			return own.RetryAfter(now, n, w.fallback.share.units)
		}
	}
	probe := until(w.shard().probeAt.Load(), now)
	return probe, probe > 0
}

// decideAway decides for a call that asked and got no answer. It needs mu.
func (w *Window) decideAway(x *waiter, now int64) {
	token, ok := w.takeAway(now, x.need.Units)
	switch {
	case ok:
	case x.waited:
		w.miss(x.need.Units)
	default:
		w.refuse(x.need.Units)
	}
	x.need.Token = token
	x.decideLocked(ok)
}
