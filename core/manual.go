package core

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// SleepMode is what a [ManualClock] does with a caller that wants to wait.
type SleepMode uint8

// The three ways to sleep.
const (
	// SleepPark holds the caller until the clock is advanced to its wake time,
	// as a real clock would.
	SleepPark SleepMode = iota
	// SleepRecord returns at once and only notes what was asked for.
	SleepRecord
	// SleepAdvance moves the clock by the wait: one caller, one thing after the
	// other.
	SleepAdvance
)

// ManualClock is a clock for tests: it stands still until it is told to move, so
// that rules that act over minutes are tested in microseconds. It is safe for
// concurrent use.
type ManualClock struct {
	advancing sync.Mutex // one Advance at a time

	mu      sync.Mutex
	changed *sync.Cond // the sleepers have changed
	now     int64
	mode    SleepMode
	slept   []time.Duration
	parked  []*sleeper // by wake time, ties in order of going to sleep
	alarms  []*alarm   // likewise
}

// alarm is something to call when its time has come.
type alarm struct {
	at   int64
	ring func()
}

type sleeper struct {
	ctx      context.Context
	wake     int64
	gaveUp   bool          // its context had ended when its time came
	woken    chan struct{} // closed when its time has come
	returned chan struct{} // closed when the call it belongs to has returned; nil if it is no call
}

// NewManualClock returns a clock that stands at start and parks who sleeps. The zero
// time, which nanoseconds can't show, stands for the begin of 1970.
func NewManualClock(start time.Time) *ManualClock {
	c := new(ManualClock)
	if !start.IsZero() {
		c.now = start.UnixNano()
	}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// SetSleep chooses what happens to callers that sleep from now on.
func (c *ManualClock) SetSleep(mode SleepMode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode = mode
}

// Now is the time the clock was set to.
func (c *ManualClock) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d. It stops at every wake time on the way, in order,
// ties in order of going to sleep, and lets that one sleeper run until its call
// has returned (or it sleeps again) before it goes on. A sleeper whose context ended
// before it was reached doesn't wake up. Advance must not be called from within a
// guarded call that it would have to wait for.
func (c *ManualClock) Advance(d time.Duration) {
	c.advancing.Lock()
	defer c.advancing.Unlock()
	c.advanceTo(c.Now() + int64(d))
}

// AdvanceTo moves the clock to t, as Advance does. A time that has passed already
// moves nothing.
func (c *ManualClock) AdvanceTo(t int64) {
	c.advancing.Lock()
	defer c.advancing.Unlock()
	c.advanceTo(t)
}

// advanceTo needs advancing.
func (c *ManualClock) advanceTo(t int64) {
	for {
		s, a := c.wakeOne(t)
		switch {
		case a != nil:
			a.ring()
		case s == nil:
			return
		case s.returned != nil:
			<-s.returned
		}
	}
}

// wakeOne wakes the next sleeper due by t, or returns the alarm that comes before
// it, or sets the clock to t if there is neither.
func (c *ManualClock) wakeOne(t int64) (*sleeper, *alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sleepers := len(c.parked) > 0 && c.parked[0].wake <= t
	if len(c.alarms) > 0 && c.alarms[0].at <= t && !(sleepers && c.parked[0].wake <= c.alarms[0].at) {
		a := c.alarms[0]
		c.alarms = slices.Delete(c.alarms, 0, 1)
		c.now = max(c.now, a.at)
		return nil, a
	}
	if !sleepers {
		c.now = max(c.now, t)
		return nil, nil
	}
	s := c.parked[0]
	c.parked = slices.Delete(c.parked, 0, 1)
	c.now = max(c.now, s.wake)
	s.gaveUp = s.ctx.Err() != nil
	close(s.woken)
	return s, nil
}

// alarm has Advance call ring when the clock has moved by d, whatever the mode.
func (c *ManualClock) alarm(d time.Duration, ring func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{c.now + int64(d), ring}
	i, _ := slices.BinarySearchFunc(c.alarms, a.at+1, func(b *alarm, at int64) int { return cmp.Compare(b.at, at) })
	c.alarms = slices.Insert(c.alarms, i, a)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.alarms = slices.DeleteFunc(c.alarms, func(b *alarm) bool { return b == a })
	}
}

// Sleep does what the mode says.
func (c *ManualClock) Sleep(ctx context.Context, d time.Duration) error {
	s := c.park(ctx, d, nil)
	if s == nil {
		return ctx.Err()
	}
	return c.await(ctx, s)
}

func (c *ManualClock) sleepCall(ctx context.Context, d time.Duration, before func()) (returned func(), err error) {
	done := make(chan struct{})
	returned = sync.OnceFunc(func() { close(done) })
	awake := false
	defer func() {
		if !awake { // the context panicked
			returned()
		}
	}()
	s := c.park(ctx, d, done)
	before()
	if s != nil {
		err = c.await(ctx, s)
	} else {
		err = ctx.Err()
	}
	awake = true
	return returned, err
}

// park notes the wish to sleep and, if the mode says so, lines the caller up. It
// returns nil if there is nothing to wait for.
func (c *ManualClock) park(ctx context.Context, d time.Duration, returned chan struct{}) *sleeper {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = append(c.slept, d)
	if c.mode == SleepAdvance {
		c.now += int64(max(d, 0))
	}
	if c.mode != SleepPark || d <= 0 {
		return nil
	}
	s := &sleeper{ctx: ctx, wake: c.now + int64(d), woken: make(chan struct{}), returned: returned}
	i, _ := slices.BinarySearchFunc(c.parked, s.wake+1, func(p *sleeper, wake int64) int { return cmp.Compare(p.wake, wake) })
	c.parked = slices.Insert(c.parked, i, s)
	c.changed.Broadcast()
	return s
}

func (c *ManualClock) await(ctx context.Context, s *sleeper) error {
	select {
	case <-s.woken:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.parked, s); i >= 0 {
		c.parked = slices.Delete(c.parked, i, i+1)
		c.changed.Broadcast()
		s.gaveUp = true
	}
	if s.gaveUp {
		return ctx.Err()
	}
	return nil // also if the context ended since: the wake-up came first
}

// Slept lists every wait that was asked for, in order.
func (c *ManualClock) Slept() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.slept)
}

// Parked is how many callers are held at the moment.
func (c *ManualClock) Parked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.parked)
}

// AwaitParked returns when at least n callers are held, so that a test knows that
// the goroutines it started have come to their wait.
func (c *ManualClock) AwaitParked(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.parked) < n {
		c.changed.Wait()
	}
}

func (c *ManualClock) until(deadline time.Time) time.Duration {
	return deadline.Sub(time.Unix(0, c.Now()))
}
