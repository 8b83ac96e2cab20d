package clocks

import (
	"context"
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// Nap is the sleep of a call that waits for its turn. Other calls may end it earlier, even before
// the call sleeps; see package stat. It serves one call after another.
//
// Invariant, under mu: end is the end of the current sleep, or of the next one if that was set
// earlier. If a caller sets an earlier end, either it finds the sleep and ends that earlier as
// well, or the call finds the new end when it begins to sleep. A time later than end changes
// nothing.
type Nap struct {
	mu    shared.Mutex // guards the fields below it
	end   int64
	sleep movable // the current or last sleep, or nil
	timed timedSleep
	kept  *time.Timer // for the next call; see bubbled
}

// MakeNap returns a Nap without an end.
func MakeNap() Nap { return Nap{end: never} }

// movable is a sleep that can end earlier. After the sleep has ended, wakeAt does nothing.
type movable interface {
	// wakeAt makes it end at that time, or immediately if that has passed.
	wakeAt(to int64)
}

// never is the end of a nap before one is set.
const never = math.MaxInt64

// WakeAt makes the call look at that time, unless it would look earlier.
func (n *Nap) WakeAt(to int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if to >= n.end {
		return
	}
	n.end = to
	if n.sleep != nil {
		n.sleep.wakeAt(to)
	}
}

// Wake makes the call look immediately.
func (n *Nap) Wake() { n.WakeAt(firstTime - 1) }

// begin records that the call sleeps until then, in a sleep that can end earlier.
func (n *Nap) begin(until int64, sleep movable) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.on(until, sleep)
}

// on records the current sleep, and ends it early if that was requested before. It needs mu.
func (n *Nap) on(until int64, sleep movable) {
	n.sleep = sleep
	if n.end < until {
		sleep.wakeAt(n.end)
		return
	}
	n.end = until
}

// park is like begin, but for a sleep on a Manual clock, where it also parks the call: when a test
// sees the call parked and then makes other calls leave, these find the sleep here.
func (n *Nap) park(ctx context.Context, c *Manual, d time.Duration, returned chan struct{}) *sleeper {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := c.park(ctx, d, returned)
	if s == nil {
		return nil
	}
	n.on(s.wake, s)
	return s
}

// sleeps is like begin, but for a sleep that has not started. It returns the end of the sleep.
func (n *Nap) sleeps(until int64, sleep movable) (end int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sleep, n.end = sleep, min(until, n.end)
	return n.end
}

// slept returns the actual end of the call's sleep, which was to last until then.
func (n *Nap) slept(until int64) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return min(until, n.end)
}

// Again clears the end set by other calls: the caller is about to check for their changes.
func (n *Nap) Again() {
	n.mu.Lock()
	n.end, n.sleep = never, nil
	n.mu.Unlock()
}

// Forget prepares the nap for the next call. No other call may refer to it.
func (n *Nap) Forget() { n.end, n.sleep, n.timed = never, nil, timedSleep{} }

// timedSleep is a sleep on a timer of the machine.
type timedSleep struct {
	timer *time.Timer
	clock *System
}

func (s *timedSleep) wakeAt(to int64) { s.timer.Reset(time.Duration(to - s.clock.Now())) }

// bubbled reports whether a call whose time is now may be in a synctest bubble, or the clock was
// made in one: time in bubbles begins with the year 2000. A timer made in a bubble can't be used
// outside it, so there each sleep makes its own.
func (c *System) bubbled(now int64) bool { return now < c.unix || c.unix < noBubble }

const noBubble = int64(40 * 365 * 24 * time.Hour) // about 2010

// nap sleeps from now until then, and returns the time afterwards.
func (c *System) nap(ctx context.Context, now, until int64, n *Nap) (after int64, err error) {
	d, timer := time.Duration(until-now), n.kept
	switch {
	case c.bubbled(now):
		timer = time.NewTimer(d)
	case timer == nil:
		timer = time.NewTimer(d)
		n.kept = timer
	default:
		timer.Reset(d)
	}
	n.timed = timedSleep{timer, c}
	n.begin(until, &n.timed)
	select {
	case <-timer.C:
	case <-ctx.Done():
		timer.Stop()
		err = ctx.Err()
	}
	return c.Now(), err
}

// Sleep makes a call whose time is now sleep on a clock until then, or less if the nap ends
// earlier, and returns the time until which it slept. before and returned are as in [SleepCall].
func (n *Nap) Sleep(ctx context.Context, c Clock, now, until int64, before func()) (returned func(), slept int64, err error) {
	switch c := c.(type) { // a type that embeds one of these clocks may have its own Sleep
	case *System:
		slept, err = c.nap(ctx, now, until, n)
		return before, slept, err
	case *Coarse:
		slept, err = c.system.nap(ctx, now, until, n)
		return before, slept, err
	case callClock:
		returned, err = c.sleepCall(ctx, time.Duration(until-now), n, before)
		return returned, n.slept(until), err
	}
	slept, err = n.onAny(ctx, c, now, until)
	return before, slept, err
}

// onAny is like Sleep, but on a clock that doesn't support naps: WakeAt wakes the call, which goes
// back to sleep for the remaining time.
func (n *Nap) onAny(parent context.Context, c Clock, now, until int64) (slept int64, err error) {
	wake := Wakeable(parent)
	defer wake.Release()
	end := n.sleeps(until, wake)
	if !wake.Woken() && end > now {
		if err = c.Sleep(wake, time.Duration(end-now)); err == nil {
			return end, nil
		}
	}
	if ended := parent.Err(); ended != nil || wake.Woken() {
		err = ended
	}
	return now, err
}
