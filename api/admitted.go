package api

import (
	"context"

	"github.com/penstock-go/penstock/internal/engine"
)

// Admitted is a call that [Entry] has let through. It is a small value that must be exited once, by
// Exit, or by ExitOn, which also says how the call ended: from any goroutine, and in any order with
// other calls. Further exits do nothing. The zero value is no call: its methods do nothing. It is safe
// for concurrent use.
type Admitted struct{ entry engine.Entry }

// Exit ends the call: it counts completion and response time, and returns what the call held.
func (a Admitted) Exit() { a.entry.Exit() }

// Fail says how the call ended. A nil err does nothing. For any other, the first of these rules that
// applies decides:
//
//   - An error marked by [Ignore] is an answer, and does nothing.
//   - The refusal of a nested call makes the call neutral.
//   - The function of [Guard.FailWhen], or else [Config].Failure, decides between a failure and an
//     answer.
//   - If the call's own context was cancelled, the call is neutral, whatever err is.
//   - Any other error is a failure, except that context.Canceled while the call's own context lives
//     is an answer.
//
// A failed call is counted as an exception when it exits, and breakers count it. A neutral call says
// nothing about the resource: breakers and outlier rules leave it out, and a probe that ends so
// gives its place to another call. If Fail is called more than once, a failure counts most, and an
// answer least.
func (a Admitted) Fail(err error) { a.entry.Fail(err) }

// SetLongLived marks the call as one without a response time, where that turns out only while it
// runs: see [LongLived].
func (a Admitted) SetLongLived() { a.entry.SetLongLived() }

// ExitOn ends the call, as [Admitted.Fail] says of *err, or as failed if the function that deferred it
// panics:
//
//	func orders(ctx context.Context) (err error) {
//		e, err := api.Entry(ctx, "GET /orders")
//		if err != nil {
//			return err
//		}
//		defer e.ExitOn(&err)
//
// The panic continues. A nil pointer is like a pointer to nil. Defer it directly: called within a function
// that is deferred, it doesn't see the panic.
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
// context and from the same origin. It is made on demand and may outlive the call. A call that has
// exited gives [context.Background].
func (a Admitted) Context() context.Context { return a.entry.Context() }

// ContextIn is Context made in child, which an adapter may have inside an object of its own: that
// saves an allocation. For a call that has exited it makes nothing.
func (a Admitted) ContextIn(child *Nested) context.Context { return a.entry.ContextIn(&child.Nested) }
