// Package penstockconnect guards servers and clients of connectrpc.com/connect. Its name differs
// from its folder's, since programs that use it import connect as well. One line guards a handler,
// with each procedure as a resource:
//
//	mux.Handle(pingv1connect.NewPingServiceHandler(ping, connect.WithInterceptors(penstockconnect.Interceptor())))
//
// and the same guards a client:
//
//	client := pingv1connect.NewPingServiceClient(http.DefaultClient, url, connect.WithInterceptors(penstockconnect.Interceptor()))
//
// A call that no rule refuses runs as an inbound call of the resource "/package.Service/Method",
// the procedure. Calls that its handler makes with its context are counted below it. A client's
// calls are outbound. A call that a rule makes wait waits within its own context. This applies to
// all protocols: connect, gRPC and gRPC-Web. Health checks and reflection are not guarded, since a
// refused probe gets the process restarted. [Resource] changes names and exemptions.
//
// # Refusals
//
// Package refusal defines how a refused call is reported: ResourceExhausted, Unavailable or
// PermissionDenied, with google.rpc.ErrorInfo and, where the time is known, google.rpc.RetryInfo,
// and Retry-After and grpc-retry-pushback-ms as metadata. For a unary call of the connect protocol,
// plain HTTP clients see 429, 503 or 403. A handler that returns the refusal of a nested call,
// wrapped or not, reports the same, unless it has turned it into a *connect.Error. A client whose
// call is refused locally gets a *connect.Error of that kind, in which errors.As finds the
// *api.BlockError.
//
// # Failures
//
// Breakers count the codes Unknown, DeadlineExceeded, Internal, Unavailable and DataLoss as
// failures of the resource, for a client also ResourceExhausted, and a panic, which continues. See
// [FailureCodes] and [Failure]. An unmodified response is not a failure. Breakers leave out a call
// that its caller has canceled by then, unless it is a stream that has carried a message;
// http.ErrAbortHandler when the client has disconnected; and a call whose handler returns the
// refusal of a nested call. A handler that turns such a refusal into a connect.Error calls
// refusal.Tell to report it.
//
// # Streams
//
// A stream is one call that lasts until its end. Its response time does not count; see
// api.LongLived. On a server it ends when the handler returns. On a client it ends when Receive
// returns an error or io.EOF; when Send returns an error other than io.EOF; when the response is
// closed, as the methods of connect's streams of requests do; or when the context that was passed
// ends. CloseRequest is not the end. As connect itself requires, every stream must reach one of
// these ends.
//
// # Limits
//
// The request of a unary call has been read when rules are checked. nethttp.Handler guards earlier,
// but gRPC clients don't understand its refusals. connect does not expose the certificate of a TLS
// client; a net/http middleware around it can put the name into the context, for [Origin].
//
// Everything here is safe for concurrent use.
//
// The page docs/adapters/connect.md has examples.
package penstockconnect

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/api"
)

// Interceptor guards the handlers and clients that get it as an option.
func Interceptor(opts ...Option) connect.Interceptor {
	server := rpc.Guard{Failures: rpc.ServerFailures, CodeOf: codeOf, Abort: http.ErrAbortHandler}
	to := &interceptor{server: server, client: server}
	to.client.Failures, to.client.RetryAfter = rpc.ClientFailures, retryAfter
	for _, o := range opts {
		o(to)
	}
	return to
}

type interceptor struct {
	server, client rpc.Guard
	origin         func(context.Context, Call) string
	resource       func(procedure string) string
	costs          []cost
	options        func(context.Context, Call) []api.Option
}

// Call describes a call that is not admitted yet.
type Call struct {
	Spec connect.Spec
	// Peer and Header are those of the request. A client's stream has none yet.
	Peer   connect.Peer
	Header http.Header
	// Message is the request, nil for a stream.
	Message any
}

// enter enters the resource. The call is nil if it passes unguarded.
func (i *interceptor) enter(ctx context.Context, of Call) (c *rpc.Call, err error) {
	name, origin := of.Spec.Procedure, ""
	switch {
	case i.resource != nil:
		name = i.resource(name)
	case rpc.Unguarded(name):
		name = ""
	}
	if name == "" {
		return nil, nil
	}
	guard := &i.client
	if i.origin != nil {
		origin = i.origin(ctx, of)
	}
	opts := make([]api.Option, 0, 4)
	if !of.Spec.IsClient {
		guard, opts = &i.server, append(opts, rpc.Inbound)
		ctx, opts = guard.Received(ctx, opts, func() *http.Request {
			return rpc.Request(ctx, of.Spec.Procedure, address(of.Peer.Addr), nil, of.Header)
		})
	}
	if of.Spec.StreamType != connect.StreamTypeUnary {
		opts = append(opts, api.LongLived())
	}
	for _, c := range i.costs {
		if n := c.estimate(ctx, of); n > 0 {
			opts = append(opts, api.Cost(c.unit, n))
		}
	}
	if i.options != nil {
		opts = append(opts, i.options(ctx, of)...)
	}
	if c, err = guard.Enter(ctx, name, origin, opts...); err != nil {
		return nil, refuse(err, of.Peer.Protocol)
	}
	return c, nil
}

// WrapUnary guards unary calls.
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			send(ctx, req.Header())
		}
		c, err := i.enter(ctx, Call{req.Spec(), req.Peer(), req.Header(), req.Any()})
		if err != nil {
			return nil, err
		}
		if c == nil {
			return next(ctx, req)
		}
		defer c.Exit()
		if req.Spec().IsClient {
			resp, err := next(ctx, req)
			c.End(err)
			return resp, err
		}
		resp, err := next(c.Below(), req)
		c.End(err)
		return resp, report(err, req.Peer().Protocol)
	}
}

// send sends the level of a client's context on, in place of any other.
func send(ctx context.Context, to http.Header) {
	if level, given := api.CriticalityOf(ctx); given {
		to.Set(rpc.CriticalityKey, level.String())
	}
}

// WrapStreamingHandler guards the streams of a server.
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		c, err := i.enter(ctx, Call{Spec: conn.Spec(), Peer: conn.Peer(), Header: conn.RequestHeader()})
		if err != nil {
			return err
		}
		if c == nil {
			return next(ctx, conn)
		}
		defer c.Exit()
		err = next(c.Below(), &handlerStream{conn, c})
		c.End(err)
		return report(err, conn.Peer().Protocol)
	}
}

// codeOf returns the code that connect gives an error.
func codeOf(err error) uint32 {
	coded, ok := errors.AsType[*connect.Error](err)
	switch {
	case connect.IsNotModifiedError(err):
		return 0
	case ok && coded != nil:
		return uint32(coded.Code())
	case errors.Is(err, context.Canceled):
		return uint32(connect.CodeCanceled)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return uint32(connect.CodeDeadlineExceeded)
	}
	return uint32(connect.CodeUnknown)
}

// retryAfter returns the delay of google.rpc.RetryInfo or else of the answer's headers, 0 if there is
// none.
func retryAfter(_ context.Context, err error) time.Duration {
	coded, ok := errors.AsType[*connect.Error](err)
	if !ok || coded == nil {
		return 0
	}
	for _, detail := range coded.Details() {
		if value, err := detail.Value(); err == nil {
			if info, ok := value.(*errdetails.RetryInfo); ok {
				return info.GetRetryDelay().AsDuration()
			}
		}
	}
	return response.RetryAfter(coded.Meta())
}

// handlerStream is a handler's stream that records that the client was sent a message.
type handlerStream struct {
	connect.StreamingHandlerConn
	call *rpc.Call
}

// Send sends a message.
func (s *handlerStream) Send(m any) error {
	err := s.StreamingHandlerConn.Send(m)
	if err == nil {
		s.call.Answered()
	}
	return err
}

// address is the address of the other end, as net/http's server reports it.
type address string

// Network is not known.
func (address) Network() string { return "" }

// String returns the address.
func (a address) String() string { return string(a) }
