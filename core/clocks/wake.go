package clocks

import (
	"context"
	"sync/atomic"
)

// Waking is the context of a sleep: it ends with its parent, or when another call wakes this one.
type Waking struct {
	context.Context // the parent
	done            chan struct{}
	over            atomic.Bool
	unhook          func() bool // nil if the parent never ends
}

// Wakeable returns a child context of parent. Waking the call doesn't touch the parent: a call that
// passes its units to another call must not run code of the other call's context. If package
// context doesn't know the parent's type, a goroutine of that package waits for the parent's end,
// until [Waking.Release].
func Wakeable(parent context.Context) *Waking {
	w := &Waking{Context: parent, done: make(chan struct{})}
	if parent.Done() != nil {
		w.unhook = context.AfterFunc(parent, w.Wake)
	}
	return w
}

// Wake ends the sleep.
func (w *Waking) Wake() {
	if w.over.CompareAndSwap(false, true) {
		close(w.done)
	}
}

// wakeAt wakes the call immediately. The call computes its remaining sleep.
func (w *Waking) wakeAt(int64) { w.Wake() }

// Woken reports whether the call was woken, or its context has ended.
func (w *Waking) Woken() bool { return w.over.Load() }

// Release forgets the parent. The sleep must have ended.
func (w *Waking) Release() {
	w.Wake()
	if w.unhook != nil {
		w.unhook()
	}
}

// Done is closed when the sleep is to end.
func (w *Waking) Done() <-chan struct{} { return w.done }

// Err returns the error of the parent or, if the call was woken before that ended,
// [context.Canceled].
func (w *Waking) Err() error {
	err := w.Context.Err()
	if err == nil && w.Woken() {
		err = context.Canceled
	}
	return err
}
