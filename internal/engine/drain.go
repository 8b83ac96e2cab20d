package engine

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/shared"
)

// drain ends the waits of an engine's calls.
//
// Invariant, under mu: each call that sleeps until its turn is in the list that begins with first,
// and each that sleeps until it gets a permit has the context of its sleep in permits. Drain sets
// on, and wakes all of them. A call registers before it sleeps, and doesn't sleep if on is already
// set. After each sleep it reads on, and sleeps again only if on isn't set; its nap stays ended
// until it has read on.
type drain struct {
	on shared.Bool

	mu      shared.Mutex
	first   *Invocation
	permits map[*clocks.Waking]struct{}
}

// begin sets on, and wakes all calls that wait.
func (d *drain) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on.Store(true)
	for inv := d.first; inv != nil; inv = inv.behind {
		inv.nap.Wake()
	}
	for w := range d.permits {
		w.Wake()
	}
}

// join adds a call to the list, or returns false if the engine drains.
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

// joinForPermit is like join, but for a call that waits for a permit.
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

// Drain permanently ends all waits for rules; see api.Guard.Drain.
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
