package clocks

import "context"

// Waking ends a sleep before its time.
type Waking struct {
	ctx    context.Context // ends when the sleep should
	now    func()
	unhook func() bool
}

// Wakeable returns a context that ends when parent does, or earlier if told to. Ending it early
// doesn't touch the parent: a call that grants another its units must not run code of that call's
// context. Where package context doesn't know the parent's type, a goroutine of that package waits
// for the parent's end, until Done.
func Wakeable(parent context.Context) (context.Context, Waking) {
	ctx, cancel := context.WithCancel(context.Background())
	w := Waking{ctx: ctx, now: cancel, unhook: context.AfterFunc(parent, cancel)}
	return wakeableContext{parent, ctx}, w
}

// moveUp wakes the call immediately. The call works out for how long to sleep on.
func (w Waking) moveUp(int64) { w.now() }

// Now ends the sleep.
func (w Waking) Now() { w.now() }

// Woken reports whether the sleep is to end, or its context has.
func (w Waking) Woken() bool { return w.ctx.Err() != nil }

// Done releases the parent. The sleep must be over.
func (w Waking) Done() {
	w.now()
	w.unhook()
}

type wakeableContext struct {
	context.Context
	own context.Context
}

func (c wakeableContext) Done() <-chan struct{} { return c.own.Done() }

func (c wakeableContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	return c.own.Err()
}
