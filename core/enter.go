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
		if block := inv.decideAtOnce(); block != nil {
			return Entry{}, inv.refuse(block, nil)
		}
		inv.look()
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

// decide prepares the call, asks every rule, lets every rule take, and records the
// admission if the call needn't wait. A slot that panics is passed over: what it would
// have said is lost, the others still decide. A call that would have to wait and can't
// takes nothing.
func (inv *Invocation) decide() (v Verdict) {
	able := false
	takes := len(inv.engine.chain.preparers) + len(inv.bound.judges)
	for step := 0; step >= 0; {
		if step = inv.decideFrom(step, &v, able); step == takes && !able {
			if able = inv.able(&v); !able {
				return v
			}
		}
	}
	return v
}

// able reports whether a call that was asked could wait for as long as the rules would
// have it, and if not, makes the verdict a refusal. Where the context panics, or ends
// the goroutine, the call is refused.
func (inv *Invocation) able(v *Verdict) (ok bool) {
	if v.Wait == 0 {
		return true
	}
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

// named makes sure that a call which can't wait is refused in some name.
func (inv *Invocation) named(by *BlockError) *BlockError {
	if by == nil {
		by = NewBlockError(KindNone, inv.resource.Name(), "", nil)
	}
	return by
}

// decideFrom runs the steps from number i on: every preparer, then every checker's
// Ask, then every checker's Take, then what records the admission. It returns the number
// to go on with after a panic, or before the takes if the call would have to wait and is
// not known to be able to; or -1.
func (inv *Invocation) decideFrom(i int, v *Verdict, able bool) (next int) {
	preparers, judges := inv.engine.chain.preparers, inv.bound.judges
	prepared := len(preparers)
	asked := prepared + len(judges)
	taken := asked + len(judges)
	defer func() {
		if next != 0 {
			return
		}
		if r := recover(); r != nil {
			inv.engine.failed(r, inv.now)
			next = i + 1
			return
		}
		// The slot ended the goroutine, and the call with it.
		if i < taken {
			inv.giveBack()
		} else {
			inv.abandon(i - taken + 1)
		}
		next = -1
	}()
	for ; i < prepared; i++ {
		preparers[i].Prepare(inv)
	}
	for ; i < asked; i++ {
		if v.add(judges[i-prepared].Ask(inv)); v.Block != nil {
			return -1
		}
	}
	if v.Wait > 0 && !able {
		return asked
	}
	for ; i < taken; i++ {
		if v.add(judges[i-asked].Take(inv)); v.Block != nil {
			return -1
		}
		inv.waits = v.Wait > 0 || inv.Awaits()
	}
	if v.Wait > 0 || inv.Awaits() {
		return -1
	}
	for passed := inv.engine.chain.passed; i-taken < len(passed); i++ {
		passed[i-taken].Passed(inv)
	}
	return -1
}

// add keeps the first refusal, and of the waits the longest.
func (v *Verdict) add(next Verdict) {
	if next.Block != nil || next.Wait > v.Wait {
		*v = next
	}
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
	if inv.gauged() {
		inv.releaseUnseen()
	}
	inv.release()
	inv.record(phaseCompleted, nil)
	if inv.gauged() {
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

type phase uint8

const (
	phasePassed phase = iota
	phaseBlocked
	phaseCompleted
)

// record runs the recorders of a phase. One that panics is passed over; the
// others still run.
func (inv *Invocation) record(p phase, b *BlockError) { inv.recordRest(p, 0, b) }

// recordRest is record from step number i on.
func (inv *Invocation) recordRest(p phase, i int, b *BlockError) {
	for i >= 0 {
		i = inv.recordFrom(p, i, b)
	}
	inv.look()
}

// look brings back the nodes that left while the call was counted on them.
func (inv *Invocation) look() {
	if inv.anyLeft() {
		inv.engine.restore(inv)
	}
}

// recordFrom runs the recorders from number i on; before those of the exit the
// clock is read, which may panic as well. It returns the number to go on with
// after a panic, or -1.
func (inv *Invocation) recordFrom(p phase, i int, b *BlockError) (next int) {
	defer func() {
		if next != 0 {
			return
		}
		if r := recover(); r != nil {
			inv.engine.failed(r, inv.now)
			next = i + 1
			return
		}
		// The recorder ended the goroutine.
		if p == phasePassed {
			inv.abandon(i + 1)
		} else {
			inv.recordRest(p, i+1, b)
			if p == phaseCompleted {
				inv.settle()
			}
		}
		next = -1
	}()
	chain := inv.engine.chain
	switch p {
	case phasePassed:
		for ; i < len(chain.passed); i++ {
			chain.passed[i].Passed(inv)
		}
	case phaseBlocked:
		for ; i < len(chain.blocked); i++ {
			chain.blocked[i].Blocked(inv, b)
		}
	case phaseCompleted:
		if i == 0 {
			// A clock that panics leaves the time at which the call was let in.
			inv.now = max(inv.now, inv.engine.Now())
			i++
		}
		completed := inv.bound.completed[inv.ended]
		for ; i <= len(completed); i++ {
			completed[i-1].Completed(inv)
		}
	}
	return -1
}
