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

// Exchange is one request that runs, see [Guard]. But for [Exchange.Close], its methods are
// for the goroutine that serves the request.
type Exchange struct {
	scope    scope
	guard    *Guard
	entry    api.Admitted
	original *http.Request
	request  *http.Request
	writer   http.ResponseWriter
	err      error
	status   int32 // no int, so that the object stays in its size class
	ended    bool  // the handler has returned
	gone     bool  // the client had left by then
	streams  bool  // the response has begun, and is one without an end
	goesOn   bool  // when Close comes, see Later
}

// scope is the context of a request that runs. Calls of the handler are counted below its own, and
// refusals that it answers with are reported here. It is one object with the exchange.
type scope struct {
	api.Nested
	refused atomic.Bool
}

// Value returns what the context has, and itself as the listener of [refusal.Tell].
func (s *scope) Value(key any) any {
	if key == refusal.ListenerKey() {
		return s
	}
	return s.Nested.Value(key)
}

// Refused notes that the handler answers with a refusal, which is not a failure of the handler, nor
// of an enclosing handler, if there is one.
func (s *scope) Refused(err error) {
	s.refused.Store(true)
	refusal.Tell(s.Context, err) // of the one around
}

// Writer is the response as the handler is to see it. It can do what the server's own writer
// can, and notes the status.
func (x *Exchange) Writer() http.ResponseWriter { return x.writer }

// Request is the request as the handler is to see it.
func (x *Exchange) Request() *http.Request { return x.request }

// LongLived says that the response time does not count, see api.LongLived.
func (x *Exchange) LongLived() {
	x.streams = true
	x.entry.SetLongLived()
}

// Release ends the call before its handler returns: the handler has taken over the
// connection. Where [HoldHijacked] says so, the call continues, as a stream: its response time does
// not count, and it ends well when its client leaves.
func (x *Exchange) Release() {
	if x.guard.holdHijacked {
		x.LongLived()
		return
	}
	x.entry.Exit()
}

// End says that the handler has returned, with which status (0 if it wrote none) and which
// error, where handlers return one.
func (x *Exchange) End(status int, err error) {
	x.status, x.err, x.ended, x.gone = int32(status), err, true, x.left()
	if x.request.Pattern != x.original.Pattern {
		x.guard.rerouted(x)
	}
}

// left reports whether the client has left.
func (x *Exchange) left() bool { return errors.Is(x.original.Context().Err(), context.Canceled) }

// Later lets the call continue when its handler has returned, for frameworks that send responses
// then, or give connections away: it ends when the returned function is called, from any goroutine
// and any number of times, and not with Close. It is for after [Exchange.End].
func (x *Exchange) Later() (end func()) {
	x.goesOn = true
	return func() { x.close(nil) }
}

// Close ends the call. It must be deferred directly, so that it sees a panic of the handler, which
// continues.
func (x *Exchange) Close() {
	if x.ended {
		if !x.goesOn {
			x.close(nil)
		}
		return
	}
	if x.original.Context().Err() == nil { // whatever it is, it is a failure; and its stack stays as it is
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
	if p != nil { // or the goroutine ends
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

// failed returns the error for [api.Admitted.Fail] when a handler has returned, or gave up because its
// client left; nil if it did not fail. A response is no answer if the client has left, since a
// handler may return with any status then; but a stream that has begun ends so.
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

// failure is the error of a response that is one.
func (x *Exchange) failure() error {
	if x.err != nil && !errors.Is(x.err, context.Canceled) {
		return x.err
	}
	return StatusError(x.status)
}

// StatusError is what breakers see of a response: it has this status.
type StatusError int

// Error names the status.
func (e StatusError) Error() string {
	return fmt.Sprintf("the response has status %d %s", int(e), http.StatusText(int(e)))
}

var errPanicked = api.Certain(errors.New("the handler panicked"))
