package clocks

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Coarse reads the machine's clock at every call, but only once per millisecond under dense traffic
// (a thousand readings in a millisecond, or half a million calls per second). It then saves two
// clock readings per call and is at most about a millisecond late, or later if the machine delays
// its goroutine. It never runs backwards. Every quarter of a second it checks whether traffic is
// still dense, and between bursts nothing runs.
//
// Limits stay exact in its time: a window admits as many calls as with any clock, and a window that
// starts late ends late. Bucket edges and response times are as coarse as the clock: a call within
// one tick has a response time of 0. Use it for short and very frequent calls; docs/rationale.md
// has its benefit in numbers.
type Coarse struct {
	system *System
	cached atomic.Int64 // the time while the ticker runs, otherwise off or starting
	read   atomic.Bool  // whether cached was read since the last tick

	readings atomic.Int64 // direct readings since window began
	window   atomic.Int64

	mu     sync.Mutex
	closed bool
	stop   chan struct{}
	done   sync.WaitGroup
}

const ( // before every time
	off      = math.MinInt64
	starting = off + 1
)

const (
	coarseTick  = time.Millisecond
	coarseDense = 1024 // direct readings in a tick that start the ticker; fewer may cost less than a tick
	coarseQuiet = 10   // ticks without a reading that stop it
	coarseTerm  = 256  // ticks after which it stops in any case; it restarts if still worthwhile
)

// NewCoarse returns a coarse clock. Close it when it is no longer used.
func NewCoarse() *Coarse {
	c := &Coarse{system: NewSystem(), stop: make(chan struct{})}
	c.cached.Store(off)
	c.window.Store(c.system.unix)
	return c
}

// Now returns the time, up to about a millisecond late under load.
func (c *Coarse) Now() int64 {
	for {
		if now := c.cached.Load(); now > starting {
			if !c.read.Load() { // written once per tick, not once per call
				c.read.Store(true)
			}
			return now
		}
		now := c.system.Now()
		// The ticker reads its first time after it began to start. So a direct reading that
		// finished before that is older, and an unfinished direct reading is discarded for the
		// cached time.
		if c.cached.Load() == off {
			c.count(now)
			return now
		}
		runtime.Gosched() // until it has started
	}
}

// count starts the ticker when direct readings become dense.
func (c *Coarse) count(now int64) {
	began := c.window.Load()
	if now-began >= int64(coarseTick) {
		if c.window.CompareAndSwap(began, now) {
			c.readings.Store(0)
		}
	} else if c.readings.Add(1) == coarseDense {
		c.start()
	}
}

// Sleep waits on a timer.
func (c *Coarse) Sleep(ctx context.Context, d time.Duration) error {
	return c.system.Sleep(ctx, d)
}

// Close ends the ticker if it runs. Afterwards the clock reads the machine's clock at every call.
func (c *Coarse) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.stop)
	}
	c.mu.Unlock()
	c.done.Wait()
	return nil
}

func (c *Coarse) until(deadline time.Time) time.Duration { return time.Until(deadline) }

func (c *Coarse) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.cached.Load() != off {
		return
	}
	c.cached.Store(starting)
	c.cached.Store(c.system.Now())
	c.done.Go(c.tick)
}

// tick is the only writer of cached while it runs. Later direct readings are later than the last
// cached time, so time never goes back.
func (c *Coarse) tick() {
	ticker := time.NewTicker(coarseTick)
	defer ticker.Stop()
	defer c.cached.Store(off)
	for ticks, quiet := 0, 0; ticks < coarseTerm && quiet < coarseQuiet; ticks++ {
		select {
		case <-c.stop:
			return
		case <-ticker.C:
		}
		c.cached.Store(c.system.Now())
		if c.read.Swap(false) {
			quiet = 0
		} else {
			quiet++
		}
	}
}
