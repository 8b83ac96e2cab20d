// Package clustersim simulates whole clusters on a virtual clock: members with their own clocks, a
// store behind a network that delays, loses and repeats messages, and calls. The same seed gives
// the same run. The units that members admit are checked against the limit in the store's time.
package clustersim

import (
	"container/heap"
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// World is a simulation: its events run one after the other, and nothing else happens.
type World struct {
	Random *rand.Rand

	now    int64 // true time, nanoseconds since 1970
	events events
	count  int64
	clocks []*Clock
}

// NewWorld returns a world that starts at some time, with a seed.
func NewWorld(seed uint64) *World {
	return &World{Random: rand.New(rand.NewPCG(seed, 0)), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano()}
}

// Now is the true time.
func (w *World) Now() int64 { return w.now }

// At calls f at a time, or at once if that has passed.
func (w *World) At(t int64, f func()) (cancel func()) {
	w.count++
	e := &event{at: max(t, w.now), order: w.count, do: f}
	heap.Push(&w.events, e)
	return func() { e.do = nil }
}

// After is like At, but relative to now.
func (w *World) After(d time.Duration, f func()) (cancel func()) { return w.At(w.now+int64(d), f) }

// Run plays all events for a duration.
func (w *World) Run(d time.Duration) {
	end := w.now + int64(d)
	for len(w.events) > 0 && w.events[0].at <= end {
		e := heap.Pop(&w.events).(*event)
		w.now = e.at
		if e.do != nil {
			e.do()
		}
	}
	w.now = end
}

// End ends the world, including sleeping calls.
func (w *World) End() {
	w.events = nil
	for _, c := range w.clocks {
		for len(c.asleep) > 0 {
			x := c.asleep[0]
			c.asleep = c.asleep[1:]
			x.stop()
		}
	}
}

type event struct {
	at, order int64
	do        func()
}

type events []*event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(*event)) }

func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return x
}

// Clock is a machine's clock: it runs at its own rate, and belongs to a process that can be stopped
// for a while. It is a clocks.Clock.
type Clock struct {
	Late time.Duration // maximum delay of alarms

	world   *World
	ahead   int64 // of the true time, at since
	since   int64
	rate    float64 // 1 is right
	resumes int64   // the process is stopped until then
	sleeper *call   // the running call, which may sleep
	asleep  []*call
}

// NewClock returns a clock that is ahead of the true time by ahead and runs at the given rate.
func (w *World) NewClock(ahead time.Duration, rate float64) *Clock {
	c := &Clock{world: w, ahead: int64(ahead), since: w.now, rate: rate}
	w.clocks = append(w.clocks, c)
	return c
}

// Now returns the clock's time.
func (c *Clock) Now() int64 {
	return c.since + c.ahead + int64(float64(c.world.now-c.since)*c.rate)
}

// Step sets the clock.
func (c *Clock) Step(d time.Duration) { c.ahead += int64(d) }

// Stop stops the process for a while, and postpones its events until it continues.
func (c *Clock) Stop(d time.Duration) { c.resumes = max(c.resumes, c.world.now+int64(d)) }

// Stopped reports whether the process is stopped.
func (c *Clock) Stopped() bool { return c.world.now < c.resumes }

// in calls f after a time on this clock, or when the process continues if it is stopped then.
func (c *Clock) in(d time.Duration, f func()) (cancel func()) {
	over := false
	var run func()
	run = func() {
		switch {
		case over:
		case c.Stopped():
			c.world.At(c.resumes, run)
		default:
			f()
			c.wake()
		}
	}
	c.world.At(c.world.now+int64(float64(d)/c.rate)+1, run)
	return func() { over = true }
}

// Alarm calls ring when d has passed, or somewhat later.
func (c *Clock) Alarm(d time.Duration, ring func()) (stop func()) {
	if c.Late > 0 {
		d += time.Duration(c.world.Random.Int64N(int64(c.Late)))
	}
	return c.in(d, ring)
}

// Call runs f as a call that may sleep on this clock.
func (c *Clock) Call(f func()) {
	x := &call{}
	x.next, x.stop = iter.Pull(func(yield func(struct{}) bool) {
		x.yield = yield
		f()
	})
	c.resume(x)
}

// call is a call that may sleep.
type call struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ctx   context.Context
	woken bool
	ended bool // the world has ended
}

func (c *Clock) resume(x *call) {
	before := c.sleeper
	c.sleeper = x
	x.next()
	c.sleeper = before
}

// Sleep is for calls started with Call.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	x := c.sleeper
	x.ctx, x.woken = ctx, false
	if x.ended || ctx.Err() != nil || d <= 0 {
		return ctx.Err()
	}
	cancel := c.in(d, func() { x.woken = true })
	c.asleep = append(c.asleep, x)
	x.ended = !x.yield(struct{}{})
	cancel()
	return ctx.Err()
}

// wake resumes the calls whose sleep has ended.
func (c *Clock) wake() {
	for i := 0; i < len(c.asleep); i++ {
		if x := c.asleep[i]; x.woken || x.ctx.Err() != nil {
			c.asleep = append(c.asleep[:i], c.asleep[i+1:]...)
			c.resume(x)
			i = -1 // it may have woken others
		}
	}
}
