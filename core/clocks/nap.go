package clocks

import (
	"context"
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// Nap is when a call that waits for turns looks whether they have come. Others may move
// that up meanwhile, whether or not the call is asleep yet; see package stat. It
// serves one call after the other.
//
// Invariant, under mu: end is when the sleep ends that is on, or that is yet to come if that
// was moved up. A caller that moves end up finds the sleep there and moves that up as well,
// or else the call finds end when it comes to sleep. A time later than end moves nothing.
type Nap struct {
	mu    shared.Mutex
	end   int64
	sleep movable // the one that is on, or was last; or nil
	timed timedSleep
	kept  *time.Timer // for the next call, see bubbled
}

// MakeNap returns a Nap that nobody has moved up.
func MakeNap() Nap { return Nap{end: never} }

// movable is a sleep whose end can be moved up. If it is over that does nothing.
type movable interface {
	// moveUp has it end at that time, or at once if it has passed.
	moveUp(to int64)
}

// never is when a nap ends that nobody has moved up.
const never = math.MaxInt64

// MoveUp has the call look at that time, unless it would earlier.
func (n *Nap) MoveUp(to int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if to >= n.end {
		return
	}
	n.end = to
	if n.sleep != nil {
		n.sleep.moveUp(to)
	}
}

// begin says that the call sleeps until then, in a sleep that can be moved up.
func (n *Nap) begin(until int64, sleep movable) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.on(until, sleep)
}

// on notes the sleep that is on, and moves it up if it was told to before. It needs mu.
func (n *Nap) on(until int64, sleep movable) {
	n.sleep = sleep
	if n.end < until {
		sleep.moveUp(n.end)
		return
	}
	n.end = until
}

// park is begin for a sleep on a clock that tests move, which it lies down for as well:
// whoever sees it there, and has others leave then, finds it here.
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

// sleeps is begin for a sleep that is yet to come, and returns when it is to end.
func (n *Nap) sleeps(until int64, sleep movable) (end int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sleep, n.end = sleep, min(until, n.end)
	return n.end
}

// slept is until when the call has slept that was to sleep until then.
func (n *Nap) slept(until int64) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return min(until, n.end)
}

// Again forgets which calls have moved the nap up: the caller looks next at what they had to
// tell.
func (n *Nap) Again() {
	n.mu.Lock()
	n.end, n.sleep = never, nil
	n.mu.Unlock()
}

// Forget makes the nap ready for the next call. Nobody knows of it.
func (n *Nap) Forget() { n.end, n.sleep, n.timed = never, nil, timedSleep{} }

// timedSleep is a sleep on a timer of the machine.
type timedSleep struct {
	timer *time.Timer
	clock *System
}

func (s *timedSleep) moveUp(to int64) { s.timer.Reset(time.Duration(to - s.clock.Now())) }

// bubbled reports whether a call that is at now may be in a bubble of synctest, or whether
// the clock was made in one: their time begins with the year 2000. A timer that is made in
// a bubble is of no use elsewhere, so there each sleep has its own.
func (c *System) bubbled(now int64) bool { return now < c.unix || c.unix < noBubble }

const noBubble = int64(40 * 365 * 24 * time.Hour) // about 2010

// nap sleeps from now until then, and returns what time it is after.
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

// Sleep has a call that is at now sleep on a clock until then, or less if the nap is moved
// up, and returns until when it has slept. before and returned are those of [SleepCall].
func (n *Nap) Sleep(ctx context.Context, c Clock, now, until int64, before func()) (returned func(), slept int64, err error) {
	switch c := c.(type) { // a clock that embeds one of ours has a Sleep of its own
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

// onAny is Sleep on a clock that knows nothing of naps: whoever moves it up wakes the
// call, and that sleeps on.
func (n *Nap) onAny(parent context.Context, c Clock, now, until int64) (slept int64, err error) {
	ctx, wake := Wakeable(parent)
	defer wake.Done()
	end := n.sleeps(until, wake)
	if !wake.Woken() && end > now {
		if err = c.Sleep(ctx, time.Duration(end-now)); err == nil {
			return end, nil
		}
	}
	if ended := parent.Err(); ended != nil || wake.Woken() {
		err = ended
	}
	return now, err
}
