package sharing

import (
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// Ask says what TryAdd would do. It takes nothing; a call that is refused counts as such.
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

// Look is Ask without a trace: it doesn't count a call that is refused either.
func (w *Window) Look(now, n int64) Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lookLocked(now, n)
}

// refuses reports whether the store has said that there is no room, also with what the lease has,
// which would go back. While the lease lends only n beyond the limit is sure to be refused.
func (w *Window) refuses(now, n int64) bool {
	word := w.leases.lease.word.Load()
	return word&lends == 0 && w.demand.room.refuses(now, n, unitsOf(word)) || n > w.limit()
}

// lookLocked is Look.
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
	return Lacks
}

// TryAdd takes n units at now if the member has them. The token is what [Window.Cancel] wants. If
// it has not, TryAdd returns false and has more fetched, unless there are none. The lane says
// nothing about the call but which processor it is on, roughly, see [stat.Window].
func (w *Window) TryAdd(lane uint32, now, n int64) (token int64, ok bool) {
	number, ran, ok := w.leases.lease.take(lane, now, n)
	if !ok {
		return w.tryAdd(lane, now, n)
	}
	if ran {
		w.mu.Lock()
		post := w.runsLowLocked(now)
		w.mu.Unlock()
		w.send(post)
	}
	return lotToken(number), true
}

// tryAdd is TryAdd where that takes the mutex.
func (w *Window) tryAdd(lane uint32, now, n int64) (token int64, ok bool) {
	if w.refuses(now, n) {
		w.refuse(n)
		return 0, false
	}
	w.mu.Lock()
	w.rollLocked(now)
	number, ran, ok := w.leases.lease.draw(now, n)
	post, refused, missed := false, false, false
	switch {
	case ok:
		token = lotToken(number)
		if ran = w.leases.lease.lend(lane, now, n) || ran; ran {
			post = w.runsLowLocked(now)
		}
	case w.refuses(now, n):
		refused = true
	default:
		if missed = !w.unreachableLocked(); !missed {
			token, ok = w.takeFallbackLocked(now, n)
			refused = !ok
		}
		w.demand.short += n
		post = w.m.mayAsk(w.value, now) && w.postLocked(now, now)
	}
	w.mu.Unlock()
	switch {
	case refused:
		w.refuse(n)
	case missed: // the call may have it fetched
		w.miss(n)
	}
	if post || ran {
		w.send(post)
	}
	return token, ok
}

// refuse counts a call that is refused without asking the store.
func (w *Window) refuse(n int64) {
	w.miss(n)
	w.refused.Add(1)
}

// miss counts units that a call did without.
func (w *Window) miss(n int64) { w.demand.missed.Add(n) }

// runsLowLocked has more fetched, as few are left, unless they will do, and reports whether a flush may send
// that.
func (w *Window) runsLowLocked(now int64) bool {
	w.demand.runsLow(w.positionLocked(), now)
	return w.postLocked(now, now)
}

// send has sent what may be sent. Either way it sees whether the machine was suspended.
func (w *Window) send(post bool) {
	if post {
		w.m.flush(false)
	} else {
		w.m.now()
	}
}

// RetryAfter returns how long after now n units may fit, by what the member knows; false if they never
// will, or if time alone doesn't tell.
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

// Cancel gives n units back that TryAdd or Fetch took and that are not used: to the lease, to the
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
	l := w.leases.giveBack(number, n, w.round.epoch)
	if l == nil {
		return
	}
	w.returnLocked(store.Units{Bucket: l.bucket, Units: n})
	w.scheduleLocked(w.m.clock.Now())
}

// Holds reports whether a call that was granted units, and has waited since, may run at now: their
// bucket is current, or, for what was granted without the store, that of the fallback is, and the
// store is still unreachable. A call that may not run gives them back and wants others.
func (w *Window) Holds(now, token int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if token&(1<<tokenBits-1) != fromLot {
		return w.fallback.holds(now, token)
	}
	return w.leases.holds(uint32(token>>tokenBits), w.round.epoch, now)
}

// A token says where units are from, in its last two bits: from a lot, whose number is before them, from the
// window of the fallback, whose bucket is, or from nowhere.
const (
	fromLot = iota
	fromFallback
	fromNowhere
	tokenBits = 2
)

// lotToken is the token of a lot: fromLot is 0.
func lotToken(number uint32) int64 { return int64(number) << tokenBits }
