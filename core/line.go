package core

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// standing is the place of a call in a line, and what the rule said that put it
// there.
type standing struct {
	place *stat.Waiter
	until int64 // when its rule refuses it
	by    *BlockError
}

// placeHolder is a place in a line, or the units that were granted there.
type placeHolder struct{ *stat.Waiter }

func (h placeHolder) GiveBack(*Reservation) { h.Leave() }

// ReservePlace notes a place in the line of a gauge. The call does not wait for it, see
// [Invocation.Await]; it leaves the line, or gives back what it was granted there, when
// it exits.
func (inv *Invocation) ReservePlace(w *stat.Waiter) {
	inv.Reserve(Reservation{Holder: placeHolder{w}, Units: inv.units, UntilExit: true})
}

// Await notes a place in line that the call must wait for: until units are granted
// there, for at most maxWait. If that time or the context ends before, by refuses it.
//
// It waits for the event once it has waited for what other rules said. Whatever else
// it was granted it holds meanwhile. So a call may stand in one line only: two calls,
// each next where the other one holds the units, would wait for each other. A rule
// asks [Invocation.Awaits] before it has a call stand in line.
func (inv *Invocation) Await(w *stat.Waiter, maxWait time.Duration, by *BlockError) {
	inv.ReservePlace(w)
	inv.standing = &standing{place: w, until: inv.now + int64(maxWait), by: by}
}

// Awaits reports whether the call stands in line.
func (inv *Invocation) Awaits() bool { return inv.standing != nil }

// stand waits until the call is granted what it stands in line for, and reports
// whether it was; if not, cause is why, nil where its time is over or the place is
// lost. before is called as soon as the call sleeps.
func (inv *Invocation) stand(before func()) (returned func(), ok bool, cause error) {
	w := inv.standing.place
	rest := time.Duration(inv.standing.until - inv.now)
	deadline, bounded := inv.untilDeadline()
	if bounded = bounded && deadline < rest; bounded {
		rest = deadline
	}
	returned = before
	var err error
	if rest > 0 {
		ctx, wake := wakeable(inv.ctx)
		defer wake.done()
		w.Attend(wake.now)
		if wake.ctx.Err() == nil {
			returned, err = inv.sleep(ctx, rest, before)
		}
		if wake.ctx.Err() != nil {
			err = nil // it was woken, or its context has ended
		}
	}
	switch ended := inv.ctx.Err(); {
	case ended != nil:
		return returned, false, ended
	case w.Granted():
		inv.seat(w)
		return returned, true, nil
	case err == nil && bounded:
		return returned, false, context.DeadlineExceeded
	}
	return returned, false, err
}

// seat makes the place that was granted units of the gauge like any other.
func (inv *Invocation) seat(w *stat.Waiter) {
	for i := range inv.held {
		if h, ok := inv.held[i].Holder.(placeHolder); ok && h.Waiter == w {
			inv.held[i].Holder, inv.held[i].gauge = nil, w.Gauge()
		}
	}
	inv.standing = nil
}

// waking ends a sleep before its time.
type waking struct {
	ctx    context.Context // ends when the sleep should
	now    func()
	unhook func() bool
}

// wakeable returns a context that ends when parent does, or earlier when it is told
// to. That touches nothing of the parent: who grants a call its units must not run
// into what the call's context does. Where the parent is of a kind that package
// context doesn't know, a goroutine of that package waits for its end, until done.
func wakeable(parent context.Context) (context.Context, waking) {
	ctx, cancel := context.WithCancel(context.Background())
	w := waking{ctx: ctx, now: cancel, unhook: context.AfterFunc(parent, cancel)}
	return wakeableContext{parent, ctx}, w
}

func (w waking) done() {
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
