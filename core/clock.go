package core

import (
	"context"
	"time"
)

// Clock tells the time of an engine. Now is in nanoseconds: Unix time when the
// clock was made, plus monotonic time since. Those here never go back, and a stepped
// wall clock doesn't move them. Of a Clock of your own, the engine takes a step back
// for no time, and a step forward for time that passed (see [Engine.Now]). Clocks are
// safe for concurrent use.
type Clock interface {
	Now() int64
	// Sleep returns nil after d, or the context's error if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

// deadlineClock is a Clock that knows how far off a deadline is. Without it the
// deadline's Unix time is compared with Now.
type deadlineClock interface {
	until(deadline time.Time) time.Duration
}

// callClock is a Clock that wants to know when a call that it woke has returned, or
// sleeps again: then it calls before, once the new sleep is known.
type callClock interface {
	sleepCall(ctx context.Context, d time.Duration, before func()) (returned func(), err error)
}

// SystemClock is the clock of production: the monotonic clock of the machine.
// The zero value is not ready; use [NewSystemClock].
type SystemClock struct {
	base time.Time // carries a monotonic reading
	unix int64
}

// NewSystemClock returns a clock that starts at the present Unix time.
func NewSystemClock() *SystemClock {
	now := time.Now()
	return &SystemClock{base: now, unix: now.UnixNano()}
}

// Now is the Unix time at the start plus the monotonic time since.
func (c *SystemClock) Now() int64 { return c.unix + int64(time.Since(c.base)) }

// Sleep waits on a timer. Where the context can't end, that allocates nothing.
func (c *SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	return sleep(ctx, d)
}

func (c *SystemClock) until(deadline time.Time) time.Duration { return time.Until(deadline) }

func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	done := ctx.Done()
	if done == nil {
		time.Sleep(d) // on the timer that every goroutine has
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
