package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
)

// This file is a window while the store is away: its fallback decides, with what the other parts have. All but
// LocalShare needs mu.

// localWindow has the fallback begin a window of its own. When that happens makes no difference to calls, so it may be
// for somebody who only looks.
func (w *Window) localWindow(now int64) {
	if w.fallback.own == nil {
		w.roll(now)
	}
	shape := w.round.ring.Shape
	part := shareOf(w.limit(), w.m.Members(), shape.Interval)
	w.fallback.begin(now, part, shape, w.round.account, w.leases.open(), w.m.chance)
}

// LocalShare is what counts of the member's own share of the limit, that share, and the interval it is for, while the store
// is away and the rule says [cluster.Local]; ok is false otherwise. What is leased counts as used.
func (w *Window) LocalShare(now int64) (used, share int64, interval time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.away() || w.rule.Load().OnFailure != cluster.Local {
		return 0, 0, 0, false
	}
	w.localWindow(now)
	f := &w.fallback
	if f.own == nil {
		return 0, 0, 0, false
	}
	return f.own.Sum(now), f.share.units, w.round.ring.Shape.Interval * time.Duration(f.share.intervals), true
}

// fitsAway is what the fallback says, and how the rule has it decide.
func (w *Window) fitsAway(now, n int64) (how cluster.OnFailure, fits, afterClosing bool) {
	if how = w.rule.Load().OnFailure; how == cluster.Local {
		w.localWindow(now)
	}
	fits, afterClosing = w.fallback.fits(how, now, n, w.leases.units())
	return how, fits, afterClosing
}

// takeAway is TryAdd while the store is away.
func (w *Window) takeAway(now, n int64) (token int64, ok bool) {
	w.fallback.used = true
	how, fits, afterClosing := w.fitsAway(now, n)
	if afterClosing {
		w.closeLeases(now)
	}
	if fits || afterClosing {
		token, ok = w.fallback.take(how, now, n)
	}
	if ok { // the store has yet to be charged with them
		w.round.admit(store.Units{Bucket: w.bucketAt(now), Units: n}, now)
	}
	return token, ok
}

// cancelAway is Cancel of what the fallback granted.
func (w *Window) cancelAway(token, n int64) {
	if w.fallback.cancel(token, n) {
		w.round.account.uncharge(n)
	}
}

// retryAway is RetryAfter while the store is away. Where only the store can say, that is when it is
// asked next, and not known if that is due: then it hasn't answered yet.
func (w *Window) retryAway(now, n int64) (time.Duration, bool) {
	how, fits, afterClosing := w.fitsAway(now, n)
	switch f := &w.fallback; {
	case fits || afterClosing:
		return 0, true
	case how == cluster.Local && f.own != nil:
		return f.own.RetryAfter(now, n, f.share.units)
	}
	probe := until(w.shard().probeAt.Load(), now)
	return probe, probe > 0
}

// decideAway decides for a call that asked and got no answer.
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
