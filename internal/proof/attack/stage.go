package main

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
)

// stage is a clock with the callers that sleep on it. One thing happens at a time: a caller that
// asks, is woken or is canceled runs until it has returned or sleeps again, together with callers
// that it woke. So a repeated round runs the same way, even though every caller is a goroutine.
type stage struct {
	exiting sync.Mutex // held while a call exits; before mu

	mu      sync.Mutex
	changed *sync.Cond
	now     int64
	active  int           // callers that neither sleep nor have returned
	naps    []*nap        // by wake time, ties in order of going to sleep
	slept   time.Duration // of the latest sleeper
}

// nap is one sleep of a caller.
type nap struct {
	ctx   context.Context
	wake  int64
	woken chan struct{}
}

// caller is one call on the stage. Its fields are for its creator, between two events.
type caller struct {
	entry    api.Admitted
	err      error
	returned bool
	came     int64         // when it asked
	sleeps   time.Duration // how long it went to sleep for, or 0 if it didn't
	at       int64         // when it returned
	cancel   context.CancelFunc
}

func newStage() *stage {
	s := &stage{now: start.UnixNano()}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// Now makes the stage a [clocks.Clock].
func (s *stage) Now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Alarm never rings: without this method the machine's timers would ring while the stage stands.
func (*stage) Alarm(time.Duration, func()) (stop func()) { return func() {} }

// Sleep lasts until the stage has moved by d, or the context has ended.
func (s *stage) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	s.mu.Lock()
	n := &nap{ctx, s.now + int64(d), make(chan struct{})}
	i, _ := slices.BinarySearchFunc(s.naps, n.wake+1, func(m *nap, wake int64) int { return cmp.Compare(m.wake, wake) })
	s.naps = slices.Insert(s.naps, i, n)
	s.active--
	s.slept = d
	s.changed.Broadcast()
	s.mu.Unlock()
	select {
	case <-n.woken:
		return nil
	case <-ctx.Done():
	}
	s.exiting.Lock() // one thing at a time: woken callers continue when the exit has returned
	defer s.exiting.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.naps, n); i >= 0 { // otherwise it was woken in between
		s.naps = slices.Delete(s.naps, i, i+1)
		s.active++
		s.changed.Broadcast()
		return ctx.Err()
	}
	return nil
}

// enter starts a caller that asks.
func (s *stage) enter(parent context.Context, ask func(context.Context) (api.Admitted, error)) *caller {
	c := &caller{came: s.Now()}
	ctx, cancel := context.WithCancel(parent)
	c.cancel = cancel
	s.mu.Lock()
	s.active++
	s.mu.Unlock()
	go func() {
		entry, err := ask(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		c.entry, c.err, c.returned, c.at = entry, err, true, s.now
		s.active--
		s.changed.Broadcast()
	}()
	s.settle()
	if c.waits() {
		c.sleeps = s.slept
	}
	return c
}

// exit ends a running call. It releases the call's units before breakers count its end, so callers
// that it wakes must not run until it returns: their verdicts would depend on timing.
func (s *stage) exit(e api.Admitted) {
	s.exiting.Lock()
	defer s.exiting.Unlock()
	e.Exit()
}

// settle returns when every caller has returned or sleeps. It must follow every step that may wake
// a caller.
func (s *stage) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.active > 0 || slices.ContainsFunc(s.naps, func(n *nap) bool { return n.ctx.Err() != nil }) {
		s.changed.Wait()
	}
}

// leave cancels a call and waits for the effects.
func (s *stage) leave(c *caller) {
	c.cancel()
	s.settle()
}

// next returns when the next sleeper wakes up, by t at the latest.
func (s *stage) next(t int64) (at int64, n *nap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = t
	if len(s.naps) > 0 && s.naps[0].wake <= at {
		at, n = s.naps[0].wake, s.naps[0]
	}
	return at, n
}

// advance moves the clock to t. Sleepers wake up one after the other, each at its time; after each
// one, when nobody runs, advance calls then to check the state.
func (s *stage) advance(t int64, then func() error) error {
	for {
		at, n := s.next(t)
		s.mu.Lock()
		s.now = max(s.now, at)
		if n != nil {
			s.naps = slices.DeleteFunc(s.naps, func(m *nap) bool { return m == n })
			s.active++
			close(n.woken)
		}
		s.mu.Unlock()
		s.settle()
		if err := then(); err != nil || n == nil {
			return err
		}
	}
}

// waits reports whether the call has not returned.
func (c *caller) waits() bool { return !c.returned }
