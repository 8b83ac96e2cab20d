// Package clustersim plays whole clusters on a virtual clock: members with clocks of their own, a store
// behind a network that delays, loses and repeats, and calls. One seed, one course of events. What members admit
// is held against the limit in the store's time.
package clustersim

import (
	"container/heap"
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// World is a course of events: nothing happens but what an event does, one after the other.
type World struct {
	Random *rand.Rand

	now    int64 // nanoseconds since 1970, in truth
	events events
	count  int64
	clocks []*Clock
}

// NewWorld begins at some time, with a seed.
func NewWorld(seed uint64) *World {
	return &World{Random: rand.New(rand.NewPCG(seed, 0)), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano()}
}

// Now is the true time.
func (w *World) Now() int64 { return w.now }

// At has f called at a time, or at once if that has passed.
func (w *World) At(t int64, f func()) (cancel func()) {
	w.count++
	e := &event{at: max(t, w.now), order: w.count, do: f}
	heap.Push(&w.events, e)
	return func() { e.do = nil }
}

// After is At, from now on.
func (w *World) After(d time.Duration, f func()) (cancel func()) { return w.At(w.now+int64(d), f) }

// Run plays all events up to a time.
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

// End ends the world: calls that sleep still end as well.
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

// Clock is what one machine of the world has for a clock: it has its own rate, and stands for the time of a
// process, which can be stopped for a while. It is a clocks.Clock.
type Clock struct {
	Late time.Duration // that alarms are at most

	world   *World
	ahead   int64 // of the truth, at since
	since   int64
	rate    float64 // 1 is right
	resumes int64   // the process is stopped until then
	sleeper *call   // that runs, and may sleep
	asleep  []*call
}

// NewClock returns one that is ahead of the truth and runs at a rate.
func (w *World) NewClock(ahead time.Duration, rate float64) *Clock {
	c := &Clock{world: w, ahead: int64(ahead), since: w.now, rate: rate}
	w.clocks = append(w.clocks, c)
	return c
}

// Now is what the clock shows.
func (c *Clock) Now() int64 {
	return c.since + c.ahead + int64(float64(c.world.now-c.since)*c.rate)
}

// Step sets the clock.
func (c *Clock) Step(d time.Duration) { c.ahead += int64(d) }

// Stop stops the process for a while. What was to happen there happens then.
func (c *Clock) Stop(d time.Duration) { c.resumes = max(c.resumes, c.world.now+int64(d)) }

// Stopped reports whether the process is stopped.
func (c *Clock) Stopped() bool { return c.world.now < c.resumes }

// in has f called in a time of this clock, or when the process goes on.
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

// Alarm has ring called when d has passed, or somewhat later.
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

// call is one that sleeps now and then.
type call struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ctx   context.Context
	woken bool
	ended bool // the world has
}

func (c *Clock) resume(x *call) {
	before := c.sleeper
	c.sleeper = x
	x.next()
	c.sleeper = before
}

// Sleep is for calls that run by Call.
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

// wake has those calls go on whose sleep is over.
func (c *Clock) wake() {
	for i := 0; i < len(c.asleep); i++ {
		if x := c.asleep[i]; x.woken || x.ctx.Err() != nil {
			c.asleep = append(c.asleep[:i], c.asleep[i+1:]...)
			c.resume(x)
			i = -1 // it may have woken others
		}
	}
}
