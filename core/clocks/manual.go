package clocks

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/shown"
)

// SleepMode decides what a [Manual] does with a caller that sleeps.
type SleepMode uint8

// The three ways to sleep.
const (
	// SleepPark holds the caller until the clock is advanced to its wake time, as a real clock
	// would.
	SleepPark SleepMode = iota
	// SleepRecord returns immediately and only records the wait.
	SleepRecord
	// SleepAdvance advances the clock by the wait: for a single sequential caller.
	SleepAdvance
)

var sleepModeNames = shown.NewEnum[SleepMode]("sleepMode", "park", "record", "advance")

// String returns the name.
func (m SleepMode) String() string { return sleepModeNames.Name(m) }

// MarshalText writes the name.
func (m SleepMode) MarshalText() ([]byte, error) { return sleepModeNames.Marshal(m) }

// UnmarshalText reads the name.
func (m *SleepMode) UnmarshalText(text []byte) error { return sleepModeNames.Parse(text, m) }

// Manual is a clock for tests: it stands still until it is advanced, so that rules over minutes are
// tested in microseconds. It runs from the year 1900 to 2100 (UTC) and stands still at the end: a
// goroutine that would sleep beyond the end wakes at the end, or immediately if the clock is there
// already, and no more alarms ring. It is safe for concurrent use.
type Manual struct {
	advancing sync.Mutex // one Advance at a time

	mu      sync.Mutex
	changed *sync.Cond // the sleepers have changed
	now     int64
	moving  bool // an Advance is under way
	mode    SleepMode
	slept   []time.Duration
	parked  []*sleeper // by wake time, then in the order in which they began to sleep
	alarms  []*alarm   // likewise
}

// alarm is a function to call at a time.
type alarm struct {
	at   int64
	ring func()
}

type sleeper struct {
	clock    *Manual
	ctx      context.Context
	wake     int64
	gaveUp   bool          // its context had ended by its wake time
	moved    bool          // it was woken immediately, without checking its context
	woken    chan struct{} // closed at its wake time
	returned chan struct{} // closed when its call has returned; nil if it belongs to no call
}

// NewManual returns a clock that stands at start and parks goroutines that sleep. The zero time
// stands for the beginning of 1970, any other time out of range for the nearer end.
func NewManual(start time.Time) *Manual {
	c := new(Manual)
	if !start.IsZero() {
		c.now = inRangeTime(start)
	}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// SetSleep sets the mode for subsequent sleeps.
func (c *Manual) SetSleep(mode SleepMode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode = mode
}

// Now returns the time that the clock was set to.
func (c *Manual) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance advances the clock by d. It stops at every wake time on the way, in order, and at equal
// wake times in the order in which the callers began to sleep. It lets each sleeper run until its
// call has returned or sleeps again before it continues. A sleeper whose context ended before its
// wake time isn't woken. Engines also do their periodic work on the way, such as sampling the
// machine: a million times at most, and then once more at the end. Advance must not be called from
// within a guarded call that it would have to wait for.
func (c *Manual) Advance(d time.Duration) {
	c.advancing.Lock()
	defer c.advancing.Unlock()
	c.advanceTo(later(c.Now(), d))
}

// AdvanceTo advances the clock to t, as Advance does. If t has already passed it does nothing.
func (c *Manual) AdvanceTo(t int64) {
	c.advancing.Lock()
	defer c.advancing.Unlock()
	c.advanceTo(inRange(t))
}

// advanceTo is called with advancing held.
func (c *Manual) advanceTo(t int64) {
	defer func() { // even if an alarm panics
		c.mu.Lock()
		c.moving = false
		c.mu.Unlock()
	}()
	rings := 0
	for {
		s, a := c.wakeOne(t, rings < maxRings)
		switch {
		case a != nil:
			a.ring()
			rings++
		case s == nil:
			for _, a := range c.overdue() {
				a.ring()
			}
			return
		case s.returned != nil:
			<-s.returned
		}
	}
}

// maxRings is the maximum number of alarms in one Advance, because an alarm may set itself again.
// It is enough for three days of machine samples.
const maxRings = 1 << 20

// wakeOne wakes the next sleeper due by t or, if ring is true, returns the alarm that precedes it.
// If there is neither, it sets the clock to t.
func (c *Manual) wakeOne(t int64, ring bool) (*sleeper, *alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moving = true
	sleepers := len(c.parked) > 0 && c.parked[0].wake <= t
	if ring && len(c.alarms) > 0 && c.alarms[0].at <= t && !(sleepers && c.parked[0].wake <= c.alarms[0].at) {
		a := c.alarms[0]
		c.alarms = slices.Delete(c.alarms, 0, 1)
		c.now = max(c.now, a.at)
		return nil, a
	}
	if !sleepers {
		c.now = max(c.now, t)
		c.moving = false
		return nil, nil
	}
	s := c.parked[0]
	c.parked = slices.Delete(c.parked, 0, 1)
	c.now = max(c.now, s.wake)
	s.gaveUp = s.ctx.Err() != nil
	close(s.woken)
	return s, nil
}

// overdue removes and returns the alarms whose time has passed without a ring.
func (c *Manual) overdue() (due []*alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.alarms) && c.alarms[n].at <= c.now {
		n++
	}
	due = slices.Clone(c.alarms[:n])
	c.alarms = slices.Delete(c.alarms, 0, n)
	return due
}

// Alarm makes Advance call ring when the clock has advanced by d, in every mode.
func (c *Manual) Alarm(d time.Duration, ring func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{at: lastTime + 1, ring: ring} // never
	if int64(d) <= lastTime-c.now {
		a.at = c.now + int64(d)
	}
	i, _ := slices.BinarySearchFunc(c.alarms, a.at+1, func(b *alarm, at int64) int { return cmp.Compare(b.at, at) })
	c.alarms = slices.Insert(c.alarms, i, a)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.alarms = slices.DeleteFunc(c.alarms, func(b *alarm) bool { return b == a })
	}
}

// Sleep sleeps as the mode requires.
func (c *Manual) Sleep(ctx context.Context, d time.Duration) error {
	if returned, ok := ctx.Value(sleepsAgain{}).(*func()); ok {
		again, err := c.sleepCall(ctx, d, nil, *returned)
		*returned = again
		return err
	}
	s := c.park(ctx, d, nil)
	if s == nil {
		return ctx.Err()
	}
	return c.await(ctx, s)
}

func (c *Manual) sleepCall(ctx context.Context, d time.Duration, n *Nap, before func()) (returned func(), err error) {
	done := make(chan struct{})
	returned = sync.OnceFunc(func() { close(done) })
	awake := false
	defer func() {
		if !awake { // the context panicked
			returned()
		}
	}()
	var s *sleeper
	if n != nil {
		s = n.park(ctx, c, d, done)
	} else {
		s = c.park(ctx, d, done)
	}
	before()
	if s != nil {
		err = c.await(ctx, s)
	} else {
		err = ctx.Err()
	}
	awake = true
	return returned, err
}

// park records the sleep and, in mode SleepPark, queues the caller. It returns nil if the caller
// need not wait.
func (c *Manual) park(ctx context.Context, d time.Duration, returned chan struct{}) *sleeper {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = append(c.slept, d)
	if c.mode == SleepAdvance {
		c.now = later(c.now, d)
	}
	if c.mode != SleepPark || d <= 0 || c.now == lastTime {
		return nil
	}
	s := &sleeper{clock: c, ctx: ctx, wake: later(c.now, d), woken: make(chan struct{}), returned: returned}
	c.lineLocked(s)
	return s
}

// lineLocked inserts a sleeper by wake time. The caller holds mu.
func (c *Manual) lineLocked(s *sleeper) {
	i, _ := slices.BinarySearchFunc(c.parked, s.wake+1, func(p *sleeper, wake int64) int { return cmp.Compare(p.wake, wake) })
	c.parked = slices.Insert(c.parked, i, s)
	c.changed.Broadcast()
}

// wakeAt makes the sleeper wake at that time. If that has passed, a running Advance wakes it next;
// if none is running, it wakes immediately.
func (s *sleeper) wakeAt(to int64) {
	c := s.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.parked, s)
	if i < 0 {
		return // it is awake
	}
	c.parked = slices.Delete(c.parked, i, i+1)
	if s.wake = max(to, c.now); s.wake > c.now || c.moving {
		c.lineLocked(s)
		return
	}
	s.moved = true
	close(s.woken)
	c.changed.Broadcast()
}

func (c *Manual) await(ctx context.Context, s *sleeper) error {
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
	if s.gaveUp || s.moved && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil // even if the context has ended since: the wake-up came first
}

// Slept returns every wait that was requested, in order.
func (c *Manual) Slept() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.slept)
}

// Parked returns the number of callers parked at the moment.
func (c *Manual) Parked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.parked)
}

// AwaitParked returns when at least n callers are parked, so that a test knows that its goroutines
// have reached their waits.
func (c *Manual) AwaitParked(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.parked) < n {
		c.changed.Wait()
	}
}

func (c *Manual) until(deadline time.Time) time.Duration {
	return deadline.Sub(time.Unix(0, c.Now()))
}
