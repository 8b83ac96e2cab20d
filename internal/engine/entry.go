package engine

import (
	"context"

	"github.com/penstock-go/penstock/internal/shared"
)

// Entry is an admitted call. It is a small value that must be exited once, from any goroutine and
// in any order; further exits do nothing, even if the state behind it already serves another call.
// The methods of the zero value do nothing. It is safe for concurrent use.
//
// # Why a stale handle does no harm
//
// The state carries a word: a generation and a few flags. An entry remembers its generation. Exit
// moves the word to the next generation by compare-and-swap, which only one caller can win; Fail
// sets a flag by compare-and-swap of the whole word, so it fails when the generation has changed.
// While Context and Fail read fields, they set the busy flag, and Exit waits for it to clear, so an
// entry never reads fields of another call.
type Entry struct {
	inv        *Invocation
	generation uint64
}

const (
	flagFailed = 1 << iota
	flagBusy
	flagLongLived
	flagNeutral
	flagBits = iota
)

// Exit ends the call: it counts completion and response time, and gives back held units.
func (e Entry) Exit() {
	if e.inv == nil {
		return
	}
	word := &e.inv.word
	for {
		w := word.Load()
		switch {
		case w>>flagBits != e.generation:
			return
		case w&flagBusy != 0:
			shared.Gosched() // Context or Fail is reading fields
		case word.CompareAndSwap(w, (e.generation+1)<<flagBits):
			e.inv.failed = w&flagFailed != 0
			if w&(flagLongLived|flagNeutral) != 0 {
				e.inv.longLived = e.inv.longLived || w&flagLongLived != 0
				e.inv.neutral = w&(flagNeutral|flagFailed) == flagNeutral
			}
			e.inv.exit()
			return
		}
	}
}

// Fail reports the error with which the call ended; see api.Admitted.
func (e Entry) Fail(err error) {
	if e.inv == nil || err == nil {
		return
	}
	if flag := e.inv.engine.judge(e, err); flag != 0 {
		e.set(flag)
	}
}

// SetLongLived marks the call as one without a response time, if that becomes known only while it
// runs: see [LongLived].
func (e Entry) SetLongLived() {
	if e.inv != nil {
		e.set(flagLongLived)
	}
}

// ExitFailed ends the call as failed, regardless of Config.Failure.
func (e Entry) ExitFailed() {
	if e.inv != nil {
		e.set(flagFailed)
	}
	e.Exit()
}

// Context returns a context for calls nested in this one: they are counted below it, in the same
// context and from the same origin. It is made on demand and may outlive the entry. An entry that
// has exited returns [context.Background].
func (e Entry) Context() context.Context { return e.ContextIn(new(Nested)) }

// Nested is the memory of a context of [Entry.Context]. The zero value is ready to become one,
// once; it must not be copied.
type Nested struct {
	context.Context
	from Context
	in   placed
}

// ContextIn is like Context, but makes it in child, which the caller may embed in its own object.
// For an entry that has exited, or the zero Entry, it makes nothing.
func (e Entry) ContextIn(child *Nested) context.Context {
	if e.inv == nil || !e.set(flagBusy) {
		child.Context = context.Background()
		return child.Context
	}
	inv := e.inv
	child.Context = inv.ctx
	child.from.parent, child.from.tree, child.from.entry = inv.node, inv.engine.tree, e
	if inv.left != nil {
		child.from.began = inv.outermost()
	}
	if inv.context != nil {
		child.from.marks = inv.context.marks
	}
	child.from.within = inv.below(e)
	if inv.entrance != nil {
		child.in = placed{inv.engine.tree, inv.entrance}
		child.from.entrance.Store(&child.in)
	}
	inv.word.And(^uint64(flagBusy))
	return child
}

// origins returns the name that the call asked for and the context that it came with, or "" and nil
// if it has exited.
func (e Entry) origins() (name string, ctx context.Context) {
	if !e.set(flagBusy) {
		return "", nil
	}
	name, ctx = e.inv.Name(), e.inv.ctx
	e.inv.word.And(^uint64(flagBusy))
	return name, ctx
}

// Value returns the [Context] of the nested calls, or the parent context's value.
func (n *Nested) Value(key any) any {
	if key == (contextKey{}) && n.from.tree != nil {
		return &n.from
	}
	return n.Context.Value(key)
}

// set sets a flag while the entry lives; of two goroutines that set busy, the second waits.
func (e Entry) set(flag uint64) bool {
	for {
		w := e.inv.word.Load()
		switch {
		case w>>flagBits != e.generation:
			return false
		case w&flag&flagBusy != 0:
			shared.Gosched()
		case e.inv.word.CompareAndSwap(w, w|flag):
			return true
		}
	}
}
