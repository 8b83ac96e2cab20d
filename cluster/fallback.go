package cluster

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// fallback is what a window decides by while the store is away: a window of the member's own, with
// its share of the limit.
//
// It begins with what the member has admitted and still counts, and what it admits is charged once
// the store is back. So a member that is cut off admits at most its share, while those that are not
// cut off admit the whole limit.
type fallback struct {
	on    bool         // something was decided without the store since it answered last
	own   *stat.Window // nil until it is needed
	share share
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

// localWindow is the window of the fallback, made if there is none or if the shape changed. It
// needs mu.
func (w *Window) localWindow(now int64) *stat.Window {
	f := &w.fallback
	part := shareOf(w.limit(), w.m.Members())
	if f.own != nil && f.share.intervals == part.intervals {
		f.share = part
		return f.own
	}
	shape := w.ring.Shape
	shape.Interval = min(shape.Interval*time.Duration(part.intervals), stat.MaxInterval/time.Duration(shape.Buckets)*time.Duration(shape.Buckets))
	own, err := stat.NewWindow(shape)
	if err != nil { // the shape was valid, so a multiple of it is too
		return nil
	}
	if f.own != nil {
		own.SeedFrom(f.own, now)
	} else {
		w.closeLease(now)
		w.closeNext(now)
		for _, e := range w.account {
			own.AddAt(0, min(e.at, now), min(e.at, now), e.counted+e.own+e.told)
		}
	}
	f.own, f.share = own, part
	return own
}

// askAway is Ask while the store is away. It needs mu.
func (w *Window) askAway(now, n int64) Answer {
	switch w.rule.Load().OnFailure {
	case Open:
		return Fits
	case Local:
		if own := w.localWindow(now); own != nil && own.Fits(now, n, w.fallback.share.units) {
			return Fits
		}
	}
	return Refuses
}

// takeAway is TryAdd while the store is away. It needs mu.
func (w *Window) takeAway(now, n int64) (token int64, ok bool) {
	w.fallback.on = true
	switch w.rule.Load().OnFailure {
	case Open:
		w.admitOwn(now, n)
		return fromNowhere, true
	case Local:
		if own := w.localWindow(now); own != nil {
			if bucket, ok := own.TryAdd(0, now, n, w.fallback.share.units); ok {
				w.admitOwn(now, n)
				return bucket<<tokenBits | fromFallback, true
			}
		}
	}
	return 0, false
}

// admitOwn accounts for units that the store has yet to be charged.
func (w *Window) admitOwn(now, n int64) {
	e := w.account.of(w.ring.Bucket(w.m.storeTime(w.shard, now)))
	e.own += n
	e.at = now
	if len(w.account) > 1 {
		w.account.forget(w.account[len(w.account)-1].bucket - w.ring.Span())
	}
}

// cancelAway is Cancel of what the fallback granted. It needs mu.
func (w *Window) cancelAway(token, n int64) {
	bucket := token >> tokenBits
	if token&(1<<tokenBits-1) != fromFallback || w.fallback.own == nil {
		return // it stays charged until its bucket is over
	}
	w.fallback.own.Cancel(bucket, n)
	for i := len(w.account) - 1; i >= 0; i-- {
		if e := &w.account[i]; e.own >= n {
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
	return current == token>>tokenBits
}

// retryAway is RetryAfter while the store is away. It needs mu.
func (w *Window) retryAway(now, n int64) (time.Duration, bool) {
	if w.rule.Load().OnFailure == Local {
		if own := w.localWindow(now); own != nil {
			return own.RetryAfter(now, n, w.fallback.share.units)
		}
	}
	return until(w.shard.probeAt.Load(), now), true
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
	x.decide(ok)
}

// returned ends the fallback: the store has answered. It needs mu.
func (w *Window) returned(int64) { w.fallback = fallback{} }
