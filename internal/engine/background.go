package engine

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// MaxBackground is the number of functions that an engine runs at a time in the background.
const MaxBackground = 16

const (
	backgroundTime = 10 * time.Second // of one function, until its context ends
	closePatience  = time.Second      // of Close, with functions that ignore their context
)

// background runs functions that no call waits for.
//
// Invariant, under mu: running is the number of functions that have started and not returned, and
// none starts once closed is set. So when done is closed, none is left.
type background struct {
	running shared.Int64 // changed under mu; read without it by calls that find all places taken

	mu     shared.Mutex // guards the fields below it
	ctx    context.Context
	cancel context.CancelFunc
	closed bool
	done   chan struct{} // closed when the last function returns after closed was set
}

// Background runs f on a goroutine of its own, unless MaxBackground functions run or the engine is
// closed; then it returns false. The context of f ends after ten seconds of the machine's clock, or with
// [Engine.Close]. Panics of f, which is custom code, count in [Engine.Failures].
func (e *Engine) Background(f func(ctx context.Context)) (starts bool) {
	b := &e.behind
	ctx, starts := b.begin()
	if !starts {
		return false
	}
	go func() {
		defer b.end() // even if f ends the goroutine
		ctx, cancel := context.WithTimeout(ctx, backgroundTime)
		defer cancel()
		e.Shield(func() { f(ctx) })
	}()
	return true
}

func (b *background) begin() (ctx context.Context, ok bool) {
	if b.running.Load() >= MaxBackground { // so that calls don't contend for the lock
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.running.Load() >= MaxBackground {
		return nil, false
	}
	if b.ctx == nil {
		b.ctx, b.cancel = context.WithCancel(context.Background())
	}
	b.running.Add(1)
	return b.ctx, true
}

func (b *background) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running.Add(-1) == 0 && b.done != nil {
		close(b.done)
	}
}

// close cancels the functions that run, and waits for them, but not long for functions that ignore
// their context. None starts afterwards.
func (b *background) close() {
	if !b.shut() {
		return
	}
	select {
	case <-b.done:
	case <-time.After(closePatience): // not the engine's clock, which may stand still
	}
}

// shut is close without the wait. It reports whether this is the first call.
func (b *background) shut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.closed, b.done = true, make(chan struct{})
	if b.cancel != nil {
		b.cancel()
	}
	if b.running.Load() == 0 {
		close(b.done)
	}
	return true
}
