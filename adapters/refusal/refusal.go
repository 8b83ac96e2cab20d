// Package refusal reports calls that did not run: as the status, headers and body of an HTTP
// response, or as the code and fields of a gRPC status. All adapters use it, and so can handlers
// whose nested calls are refused:
//
//	e, err := api.Entry(r.Context(), "billing")
//	if err != nil {
//		refusal.Write(w, r, err) // 429 with Retry-After, or what fits
//		return
//	}
//	defer e.Exit()
//
// A refusal written this way does not count as a failure of the handler's own resource.
//
//	which rule, or why             HTTP                  gRPC
//	flow, hotspot, isolation       429                   ResourceExhausted
//	breaker, system, adaptive,
//	upstream, outlier,
//	custom slot                    503                   Unavailable
//	authority                      403                   PermissionDenied
//	a rule or a slot that chose
//	a status                       that status           its gRPC equivalent
//	gave up waiting: deadline      503                   DeadlineExceeded
//	gave up waiting: client gone   499, which only       Canceled
//	                               logs show
//	gave up waiting: server
//	closes                         503, try again        Unavailable
//	no such call can be made       500                   Internal
//
// It needs the standard library only. Everything here is safe for concurrent use.
//
// The page docs/rules/refusals.md describes what clients see.
package refusal

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
)

// Refusal describes why a call did not run. The zero value means that no call was refused.
type Refusal struct {
	Reason Reason
	// Block is the rule that refused the call or made it wait, or nil if there was none.
	Block *api.BlockError
}

// Of returns why a call did not run. err is the error of [api.Entry], or of work that failed
// because of such an error. For other errors it returns the zero value.
func Of(err error) Refusal {
	block, blocked := errors.AsType[*api.BlockError](err)
	switch {
	case errors.Is(err, api.ErrInvalid):
		return Refusal{Reason: Invalid}
	case !blocked:
		return Refusal{}
	case errors.Is(err, api.ErrDraining):
		return Refusal{Closing, block}
	case errors.Is(err, context.DeadlineExceeded):
		return Refusal{GaveUp, block}
	case errors.Is(err, context.Canceled):
		return Refusal{goneOrClosing(err), block}
	}
	return Refusal{Blocked, block}
}

// goneOrClosing returns the reason why a waiting call's context ended. If a client disconnects,
// net/http and its like give no cause. A server that closes may give one, as [signal.NotifyContext]
// does for its signals; a cause from anyone else isn't the client either.
func goneOrClosing(err error) Reason {
	type ended interface {
		error
		ContextCause() error
	}
	if e, ok := errors.AsType[ended](err); ok && e.ContextCause() != context.Canceled { //nolint:errorlint // causes may wrap it
		return Closing
	}
	return Gone
}

// Kind returns the rule's family, or api.KindNone if there was none.
func (r Refusal) Kind() api.Kind {
	if r.Block == nil {
		return api.KindNone
	}
	return r.Block.Kind
}

// StatusClientGone is the status of a request whose client disconnected: no client reads it, but
// logs distinguish it from others. nginx uses the same number.
const StatusClientGone = 499

// HTTPStatus returns the HTTP status of the refusal: 0 for the zero value.
func (r Refusal) HTTPStatus() int {
	switch r.Reason {
	case None:
		return 0
	case GaveUp, Closing:
		return http.StatusServiceUnavailable
	case Gone:
		return StatusClientGone
	case Invalid:
		return http.StatusInternalServerError
	}
	return r.class().status
}

// class describes how a family's refusals are reported.
type class struct {
	status int
	code   Code
	atOnce bool // a concurrency limit, not a rate
	final  bool // retrying can't help
}

// classes lists the families that are not reported as overloaded.
var classes = map[api.Kind]class{
	api.KindFlow:      {status: http.StatusTooManyRequests, code: ResourceExhausted},
	api.KindHotspot:   {status: http.StatusTooManyRequests, code: ResourceExhausted},
	api.KindIsolation: {status: http.StatusTooManyRequests, code: ResourceExhausted, atOnce: true},
	api.KindAdaptive:  {status: http.StatusServiceUnavailable, code: Unavailable, atOnce: true},
	api.KindAuthority: {status: http.StatusForbidden, code: PermissionDenied, final: true},
}

var overloaded = class{status: http.StatusServiceUnavailable, code: Unavailable}

func (r Refusal) class() class {
	c, ok := classes[r.Kind()]
	if !ok {
		c = overloaded
	}
	if r.Kind() == api.KindUpstream && r.Block.Is(api.ErrRetryBudget) {
		return class{status: overloaded.status, code: overloaded.code, final: true}
	}
	if r.Block != nil && r.Block.Status >= spec.MinStatus && r.Block.Status <= spec.MaxStatus {
		atOnce := c.atOnce
		c = chosen(r.Block.Status)
		c.atOnce = atOnce
	}
	return c
}

// chosen returns the class for a status that a rule or a custom slot has chosen.
func chosen(status int) class {
	c := class{status: status, code: codes[status]}
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
	default:
		c.final = status < http.StatusInternalServerError
	}
	switch {
	case c.code != OK:
	case c.final:
		c.code = failedPrecondition
	default:
		c.code = Unavailable
	}
	return c
}

const failedPrecondition Code = 9

// codes maps HTTP statuses to the gRPC codes that mean the same.
var codes = map[int]Code{
	http.StatusBadRequest: 3, http.StatusUnauthorized: 16, http.StatusForbidden: PermissionDenied, http.StatusNotFound: 5,
	http.StatusConflict: 10, http.StatusTooManyRequests: ResourceExhausted, StatusClientGone: Canceled,
	http.StatusInternalServerError: Internal, http.StatusNotImplemented: 12, http.StatusGatewayTimeout: DeadlineExceeded,
}

// RetryAfter returns how long until the rule would admit one unit, in whole units of time, rounded
// up and at least 1; see [api.BlockError]. If the server closes it is one second, when another
// server should have taken over. known is false for refusals that time alone does not help.
func (r Refusal) RetryAfter(unit time.Duration) (units int64, known bool) {
	if r.Reason == Closing {
		return max(1, int64((time.Second+unit-1)/unit)), true
	}
	if r.Reason != Blocked || r.class().final {
		return 0, false
	}
	return r.Block.RetryAfterIn(unit)
}
