package api

import (
	"context"

	"github.com/penstock-go/penstock/internal/engine"
)

// Admitted is a call that [Entry] has admitted. It is a small value that must be exited once, by
// Exit, or by ExitOn, which also reports how the call ended: from any goroutine, and in any order
// with other calls. Further exits do nothing. The zero value is no call: its methods do nothing.
// Safe for concurrent use.
type Admitted struct{ entry engine.Entry }

// Exit ends the call: it counts the completion and the response time, and releases the permits and
// units that the call held.
func (a Admitted) Exit() { a.entry.Exit() }

// Fail reports how the call ended. A nil err does nothing. For any other error, the first of these
// rules that applies decides:
//
//   - An error marked by [Ignore] is a success, and does nothing.
//   - The refusal of a nested call makes the call neutral.
//   - The function of [Guard.FailWhen], or else [Config].Failure, decides between failure and success.
//   - If the call's own context was cancelled, the call is neutral, regardless of err.
//   - Any other error is a failure, except that context.Canceled is a success while the call's own
//     context lives.
//
// A failed call is counted as an exception when it exits, and breakers count it. A neutral call
// means nothing for the health of the resource: breakers and outlier rules ignore it, and a neutral
// probe frees its slot for another call. If Fail is called more than once, a failure takes
// precedence over a neutral end, and a neutral end over a success.
func (a Admitted) Fail(err error) { a.entry.Fail(err) }

// Settle reports, once, the total that the call has used of a unit: see [Cost]. Unused units of the
// reservation go back to the limits, if they still count there. Units beyond the reservation are
// charged now, even if nothing is left; then no call is admitted until there is room again. Without
// Settle the reservation stands; a call that failed and cost nothing settles 0.
//
// A negative number counts as 0, and more than 2^53 as 2^53. Further settlements do nothing, nor do
// those after the call has exited or for a unit that it didn't reserve; the first of these is
// logged. While the call runs, 0 is not: a deferred Settle of 0 gives back what was not settled.
func (a Admitted) Settle(unit string, used int64) { a.entry.Settle(unit, used) }

// More asks for n more units while the call runs: nil means that it may go on. It counts in every
// rule with that unit or in none. A throttle makes it wait for its turn until ctx ends, however long
// that takes: a stream is slowed down, not cut off. Any other rule that has no room refuses with a
// *[BlockError], and nothing is taken: stop, wait for its RetryAfter and ask again, or go on and have
// Settle charge it.
//
// Asking for more means that what was granted before is used: Settle then gives back at most the
// latest grant and what [Cost] reserved. Below 1 counts as 1. The error is [ErrInvalid] for an invalid
// unit, the 256th unit of a call, or more than 2^40; [ErrExited] if the call has exited or settled the
// unit; or that of a context that ended, as for [Entry].
func (a Admitted) More(ctx context.Context, unit string, n int64) error {
	return a.entry.More(ctx, unit, n)
}

// Remaining returns the units that the tightest of the call's rules with a unit ("" for calls) would
// still admit, as of the decision on the call. Of a limit that a cluster shares, only units leased by
// this process count. The number is known for flow and hotspot rules with metric qps, except those
// that make calls wait, until the call exits.
func (a Admitted) Remaining(unit string) (r Remaining, known bool) { return a.entry.Remaining(unit) }

// SetLongLived marks a running call as one without a response time, if that only turns out while it
// runs: see [LongLived].
func (a Admitted) SetLongLived() { a.entry.SetLongLived() }

// ExitOn ends the call, as [Admitted.Fail] does with *err, or as failed if the function that
// deferred it panics:
//
//	func orders(ctx context.Context) (err error) {
//		e, err := api.Entry(ctx, "GET /orders")
//		if err != nil {
//			return err
//		}
//		defer e.ExitOn(&err)
//
// The panic continues. A nil pointer is like a pointer to nil. Defer it directly: called within a
// deferred function, it doesn't see the panic.
func (a Admitted) ExitOn(err *error) {
	if r := recover(); r != nil { // recover works in the deferred function only
		a.entry.ExitFailed()
		panic(r)
	}
	if err != nil {
		a.entry.Fail(*err)
	}
	a.entry.Exit()
}

// Context returns a context for calls nested in this one: they are counted below it, in the same
// context and from the same origin. It is created on demand and may outlive the call; calls made
// from it after the resource's node was evicted are counted at the top of the tree. A call that has
// exited returns [context.Background].
func (a Admitted) Context() context.Context { return a.entry.Context() }

// ContextIn is like Context, but creates the context in child, which an adapter may embed in its own
// object to save an allocation. For a call that has exited it does nothing.
func (a Admitted) ContextIn(child *Nested) context.Context { return a.entry.ContextIn(&child.Nested) }
