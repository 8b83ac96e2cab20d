package engine

import (
	"time"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/shared"
)

// repeated is a periodic task. Its timer is set when the last run has returned, so two runs never
// overlap.
type repeated struct {
	engine *Engine
	period time.Duration
	f      func(now int64)

	running shared.Mutex // held during a run
	mu      shared.Mutex // guards the fields below it
	ended   bool
	timer   func() // stops it
}

// Every calls f each time a period has passed on the engine's clock, until stop is called or the
// engine is closed; after Close no run starts. A clocks.Manual calls f as it advances. A panic of f
// counts as an internal failure; see [Engine.Failures]. stop doesn't wait for a run that is under
// way; [Engine.Close] does, so f must not call Close.
func (e *Engine) Every(period time.Duration, f func(now int64)) (stop func()) {
	r := &repeated{engine: e, period: period, f: f}
	e.repeating.Lock()
	defer e.repeating.Unlock()
	if e.closed {
		return func() {}
	}
	if e.repeats == nil {
		e.repeats = make(map[*repeated]struct{})
	}
	e.repeats[r] = struct{}{}
	r.arm()
	return func() {
		r.end()
		// Close must see a run that is under way, so that it can wait for it. Such a run gets to
		// next afterwards, and finds that r has ended.
		if r.running.TryLock() {
			r.running.Unlock()
			r.forget()
		}
	}
}

// next sets the timer for the next run, unless there is none.
func (r *repeated) next() {
	if !r.arm() {
		r.forget()
	}
}

func (r *repeated) arm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.timer = clocks.Alarm(r.engine.clock, r.period, r.ring)
	}
	return !r.ended
}

func (r *repeated) forget() {
	r.engine.repeating.Lock()
	defer r.engine.repeating.Unlock()
	delete(r.engine.repeats, r)
}

func (r *repeated) ring() {
	defer r.next()
	r.running.Lock()
	defer r.running.Unlock()
	r.mu.Lock()
	ended := r.ended
	r.mu.Unlock()
	if ended { // while the timer fired
		return
	}
	var now int64
	defer func() {
		if reason := recover(); reason != nil {
			r.engine.failed(reason, now, nil)
		}
	}()
	now = r.engine.Now()
	r.f(now)
}

func (r *repeated) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.timer != nil {
		r.timer()
	}
}

// endRepeats permanently ends all periodic tasks, and waits for runs under way.
func (e *Engine) endRepeats() {
	e.repeating.Lock()
	e.closed = true
	repeats := e.repeats
	e.repeats = nil
	e.repeating.Unlock()
	for r := range repeats {
		r.end()
		r.await()
	}
}

// await waits for a run that is under way.
func (r *repeated) await() {
	r.running.Lock()
	defer r.running.Unlock()
}
