package sharing

import "github.com/penstock-go/penstock/cluster/store"

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
