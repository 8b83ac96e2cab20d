package core

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/shared"
)

// ErrDraining is why a call is refused that would have to wait, or waits, for a rule of an engine that
// drains, see [Engine.Drain]. The error of such a call wraps it.
var ErrDraining = errors.New("no call waits any longer, as the server is closing")

// drain ends the waits of an engine's calls.
//
// Invariant, under mu: a call that sleeps until its turn is in the list, and one that sleeps until it is
// granted a permit has its waking in permits. Drain sets on under mu, and wakes all that are there. A call
// comes under mu, too, and doesn't sleep if it finds on. After each sleep it looks at on, and sleeps again
// only if it isn't set: the nap of a call in the list stays moved up until the call has read on.
type drain struct {
	on shared.Bool

	mu      shared.Mutex
	first   *Invocation
	permits map[*clocks.Waking]struct{}
}

// begin has all calls that wait look at on.
func (d *drain) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on.Store(true)
	for inv := d.first; inv != nil; inv = inv.behind {
		inv.nap.Wake()
	}
	for w := range d.permits {
		w.Now()
	}
}

// join puts a call into the list, unless the engine drains.
func (d *drain) join(inv *Invocation) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on.Load() {
		return false
	}
	if inv.behind = d.first; inv.behind != nil {
		inv.behind.ahead = inv
	}
	d.first = inv
	return true
}

func (d *drain) leave(inv *Invocation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if inv.ahead != nil {
		inv.ahead.behind = inv.behind
	} else {
		d.first = inv.behind
	}
	if inv.behind != nil {
		inv.behind.ahead = inv.ahead
	}
	inv.ahead, inv.behind = nil, nil
}

// joinForPermit is join for a call that waits for a permit.
func (d *drain) joinForPermit(w *clocks.Waking) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on.Load() {
		return false
	}
	if d.permits == nil {
		d.permits = make(map[*clocks.Waking]struct{})
	}
	d.permits[w] = struct{}{}
	return true
}

func (d *drain) leaveForPermit(w *clocks.Waking) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.permits, w)
}

// Drain has no call wait for a rule any longer, now and afterwards: calls in a throttle or a queue, and
// those that wait for a borrowed bucket, are refused at once, with an error that wraps [ErrDraining], as
// are those that come and would have to. Calls that can run at once still do, and may ask the store of
// shared limits first. It is final.
//
// It returns nil once no call waits or runs, or the context's error if that ends first; a nil context never
// ends. A call runs between Entry and Exit, long-lived ones too, as slots.Statistic counts it: so to
// wait for the end from within a guarded call is in vain. Drain looks at intervals of up to 100 ms of
// real time, whatever the engine's clock. It may be called several times, and is safe for concurrent use.
func (e *Engine) Drain(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	e.drain.begin()
	pause := time.Millisecond
	for e.busy() {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause = min(2*pause, 100*time.Millisecond)
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// busy reports whether any call waits or runs.
func (e *Engine) busy() bool {
	if e.waiting.Load() > 0 {
		return true
	}
	for r := range e.resources.all() {
		if r.InFlight() > 0 {
			return true
		}
	}
	return false
}
