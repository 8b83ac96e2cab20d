//go:build sim

package schedules

import (
	"context"
	"time"
)

// Await parks the caller until a condition holds. The condition must not change anything.
func (s *Schedule) Await(until func() bool) { s.await(until, 0) }

func (s *Schedule) await(until func() bool, wake int64) {
	t := s.running
	s.step("waits")
	t.until, t.wake, t.pending = until, wake, access{alone: true}
	s.drop(t)
	s.waiting = append(s.waiting, t)
	s.switchTo(s.choose(nil))
}

// release makes callers ready whose condition holds. If nobody can continue otherwise, it advances
// the clock to the next wake-up.
func (s *Schedule) release() {
	me := s.running
	s.running = nil // conditions are not part of the schedule
	defer func() { s.running = me }()
	for {
		keep := s.waiting[:0]
		for _, t := range s.waiting {
			if t.until() {
				t.until, t.wake = nil, 0
				s.ready = append(s.ready, t)
			} else {
				keep = append(keep, t)
			}
		}
		s.waiting = keep
		var first int64
		for _, t := range s.waiting {
			if t.wake != 0 && (first == 0 || t.wake < first) {
				first = t.wake
			}
		}
		if len(s.ready) > 0 || first == 0 {
			return
		}
		s.now = max(s.now, first)
	}
}

// Clock is the schedule's time. It moves only by Advance, and to the next sleeper's wake-up if no
// caller can continue. It is a clocks.Clock.
type Clock struct{ s *Schedule }

// Clock returns the schedule's clock.
func (s *Schedule) Clock() Clock { return Clock{s} }

// Now returns the time in nanoseconds. The caller may be held up before it.
func (c Clock) Now() int64 {
	c.s.Access(c.s, false)
	return c.s.now
}

// Advance moves the time forward.
func (c Clock) Advance(d time.Duration) {
	c.s.Access(c.s, true)
	c.s.now += int64(d)
}

// Set sets the time.
func (c Clock) Set(now int64) { c.s.now = now }

// Alarm never rings: work that an engine does at intervals is not part of a schedule unless a test
// triggers it. Without this method the machine's timers would ring into schedules.
func (Clock) Alarm(time.Duration, func()) (stop func()) { return func() {} }

// Sleep returns when the clock has advanced by d, or the context has ended.
func (c Clock) Sleep(ctx context.Context, d time.Duration) error {
	wake := c.s.now + int64(d)
	c.s.await(func() bool { return c.s.now >= wake || ctx.Err() != nil }, wake)
	if c.s.now >= wake {
		return nil
	}
	return ctx.Err()
}
