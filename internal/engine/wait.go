package engine

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
)

// notYet is the before of a call that has not slept yet.
func notYet() {}

// queue waits without a lock, for the longest wait of any rule and then for its turn in the queue,
// and then asks the rules that depend on a state rather than a count again. before is called as
// soon as the call sleeps; see clocks.SleepCall.
func (inv *Invocation) queue(v Verdict, before func()) (Entry, error) {
	if v.Wait <= 0 && !inv.Awaits() {
		return inv.goOn(before)
	}
	if inv.holdsFleeting {
		inv.handBack(v.Wait)
		inv.later = true // units kept through the wait are checked again
	}
	returned, by, cause := inv.wait(v, before)
	defer returned()
	if by != nil {
		return Entry{}, inv.refuse(by, cause)
	}
	if inv.later {
		return inv.goOn(returned)
	}
	v = Verdict{}
	if inv.walk(rechecking, &v) == refused {
		inv.recycle()
		return Entry{}, v.Block
	}
	return inv.entry(), nil
}

// wait returns nil if the call may run now that it has waited; otherwise it returns the rejection
// and the error of the context that ended the wait, or nil if there was none. If the clock or the
// context panics, or ends the goroutine, the call is rejected.
func (inv *Invocation) wait(v Verdict, before func()) (returned func(), by *core.BlockError, cause error) {
	returned = before
	if by = v.By; v.Wait <= 0 {
		by = inv.waiter.by
	}
	by = inv.named(by)
	over := false
	defer func() {
		if !over {
			_ = inv.refuse(by, nil)
			returned()
		}
	}()
	if inv.Awaits() {
		inv.engine.reload(inv)
	}
	if !inv.inTime(max(v.Wait, 0)) {
		over = true
		return returned, by, nil
	}
	if v.Borrowed {
		inv.runs = inv.now + int64(v.Wait)
		inv.chargeAt(inv.runs)
	}
	e := inv.engine
	e.waiting.Add(1)
	defer e.waiting.Add(-1)
	ok := true
	if v.Wait > 0 {
		returned, cause = inv.awaitTurns(v.Wait, returned)
		if ok = cause == nil; !ok {
			if cause == errNoTimeToAnswer || cause == errExpired { //nolint:errorlint // it is the error itself
				cause = nil
			}
			by = cmp.Or(inv.lostTo(), by)
		}
	}
	if ok && inv.Awaits() {
		by = inv.waiter.by
		returned, ok, cause = inv.awaitGrant(returned)
		inv.now = max(inv.now, e.Now())
	}
	if ok {
		e.reload(inv) // before it is counted; see [Resource.remember]
		by, inv.waited = nil, inv.now-inv.began
	}
	if cause != nil && e.drain.on.Load() {
		cause = core.ErrDraining // perhaps the reason why the context has ended
	}
	over = true
	return returned, by, cause
}

// inTime reports whether a wait ends before the context's deadline, and leaves a server time to
// respond.
func (inv *Invocation) inTime(wait time.Duration) bool {
	if inv.ctx.Err() != nil {
		return false
	}
	if left, ok := inv.untilAnswer(); ok && left < wait {
		return false
	}
	until, ok := inv.untilDeadline()
	return !ok || until >= wait
}

// untilDeadline returns the time to the context's deadline, or false if it has none.
func (inv *Invocation) untilDeadline() (time.Duration, bool) {
	deadline, ok := inv.ctx.Deadline()
	if !ok {
		return 0, false
	}
	return clocks.Until(inv.engine.clock, deadline), true
}

// untilAnswer returns the time that the call may still wait so that its server has time to respond,
// or false if that is not known.
func (inv *Invocation) untilAnswer() (time.Duration, bool) {
	if inv.left == nil {
		return 0, false
	}
	left, ok := inv.left(inv.ctx)
	return left - time.Duration(inv.engine.Now()-inv.outermost()), ok
}

// outermost returns the time at which the outermost call with the same server deadline asked to
// enter.
func (inv *Invocation) outermost() int64 {
	if c := inv.context; c != nil && c.began != 0 && c.tree == inv.engine.tree {
		return c.began
	}
	return inv.began
}
