package nethttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Exchange is a request that was admitted; see [Guard]. Except for [Exchange.Close], only the
// goroutine that serves the request may call its methods.
type Exchange struct {
	scope    scope
	guard    *Guard
	entry    api.Admitted
	original *http.Request
	request  *http.Request
	writer   http.ResponseWriter
	err      error
	status   int32 // not an int, to keep the object in its size class
	ended    bool  // the handler has returned
	gone     bool  // the client had left by then
	streams  bool  // the response has begun, and has no end
	goesOn   bool  // when Close is called; see Later
}

// scope is the context of an admitted request. Calls of the handler are counted below its own, and
// refusals that it responds with are reported here. Scope and exchange are one object.
type scope struct {
	api.Nested
	refused atomic.Bool
}

// Value returns the context's value, and itself as the listener of [refusal.Tell].
func (s *scope) Value(key any) any {
	if key == refusal.ListenerKey() {
		return s
	}
	return s.Nested.Value(key)
}

// Refused records that the handler responds with a refusal, which counts as a failure neither of
// the handler nor of an enclosing handler.
func (s *scope) Refused(err error) {
	s.refused.Store(true)
	refusal.Tell(s.Context, err) // for an enclosing handler
}

// Writer returns the response for the handler. It has the interfaces of the server's own writer and
// records the status.
func (x *Exchange) Writer() http.ResponseWriter { return x.writer }

// Request returns the request for the handler.
func (x *Exchange) Request() *http.Request { return x.request }

// LongLived excludes the response time from statistics; see api.LongLived.
func (x *Exchange) LongLived() {
	x.streams = true
	x.entry.SetLongLived()
}

// Release ends the call before its handler returns, since the handler has taken over the
// connection. With [HoldHijacked] the call continues as a stream: its response time does not count,
// and a client that disconnects is not a failure.
func (x *Exchange) Release() {
	if x.guard.holdHijacked {
		x.LongLived()
		return
	}
	x.streams = true
	x.entry.Exit()
}

// End records that the handler has returned, with its status (0 if it wrote none) and its error, if
// handlers return one.
func (x *Exchange) End(status int, err error) {
	x.status, x.err, x.ended, x.gone = int32(status), err, true, x.left()
	x.refund(status, err != nil)
	if x.request.Pattern != x.original.Pattern {
		x.guard.rerouted(x)
	}
}

// refund gives back the units of a request that failed before its response began.
func (x *Exchange) refund(status int, failed bool) {
	if !x.streams && (status >= http.StatusBadRequest || status == 0 && failed) {
		x.guard.refund(x.entry, x.original)
	}
}

// left reports whether the client has disconnected.
func (x *Exchange) left() bool { return errors.Is(x.original.Context().Err(), context.Canceled) }

// Later makes the call outlive its handler, for frameworks that send responses or hand over
// connections afterwards: the call ends with the returned function instead of Close. That may run
// on any goroutine and any number of times. Call Later after [Exchange.End].
func (x *Exchange) Later() (end func()) {
	x.goesOn = true
	return func() { x.close(nil) }
}

// Close ends the call. Defer it directly, so that it sees a panic of the handler, which continues.
func (x *Exchange) Close() {
	if x.ended {
		if !x.goesOn {
			x.close(nil)
		}
		return
	}
	x.refund(int(x.status), true)
	if x.original.Context().Err() == nil { // a failure whatever it is; not recovered, so its stack stays
		x.close(errPanicked)
		return
	}
	p := recover()
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		x.gone = x.left()
		x.close(nil)
	} else {
		x.close(errPanicked)
	}
	if p != nil { // or runtime.Goexit ran
		panic(p)
	}
}

func (x *Exchange) close(failure error) {
	if failure == nil {
		failure = x.failed()
	}
	x.entry.Fail(failure)
	x.entry.Exit()
}

// failed returns the error for [api.Admitted.Fail] when a handler has returned or has given up
// because its client disconnected, or nil if it did not fail. After the client has disconnected,
// the response proves nothing, since a handler may return with any status then; for a stream that
// has begun, it is the normal end.
func (x *Exchange) failed() error {
	switch {
	case x.scope.refused.Load(), refusal.Of(x.err).Reason != refusal.None:
		return api.ErrBlocked
	case x.guard.failure != nil && x.ended:
		if !x.guard.failure(x.original, int(x.status), x.err) {
			return nil
		}
		return api.Certain(x.failure())
	case x.gone && !x.streams:
		if x.ended && x.status >= http.StatusInternalServerError {
			return x.failure()
		}
		return context.Canceled
	case !x.ended, x.status < http.StatusInternalServerError:
		return nil
	}
	return x.failure()
}

// failure returns the error for a failed response.
func (x *Exchange) failure() error {
	if x.err != nil && !errors.Is(x.err, context.Canceled) {
		return x.err
	}
	return StatusError(x.status)
}

// StatusError is the error that breakers see for a response with this status.
type StatusError int

// Error names the status.
func (e StatusError) Error() string {
	return fmt.Sprintf("the response has status %d %s", int(e), http.StatusText(int(e)))
}

var errPanicked = api.Certain(errors.New("the handler panicked"))
