package engine

import (
	"context"
	"fmt"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/stat"
)

// Enter asks for a resource. If the error is nil, the call may run, and the entry must be exited.
// Otherwise the entry is zero and the error is a *[core.BlockError], or wraps [core.ErrInvalid], or
// wraps the context's error if the context ended while the call waited.
//
// The context matters only if a rule makes the call wait. A nil context never ends. If the context
// has ended, or its deadline comes before the call's turn, the call is rejected immediately. In a
// queue for a permit the turn isn't known, and the call waits until the deadline.
//
// A panic of a slot is recovered; see [Engine.Failures]. A panic of the clock or the context
// propagates to the caller, and the call holds nothing.
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
	if len(name) > pattern.MaxName {
		return nil, errLongResource
	}
	if ctx == nil {
		ctx = context.Background()
	}
	inv := e.pool.Get().(*Invocation)
	inv.ctx, inv.context, inv.units = ctx, ContextOf(ctx), 1
	if c := inv.context; c != nil && c.err != nil {
		inv.recycle()
		return nil, c.err
	}
	if len(opts) > 0 {
		inv.apply(opts)
	}
	if len(inv.costs) > 0 {
		if err := inv.checkCosts(); err != nil {
			inv.recycle()
			return nil, err
		}
	}
	if inv.units > stat.MaxUnits {
		err := fmt.Errorf("%w: %d units: a call takes at most %d", core.ErrInvalid, inv.units, stat.MaxUnits)
		inv.recycle()
		return nil, err
	}
	inv.began = e.Now()
	inv.now = inv.began
	return inv, nil
}

// enter decides on the call, which asks for r by that name.
func (inv *Invocation) enter(r *Resource, name string) (Entry, error) {
	e := inv.engine
	inv.resource = r
	if inv.bound = r.bound.Load(); inv.bound == nil || inv.bound.set != e.rules.Load() || r == e.resources.overflow {
		inv.bound = e.lookUp(r, name, inv.now, true)
		if r == e.resources.overflow {
			inv.beyond = name
		}
	}

	var v Verdict
	at := inv.walk(preparing, &v)
	for at == mayWait && v.Wait == untilFetched && inv.wantsSome() {
		if _, by, cause := inv.fetch(inv.ctx); by != nil {
			return Entry{}, inv.refuse(by, cause)
		}
		v = Verdict{}
		at = inv.walk(asking, &v)
	}
	if at == mayWait {
		if at = taking; !inv.able(&v) {
			at = returning
		}
		at = inv.walk(at, &v)
	}
	switch at {
	case refused:
		inv.recycle()
		return Entry{}, v.Block
	case waits:
		return inv.queue(v, notYet)
	}
	return inv.entry(), nil
}

// able reports whether a call whose rules were asked could wait as long as required; if not, it
// turns the verdict into a rejection. If the context panics, or ends the goroutine, the call is
// rejected.
func (inv *Invocation) able(v *Verdict) (ok bool) {
	by, over := inv.named(v.By), false
	defer func() {
		if !over {
			_ = inv.refuse(by, nil)
		}
	}()
	if ok = inv.inTime(v.Wait); ok {
		*v = Verdict{}
	} else {
		*v = Verdict{Block: by}
	}
	over = true
	return ok
}

// named returns by or, if that is nil, a rejection without a rule.
func (inv *Invocation) named(by *core.BlockError) *core.BlockError {
	if by == nil {
		by = NewCounted(core.BlockError{Resource: inv.resource.Name()}, nil, nil, nil)
	}
	return by
}

// find returns the resource of that name. A pooled invocation often serves its last resource again,
// and comparing is cheaper than looking up.
func (inv *Invocation) find(name string) *Resource {
	if r := inv.last; r != nil && r.Name() == name && !r.Retired() {
		return r
	}
	inv.last = inv.engine.resource(name, inv.now)
	return inv.last
}

// entry returns the Entry of the call.
func (inv *Invocation) entry() Entry {
	if w := inv.engine.leaks; w != nil {
		w.opened(inv)
	}
	return Entry{inv: inv, generation: inv.word.Load() >> flagBits}
}

// refuse gives everything back and records the rejection. cause is the error of a context that
// ended during the wait, or [core.ErrDraining], or nil.
func (inv *Invocation) refuse(b *core.BlockError, cause error) error {
	inv.walk(returning, &Verdict{Block: b})
	ctx := inv.ctx
	inv.recycle()
	if cause != nil {
		return abandon(b, cause, ctx)
	}
	return b
}

// exit ends the call. The caller has moved the word to the next generation, so no other goroutine
// uses the invocation. walk reads the clock only after all reservations are given back, because the
// clock may panic.
func (inv *Invocation) exit() {
	if w := inv.engine.leaks; w != nil {
		w.closed(inv)
	}
	if inv.unsettled() {
		inv.releaseUnseen()
	}
	inv.release()
	inv.walk(completing, nil)
	if inv.unsettled() {
		inv.settle()
	}
	inv.recycle()
}

// recycle returns the invocation to the pool, emptied as a whole so that no field is forgotten and
// nothing is kept alive.
func (inv *Invocation) recycle() {
	for i := len(inv.completions) - 1; i >= 0; i-- {
		inv.completions[i] = Completion{} // a pooled invocation must not keep completers alive
	}
	inv.completions, inv.index = inv.completions[:0], nil
	if len(inv.turns) > 0 {
		inv.dropTurns()
	}
	if len(inv.homes) > 0 {
		clear(inv.homes)
		inv.homes = inv.homes[:0]
	}
	inv.call = call{}
	if len(inv.costs) > 0 {
		for i := range inv.costs {
			inv.costs[i].unit = "" // it may be part of a whole request
		}
		inv.costs = inv.costs[:0]
	}
	if len(inv.params) > 0 || inv.valued {
		inv.forgetValues()
	}
	inv.engine.pool.Put(inv)
}
