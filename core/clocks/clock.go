// Package clocks provides the time of an engine: the machine's clock, a coarse clock, or a clock
// that a test advances by hand. Most programs don't import it.
package clocks

import (
	"context"
	"time"
)

// Clock provides the time of an engine. Now is in nanoseconds: the Unix time when the clock was
// made, plus the monotonic time since. Times lie between the years 1900 and 2100 (UTC): a time
// outside counts as the nearer end, where time stands still. The clocks of this package never run
// backwards, and setting the wall clock doesn't affect them. With a custom Clock, the engine
// ignores a step back, and counts a step forward as elapsed time (see [Steady]). Clocks are safe
// for concurrent use.
type Clock interface {
	Now() int64
	// Sleep returns nil after d, or the context's error if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

// The range of times. At this distance from the ends of 64 bits, neither the difference of two
// times nor the sum of a time and any duration of a rule overflows, and every time is later than
// the value for "never" in package stat.
const (
	firstTime = -2_208_988_800 * int64(time.Second) // 1900
	lastTime  = 4_102_444_800 * int64(time.Second)  // 2100
)

// inRange returns the time in range that is nearest to t.
func inRange(t int64) int64 { return min(max(t, firstTime), lastTime) }

// inRangeTime is like inRange, but for a time that may not fit in nanoseconds.
func inRangeTime(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, firstTime)):
		return firstTime
	case t.After(time.Unix(0, lastTime)):
		return lastTime
	}
	return t.UnixNano()
}

// later returns the time d after now, which is in range, or the last time.
func later(now int64, d time.Duration) int64 { return now + min(max(int64(d), 0), lastTime-now) }

// Until returns the time from now to a deadline on a clock.
func Until(c Clock, deadline time.Time) time.Duration {
	if c, ok := c.(deadlineClock); ok {
		return c.until(deadline)
	}
	return deadline.Sub(time.Unix(0, c.Now())) // relative to the clock's time, because the clock set the deadline
}

// SleepCall makes a call sleep on a clock. It calls before as soon as the call sleeps, so that a
// clock that waits for the end of the call's previous sleep finds this one. The caller must call
// returned when the call has returned.
func SleepCall(ctx context.Context, c Clock, d time.Duration, before func()) (returned func(), err error) {
	if c, ok := c.(callClock); ok {
		return c.sleepCall(ctx, d, nil, before)
	}
	return before, c.Sleep(ctx, d)
}

// Calling returns a context in which a call that has slept may sleep again with [Clock.Sleep], as
// if with [SleepCall]. Such a sleep stores in *returned the function that must be run once the call
// returns.
func Calling(ctx context.Context, c Clock, returned *func()) context.Context {
	if _, ok := c.(callClock); ok {
		return context.WithValue(ctx, sleepsAgain{}, returned)
	}
	return ctx
}

type sleepsAgain struct{}

// Alarm calls ring once, when d has passed on a clock. For a clock without a method Alarm, it uses
// the machine's timer, because the Sleep of a custom clock is for calls, and may return
// immediately.
func Alarm(c Clock, d time.Duration, ring func()) (stop func()) {
	if c, ok := c.(alarmClock); ok {
		return c.Alarm(d, ring)
	}
	timer := time.AfterFunc(d, ring)
	return func() { timer.Stop() }
}

// alarmClock is a Clock that can call back.
type alarmClock interface {
	Alarm(d time.Duration, ring func()) (stop func())
}

// deadlineClock is a Clock that computes the time to a deadline itself. For other clocks the
// deadline's Unix time is compared with Now.
type deadlineClock interface {
	until(deadline time.Time) time.Duration
}

// callClock is a Clock that needs to know when a call that it woke has returned or sleeps again. If
// the call sleeps again, the clock calls before once the new sleep is registered. Unless n is nil,
// it can end the sleep early.
type callClock interface {
	sleepCall(ctx context.Context, d time.Duration, n *Nap, before func()) (returned func(), err error)
}

// System is the clock for production: the monotonic clock of the machine. The zero value is not
// ready; use [NewSystem].
type System struct {
	base time.Time // carries a monotonic reading
	unix int64
}

// NewSystem returns a clock that starts at the current Unix time.
func NewSystem() *System {
	now := time.Now()
	return &System{base: now, unix: inRangeTime(now)}
}

// Now returns the Unix time at the start plus the monotonic time since.
func (c *System) Now() int64 { return c.unix + int64(time.Since(c.base)) }

// Sleep waits on a timer. If the context never ends, it allocates nothing.
func (c *System) Sleep(ctx context.Context, d time.Duration) error {
	return sleep(ctx, d)
}

func (c *System) until(deadline time.Time) time.Duration { return time.Until(deadline) }

func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	done := ctx.Done()
	if done == nil {
		time.Sleep(d) // uses the goroutine's own timer
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-done:
		return ctx.Err()
	}
}
