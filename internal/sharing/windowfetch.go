package sharing

import (
	"slices"

	"github.com/penstock-go/penstock/cluster/store"
)

// enter is [Member.Fetch] for one limit.
func (w *Window) enter(x *waiter, now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := x.need.Units
	w.rollLocked(now)
	number, _, ok := w.leases.lease.draw(now, n)
	switch {
	case ok:
		x.need.Token = lotToken(number)
		x.decideLocked(true)
	case w.refuses(now, n) && x.need.MaxWait == 0, n > w.limit():
		w.refuse(n)
		x.decideLocked(false)
	case w.unreachableLocked():
		w.fallBackLocked(x, now)
		w.postLocked(now, now)
	case !w.m.mayWait(x, w.value, now):
		w.fallBackLocked(x, now)
	default:
		x.waited = true
		if !x.late {
			w.waited++
		}
		w.waiters = append(w.waiters, x)
		w.postLocked(now, now)
	}
}

// expire decides for a call that has waited for the longest time allowed.
func (w *Window) expire(x *waiter, now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.withdrawLocked(x) {
		w.rollLocked(now)
		w.fallBackLocked(x, now)
	}
}

func (w *Window) giveBack(n *Need) { w.Cancel(n.Token, n.Units) }

func (w *Window) settle(n *Need, now, over int64) {
	if over > 0 {
		w.Charge(now, over)
	} else {
		w.Cancel(n.Token, min(-over, n.Units))
	}
}

// serveLocked gives waiting calls the available units, in order, and refuses calls that the store
// has no room for.
func (w *Window) serveLocked(now int64) {
	w.waiters = slices.DeleteFunc(w.waiters, func(x *waiter) bool {
		n := x.need.Units
		if number, _, ok := w.leases.lease.draw(now, n); ok {
			x.need.Token = lotToken(number)
			x.decideLocked(true)
		} else if w.refuses(now, n) && x.need.MaxWait == 0 || n > w.limit() {
			w.miss(n)
			x.decideLocked(false)
		}
		return x.decided
	})
}

// giveOwnedLocked gives the first call n units that are in no lease, borrowed ones or more than a
// lease can hold, and hands back the units that nobody takes.
func (w *Window) giveOwnedLocked(l *lot, n, now int64) {
	w.round.spend(store.Units{Bucket: l.bucket, Units: n}, l.starts)
	for i, x := range w.waiters {
		wait := until(l.starts, now)
		if x.need.Units <= n && wait <= x.need.MaxWait && l.starts < l.ends {
			x.need.Token, x.need.Wait = lotToken(l.number), wait
			x.decideLocked(true)
			w.waiters = slices.Delete(w.waiters, i, i+1)
			n -= x.need.Units
			break
		}
	}
	w.rejectAskingLocked()
	w.returnLocked(store.Units{Bucket: l.bucket, Units: n})
}

// rejectAskingLocked refuses the call whose need the last command carried, if it still waits: it
// has had its turn.
func (w *Window) rejectAskingLocked() {
	if len(w.waiters) > 0 && w.waiters[0] == w.round.asking {
		w.miss(w.round.asking.need.Units)
		w.round.asking.decideLocked(false)
		w.waiters = slices.Delete(w.waiters, 0, 1)
	}
}

// failAllLocked decides for all waiting calls: the store didn't answer.
func (w *Window) failAllLocked(now int64) {
	for _, x := range w.waiters {
		w.fallBackLocked(x, now)
	}
	w.waiters = nil
}
