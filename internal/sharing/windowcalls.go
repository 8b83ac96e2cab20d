package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// Ask returns the answer of TryAdd, but takes nothing. It counts a refused call.
func (w *Window) Ask(now, n int64) (a Answer) {
	if w.leases.lease.has(now, n) {
		return Fits
	}
	if a = Refuses; !w.refuses(now, n) {
		w.mu.Lock()
		a = w.lookLocked(now, n)
		w.mu.Unlock()
	}
	if a == Refuses {
		w.refuse(n)
	}
	return a
}

// Look is Ask without side effects: it counts no refused call.
func (w *Window) Look(now, n int64) Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lookLocked(now, n)
}

// refuses reports whether the store has no room for n units, even with the lease handed back. While
// the lease lends, only n beyond the limit is sure to be refused.
func (w *Window) refuses(now, n int64) bool {
	word := w.leases.lease.word.Load()
	return word&lends == 0 && w.demand.room.refuses(now, n, unitsOf(word)) || n > w.limit()
}

func (w *Window) lookLocked(now, n int64) Answer {
	w.rollLocked(now)
	if !w.leases.lease.has(now, n) {
		w.leases.lease.collect()
	}
	switch {
	case w.leases.lease.has(now, n):
		return Fits
	case w.refuses(now, n):
		return Refuses
	case w.unreachableLocked():
		if _, fits, afterClosing := w.fallbackFitsLocked(now, n); fits || afterClosing {
			return Fits
		}
		return Refuses
	}
	return NeedsMore
}

// TryAdd takes n units at now if the member has them, and returns the token for [Window.Cancel]. If
// it has too few, TryAdd returns false and fetches more in the background, unless the store has
// none. The lane is a hint of the processor that the call runs on, see [stat.Window].
func (w *Window) TryAdd(lane uint32, now, n int64) (token int64, ok bool) {
	number, ranLow, ok := w.leases.lease.take(lane, now, n)
	if !ok {
		return w.tryAdd(lane, now, n)
	}
	if ranLow {
		w.mu.Lock()
		post := w.runsLowLocked(now)
		w.mu.Unlock()
		w.send(post)
	}
	return lotToken(number), true
}

// tryAdd is the slow path of TryAdd, under the mutex.
func (w *Window) tryAdd(lane uint32, now, n int64) (token int64, ok bool) {
	if w.refuses(now, n) {
		w.refuse(n)
		return 0, false
	}
	w.mu.Lock()
	w.rollLocked(now)
	number, ranLow, ok := w.leases.lease.draw(now, n)
	post, refused, missed := false, false, false
	switch {
	case ok:
		token = lotToken(number)
		if ranLow = w.leases.lease.lend(lane, now, n) || ranLow; ranLow {
			post = w.runsLowLocked(now)
		}
	case w.refuses(now, n):
		refused = true
	default:
		if missed = !w.unreachableLocked(); !missed {
			token, ok = w.takeFallbackLocked(now, n)
			refused = !ok
		}
		w.demand.fallsShort(n)
		post = w.m.mayAsk(w.value, now) && w.postLocked(now, now)
	}
	w.mu.Unlock()
	switch {
	case refused:
		w.refuse(n)
	case missed: // the call may fetch it
		w.miss(n)
	}
	if post || ranLow {
		w.send(post)
	}
	return token, ok
}

// refuse counts a call that is refused without asking the store.
func (w *Window) refuse(n int64) {
	w.miss(n)
	w.refused.Add(1)
}

// miss counts units that a call went without.
func (w *Window) miss(n int64) {
	if n <= mostUnits { // a larger call takes no lease
		w.demand.missed.Add(n)
	}
}

// runsLowLocked fetches more as few units are left, unless they suffice, and reports whether a
// flush may send the command.
func (w *Window) runsLowLocked(now int64) bool {
	w.demand.runsLow(w.positionLocked(), now)
	return w.postLocked(now, now)
}

// send flushes if post is set. In any case it checks whether the machine was suspended.
func (w *Window) send(post bool) {
	if post {
		w.m.flush(false)
	} else {
		w.m.now()
	}
}

// RetryAfter returns the time after which n units may fit, by the member's knowledge; false if they
// never will, or if time alone doesn't tell.
func (w *Window) RetryAfter(now, n int64) (time.Duration, bool) {
	if n > w.limit() {
		return 0, false
	}
	if wait := w.demand.room.wait(now, n); wait > 0 {
		return wait, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.unreachableLocked() || w.leases.lease.units() >= n && now < w.leases.lease.end.Load() {
		return 0, true
	}
	return w.retryFallbackLocked(now, n)
}

// Cancel gives back n unused units from TryAdd or Fetch, as long as they count: to the lease, to the
// store if the lease is over, or to the fallback.
func (w *Window) Cancel(token, n int64) {
	number := uint32(token >> tokenBits)
	if token&(1<<tokenBits-1) != fromLot {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cancelFallbackLocked(token, n)
		return
	}
	if w.leases.lease.giveBack(number, n) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if bucket, over := w.leases.giveBack(number, n, w.round.epoch); over {
		w.fallback.giveBack(bucket, n)
		w.returnLocked(store.Units{Bucket: bucket, Units: n})
		w.scheduleLocked(w.m.clock.Now())
	}
}

// Charge counts n units that a call has used beyond those it got, whatever is left: it takes what
// the lease has, and the store counts the rest in its current bucket.
func (w *Window) Charge(now, n int64) {
	n = min(n, mostLimit)
	if latest := w.m.latestOf(w.name); latest != nil && latest != w {
		latest.Charge(now, n) // which has the units of this window, too
		return
	}
	w.mu.Lock()
	w.rollLocked(now)
	n -= w.leases.lease.drain(now, n)
	post := false
	if n > 0 {
		w.chargeFallbackLocked(now, n)
		w.round.admit(store.Units{Bucket: w.bucketAt(now), Units: n}, now)
		post = w.postLocked(now, now)
	}
	w.mu.Unlock()
	w.send(post)
}

// Holds reports whether a call that waited after it was granted units may run at now: their bucket
// is still current; for units granted without the store, the fallback's bucket is, and the store is
// still unreachable. A call that may not run gives them back and asks again.
func (w *Window) Holds(now, token int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if token&(1<<tokenBits-1) != fromLot {
		return w.fallback.holds(now, token)
	}
	return w.leases.holds(uint32(token>>tokenBits), w.round.epoch, now)
}

// The last two bits of a token say where its units are from: a lot, whose number precedes them; the
// fallback's window, whose bucket does; or nowhere.
const (
	fromLot = iota
	fromFallback
	fromNowhere
	tokenBits = 2
)

// lotToken returns the token of a lot; fromLot is 0.
func lotToken(number uint32) int64 { return int64(number) << tokenBits }
