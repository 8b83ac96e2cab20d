package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/stat"
)

// ErrPanicked is what a call is marked failed with whose guarded code panicked.
var ErrPanicked = errors.New("penstock: the guarded code panicked")

var errNoResource = fmt.Errorf("%w: the resource has no name", ErrInvalid)

// Enter asks for a resource. A nil error means go, and the entry must be exited;
// otherwise the entry is zero and the error a *[BlockError], or one that wraps
// [ErrInvalid], or one that wraps the context's error if that ended while the call
// waited.
//
// The context is only looked at when a rule says wait: a nil one never ends, and
// one that has ended refuses such a call at once, as does a deadline that comes
// before the call's turn, if that is known. In line for a permit it is not, and the
// call waits until its deadline.
//
// A panic of a slot is recovered, see [Engine.Failures]. One of the clock or the
// context goes on to the caller, and the call holds nothing.
func (e *Engine) Enter(ctx context.Context, name string, opts []Option) (Entry, error) {
	inv, err := e.begin(ctx, name, opts)
	if err != nil {
		return Entry{}, err
	}
	return inv.enter(inv.find(name), name)
}

// begin takes an invocation for a call, and reads the clock.
func (e *Engine) begin(ctx context.Context, name string, opts []Option) (*Invocation, error) {
	if name == "" {
		return nil, errNoResource
	}
	if ctx == nil {
		ctx = context.Background()
	}
	inv := e.pool.Get().(*Invocation)
	inv.ctx, inv.context, inv.units = ctx, ContextOf(ctx), 1
	if len(opts) > 0 {
		inv.apply(opts)
	}
	if inv.units > stat.MaxUnits {
		err := fmt.Errorf("%w: %d units, a call takes at most %d", ErrInvalid, inv.units, stat.MaxUnits)
		inv.recycle()
		return nil, err
	}
	inv.began = e.Now()
	inv.now = inv.began
	return inv, nil
}

// enter decides about the call, which asks for r by that name.
func (inv *Invocation) enter(r *Resource, name string) (Entry, error) {
	e := inv.engine
	inv.resource = r
	if inv.bound = r.bound.Load(); inv.bound == nil || inv.bound.set != e.rules.Load() || r == e.resources.overflow {
		inv.bound = e.lookUp(r, name)
	}

	if inv.atOnce() {
		block := inv.decideAtOnce()
		inv.look()
		if block != nil {
			inv.recycle()
			return Entry{}, block
		}
		return inv.entry(), nil
	}
	verdict := inv.decide()
	switch {
	case verdict.Block != nil:
		inv.beWary()
		return Entry{}, inv.refuse(verdict.Block, nil)
	case verdict.Wait > 0 || inv.Awaits():
		return inv.queue(verdict)
	}
	inv.look()
	return inv.entry(), nil
}

// find returns the resource of that name. A pooled invocation often serves the
// resource it served last, which is cheaper to compare than to look up.
func (inv *Invocation) find(name string) *Resource {
	if r := inv.last; r != nil && r.Name() == name && !r.Retired() {
		return r
	}
	inv.last = inv.engine.Resource(name, inv.now)
	return inv.last
}

// pass records the admission of a call that has waited, and hands out the entry.
func (inv *Invocation) pass() Entry {
	inv.record(phasePassed, nil)
	return inv.entry()
}

// abandon ends an admitted call that nobody will ever see the entry of, when the rest of
// its admission is recorded, from recorder number i on.
func (inv *Invocation) abandon(i int) {
	inv.recordRest(phasePassed, i, nil)
	inv.exit()
}

// entry hands out the call.
func (inv *Invocation) entry() Entry {
	if w := inv.engine.leaks; w != nil {
		w.opened(inv)
	}
	return Entry{inv: inv, generation: inv.word.Load() >> flagBits}
}

// refuse gives everything back and records the refusal. cause is the error of a
// context that ended during the wait, or nil.
func (inv *Invocation) refuse(b *BlockError, cause error) error {
	inv.giveBack()
	inv.record(phaseBlocked, b)
	inv.recycle()
	if cause != nil {
		return &abandoned{b, cause}
	}
	return b
}

// exit ends the call. The caller has moved the word to the next generation, so
// the invocation is nobody else's. The clock is read when what was held is back, by
// record: it may panic.
func (inv *Invocation) exit() {
	if w := inv.engine.leaks; w != nil {
		w.closed(inv)
	}
	inv.ended = inv.sort()
	if inv.unsettled() {
		inv.releaseUnseen()
	}
	inv.release()
	inv.record(phaseCompleted, nil)
	if inv.unsettled() {
		inv.settle()
	}
	inv.recycle()
}

// recycle returns the invocation to the pool, emptied as a whole so that no field
// is forgotten and nothing is kept alive.
func (inv *Invocation) recycle() {
	for i := len(inv.marks) - 1; i >= 0; i-- {
		inv.marks[i] = Mark{} // a pooled invocation must not keep their owners alive
	}
	inv.marks = inv.marks[:0]
	inv.call = call{}
	inv.forgetValues()
	inv.engine.pool.Put(inv)
}
