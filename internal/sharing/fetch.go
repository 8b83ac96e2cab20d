package sharing

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
)

// Need is a number of units that a call needs from a limit, and the result of [Member.Fetch].
type Need struct {
	Limit Limit
	Units int64
	// MaxWait is the longest that the call may wait before it runs: for a coming bucket of a window
	// (0 if it may not borrow), or for its turn of a throttle.
	MaxWait time.Duration

	// Got reports that the call has the units; if false after Fetch, the call is refused.
	Got   bool
	Token int64         // for Window.Cancel or Bucket.Cancel
	Wait  time.Duration // the call may run after this time
}

// waiter is a call waiting for units of one limit.
type waiter struct {
	need    *Need
	group   *group
	late    bool // no call is blocked, see Late
	waited  bool // it has waited for the store
	retried bool // the window has handed its lease back and asks again for this call
	decided bool // guarded by the limit's mutex
}

// group is the needs of one call, which waits until all are decided.
type group struct {
	open atomic.Int64
	wake func()
}

// decideLocked records whether a need is met. The caller holds the limit's mutex and has set the
// result.
func (w *waiter) decideLocked(got bool) {
	if w.decided {
		return
	}
	w.decided = true
	w.need.Got = got
	if w.group.open.Add(-1) == 0 {
		w.group.wake()
	}
}

// Fetch gets the units that a call needs from several limits in one round, and waits at most
// atMost. With atMost 0 it doesn't wait. The units belong to the call, which finds them in Got and
// Token. If the store doesn't answer in time, each limit follows its rule's onFailure.
//
// An error is the context's; the call then gets nothing.
func (m *Member) Fetch(ctx context.Context, atMost time.Duration, needs []Need) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := m.now()
	wake := clocks.Wakeable(ctx)
	defer wake.Release()
	g := &group{wake: wake.Wake}
	g.open.Store(int64(len(needs)))
	waiters := make([]waiter, len(needs))
	for i := range needs {
		waiters[i] = waiter{need: &needs[i], group: g}
		needs[i].Got, needs[i].Token, needs[i].Wait = false, 0, 0
		needs[i].Limit.enter(&waiters[i], now)
	}
	m.flush(true)
	if g.open.Load() > 0 && atMost > 0 {
		_ = m.clock.Sleep(wake, atMost) // needs decided by now count, even if the context has ended
	}
	now = m.clock.Now()
	for i := range waiters {
		needs[i].Limit.expire(&waiters[i], now)
	}
	if err := ctx.Err(); err != nil {
		for i := range needs {
			if needs[i].Got {
				needs[i].Limit.giveBack(&needs[i])
				needs[i].Got = false
			}
		}
		return err
	}
	return nil
}
