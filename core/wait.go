package core

import (
	"context"
	"time"
)

// queue waits outside all locks, for the longest wait that any rule asked for and
// then for its turn in line, and asks again about what is a state rather than a
// count.
func (inv *Invocation) queue(v Verdict) (Entry, error) {
	returned, by, cause := inv.wait(v)
	defer returned()
	if by != nil {
		return Entry{}, inv.refuse(by, cause)
	}
	if again := inv.recheck(); again.Block != nil {
		return Entry{}, inv.refuse(again.Block, nil)
	}
	return inv.pass(), nil
}

// wait returns nil if the call may run now that its wait is over, or else who refuses
// it, and which error of the context ended the wait; nil if there was none. Where the
// clock or the context panics, or ends the goroutine, the call is refused.
func (inv *Invocation) wait(v Verdict) (returned func(), by *BlockError, cause error) {
	returned = func() {}
	if by = v.By; v.Wait <= 0 {
		by = inv.standing.by
	}
	by = inv.named(by)
	over := false
	defer func() {
		if !over {
			_ = inv.refuse(by, nil)
			returned()
		}
	}()
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
		returned, cause = inv.sleep(inv.ctx, v.Wait, returned)
		inv.now = max(inv.now, e.Now())
		ok = cause == nil
	}
	if ok && inv.Awaits() {
		by = inv.standing.by
		returned, ok, cause = inv.stand(returned)
		inv.now = max(inv.now, e.Now())
	}
	over = true
	if ok {
		by = nil
	}
	return returned, by, cause
}

// sleep calls before as soon as the call sleeps, so that a clock that waits for the
// end of an earlier sleep of the call finds this one.
func (inv *Invocation) sleep(ctx context.Context, d time.Duration, before func()) (returned func(), err error) {
	if clock, ok := inv.engine.clock.(callClock); ok {
		return clock.sleepCall(ctx, d, before)
	}
	return before, inv.engine.clock.Sleep(ctx, d)
}

// inTime reports whether a wait ends before the context's deadline does.
func (inv *Invocation) inTime(wait time.Duration) bool {
	if inv.ctx.Err() != nil {
		return false
	}
	until, ok := inv.untilDeadline()
	return !ok || until >= wait
}

// untilDeadline is how far off the context's deadline is; false if it has none.
func (inv *Invocation) untilDeadline() (time.Duration, bool) {
	deadline, ok := inv.ctx.Deadline()
	if !ok {
		return 0, false
	}
	if clock, ok := inv.engine.clock.(deadlineClock); ok {
		return clock.until(deadline), true
	}
	return deadline.Sub(time.Unix(0, inv.engine.clock.Now())), true // as the clock shows it: so did who set the deadline
}

// recheck asks again about what may have changed. A panic is passed over.
func (inv *Invocation) recheck() (v Verdict) {
	for i := 0; i >= 0; {
		i = inv.recheckFrom(i, &v)
	}
	return v
}

func (inv *Invocation) recheckFrom(i int, v *Verdict) (next int) {
	defer func() {
		if next == 0 {
			next = inv.interrupted(recover(), i, inv.giveBack)
		}
	}()
	for recheckers := inv.engine.chain.recheckers; i < len(recheckers); i++ {
		if said := recheckers[i].Recheck(inv); said.Block != nil {
			*v = said
			return -1
		}
	}
	return -1
}
