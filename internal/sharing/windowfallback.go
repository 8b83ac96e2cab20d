package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
)

// This file decides without the store: fallback does, with the state of the other parts.

// beginFallbackLocked makes the fallback's own window. When it is made doesn't matter to calls, so
// a mere look may make it.
func (w *Window) beginFallbackLocked(now int64) {
	if w.fallback.local == nil {
		w.rollLocked(now)
	}
	shape := w.round.ring.Shape
	part := shareOf(w.limit(), w.m.Members(), shape.Interval)
	w.fallback.begin(now, part, shape, w.round.account, w.leases.curAndNext(), w.m.chance)
}

// LocalShare returns the used units of the member's own share of the limit, the share, and its
// interval, while the store is unreachable and the rule says [cluster.Local]; ok is false
// otherwise. Leased units count as used.
func (w *Window) LocalShare(now int64) (used, share int64, interval time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.unreachableLocked() || w.rule.Load().OnFailure != cluster.Local {
		return 0, 0, 0, false
	}
	w.beginFallbackLocked(now)
	f := &w.fallback
	if f.local == nil {
		return 0, 0, 0, false
	}
	interval = w.round.ring.Shape.Interval * time.Duration(f.share.intervals)
	return f.local.Sum(now), f.share.units, interval, true
}

// fallbackFitsLocked returns the fallback that the rule names, and its verdict.
func (w *Window) fallbackFitsLocked(now, n int64) (how cluster.OnFailure, fits, afterClosing bool) {
	if how = w.rule.Load().OnFailure; how == cluster.Local {
		w.beginFallbackLocked(now)
	}
	fits, afterClosing = w.fallback.fits(how, now, n, w.leases.units())
	return how, fits, afterClosing
}

// takeFallbackLocked is TryAdd while the store is unreachable.
func (w *Window) takeFallbackLocked(now, n int64) (token int64, ok bool) {
	w.fallback.used = true
	how, fits, afterClosing := w.fallbackFitsLocked(now, n)
	if afterClosing {
		w.closeLeasesLocked(now)
	}
	if fits || afterClosing {
		token, ok = w.fallback.take(how, now, n)
	}
	if ok { // charged to the store later
		bucket := w.bucketAt(now)
		w.fallback.granted(token, bucket, w.round.ring.Span())
		w.round.admit(store.Units{Bucket: bucket, Units: n}, now)
	}
	return token, ok
}

// chargeFallbackLocked counts units in the fallback's own window, if calls may be decided there
// before the store answers again.
func (w *Window) chargeFallbackLocked(now, n int64) {
	if w.unreachableLocked() {
		w.fallback.used = true
		if w.rule.Load().OnFailure == cluster.Local {
			w.beginFallbackLocked(now)
		}
	}
	w.fallback.charge(now, n)
}

// cancelFallbackLocked is Cancel of units that the fallback granted.
func (w *Window) cancelFallbackLocked(token, n int64) {
	if bucket, ok := w.fallback.cancel(token, n); ok {
		w.round.account.uncharge(store.Units{Bucket: bucket, Units: n})
	}
}

// retryFallbackLocked is RetryAfter while the store is unreachable. If only the store can say, it
// is the time of the next probe, and unknown while a probe is due.
func (w *Window) retryFallbackLocked(now, n int64) (time.Duration, bool) {
	how, fits, afterClosing := w.fallbackFitsLocked(now, n)
	switch f := &w.fallback; {
	case fits || afterClosing:
		return 0, true
	case how == cluster.Local && f.local != nil:
		return f.local.RetryAfter(now, n, f.share.units)
	}
	probe := until(w.shard().probeAt.Load(), now)
	return probe, probe > 0
}

// fallBackLocked decides locally for a call whose request to the store went unanswered.
func (w *Window) fallBackLocked(x *waiter, now int64) {
	token, ok := w.takeFallbackLocked(now, x.need.Units)
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
