package sharing

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
)

// Need is the units that a call needs of a limit, and what [Member.Fetch] got for it.
type Need struct {
	Limit Limit
	Units int64
	// MaxWait is how long the call may wait before it runs: of a window, for a coming bucket, with
	// 0 if it may not borrow; of a throttle, for its turn.
	MaxWait time.Duration

	// Got says that the call has the units now; otherwise it is refused.
	Got   bool
	Token int64         // for Cancel of a window
	Wait  time.Duration // the call may run after that
}

// waiter is a call that waits for units of one limit.
type waiter struct {
	need    *Need
	group   *group
	late    bool // no call waits, see Late
	waited  bool // for the store
	retried bool // the window has handed its lease back, and asks again for this call
	decided bool // under the mutex of the limit
}

// group is the needs of a call, which waits until all are decided.
type group struct {
	open atomic.Int64
	wake func()
}

// decideLocked records whether a need is met, with the limit's mutex. The caller has set what was got.
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

// Fetch gets the units that a call needs of limits of this member, all in one round, and waits at most atMost
// for it. What it gets belongs to the call, and is noted in Got and Token. Where the store doesn't
// answer in time, each limit decides as its rule says. With atMost 0, Fetch doesn't wait.
//
// An error is the context's, and means that the call got nothing.
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
		_ = m.clock.Sleep(wake, atMost) // what has been decided by now counts, even if the context has ended
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
