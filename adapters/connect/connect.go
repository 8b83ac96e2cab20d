// Package penstockconnect guards servers and clients of connectrpc.com/connect. It is not named as
// its folder, since programs that use it import connect as well. One line guards a handler,
// each of its procedures as a resource of its own:
//
//	mux.Handle(pingv1connect.NewPingServiceHandler(ping, connect.WithInterceptors(penstockconnect.Interceptor())))
//
// and the same guards a client:
//
//	client := pingv1connect.NewPingServiceClient(http.DefaultClient, url, connect.WithInterceptors(penstockconnect.Interceptor()))
//
// A call that no rule refuses runs as an inbound call of the resource "/package.Service/Method",
// the procedure, and calls that its handler makes with its context are counted below it. A
// client's calls are outbound. Where rules have a call wait, it waits within its own context.
// It is the same with each of the protocols: connect, gRPC and gRPC-Web. Health checks and
// reflection are not guarded, since a refused probe has the process restarted. [Resource]
// changes all that.
//
// # Refusals
//
// A refused call is told by package refusal: ResourceExhausted, Unavailable or
// PermissionDenied, with google.rpc.ErrorInfo and, where it is known, google.rpc.RetryInfo, and
// Retry-After and grpc-retry-pushback-ms as metadata. So clients that know nothing but HTTP
// see 429, 503 or 403 of a unary call of the connect protocol. The same is told where a handler
// returns the refusal of a call of its own, wrapped or not, unless it has made an error of connect
// of it. The error of a client whose call is refused before it is made is a *connect.Error of
// that kind, in which errors.As finds the *api.BlockError.
//
// # Failures
//
// Breakers count the codes Unknown, DeadlineExceeded, Internal, Unavailable and DataLoss as
// failures of the resource, for a client also ResourceExhausted, and a panic, which continues. See
// [FailureCodes] and [Failure]. A response that has not been modified is no failure.
// Breakers leave out a call that its caller has canceled by then, unless it is a stream that has
// carried a message; http.ErrAbortHandler when the client is gone; and a call whose handler returns a
// refusal that it got from a call of its own. A handler that makes a connect.Error of such a refusal
// calls refusal.Tell, so that it is known.
//
// # Streams
//
// A stream is one call that lasts until its end. Its response time does not count, see
// api.LongLived. On a server it ends when the handler returns. On a client it ends when Receive
// returns an error or io.EOF; when Send returns an error that is not io.EOF; when the response is
// closed, as the methods of connect's streams of requests do; or when the context that was
// passed ends. CloseRequest is not the end. As connect itself has it, a stream must come to one
// of these.
//
// # Limits
//
// The request of a unary call has been read when a rule is asked. nethttp.Handler guards before
// that, but clients of gRPC don't understand its refusals. connect doesn't say whose certificate
// the client of a TLS connection has; a middleware of net/http around it can put the name into
// the context, for [Origin].
//
// Everything here is safe for concurrent use.
package penstockconnect

import (
	"context"
	"errors"
	"net/http"
	"os"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/api"
)

// Interceptor guards the handlers and clients that it is an option of.
func Interceptor(opts ...Option) connect.Interceptor {
	server := rpc.Guard{Failures: rpc.ServerFailures, CodeOf: codeOf, Abort: http.ErrAbortHandler}
	to := &interceptor{server: server, client: server}
	to.client.Failures = rpc.ClientFailures
	for _, o := range opts {
		o(to)
	}
	return to
}

type interceptor struct {
	server, client rpc.Guard
	origin         func(context.Context, Call) string
	resource       func(procedure string) string
	options        func(context.Context, Call) []api.Option
}

// Call is what is known of a call that is not yet let in.
type Call struct {
	Spec connect.Spec
	// Peer and Header are those of the request. A client's stream has none yet.
	Peer   connect.Peer
	Header http.Header
	// Message is the request, nil of streams.
	Message any
}

// enter asks for the resource. The call is nil if it is not to be guarded.
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
		opts = guard.Attach(opts, func() *http.Request {
			return rpc.Request(ctx, of.Spec.Procedure, address(of.Peer.Addr), nil, of.Header)
		})
	}
	if of.Spec.StreamType != connect.StreamTypeUnary {
		opts = append(opts, api.LongLived())
	}
	if i.options != nil {
		opts = append(opts, i.options(ctx, of)...)
	}
	if c, err = guard.Enter(ctx, name, origin, opts...); err != nil {
		return nil, refuse(err, of.Peer.Protocol)
	}
	return c, nil
}

// WrapUnary guards calls with one request and one response.
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
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
		return resp, tell(err, req.Peer().Protocol)
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
		return tell(err, conn.Peer().Protocol)
	}
}

// codeOf is the code that connect gives an error.
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

// handlerStream is a stream of a handler, which notes that the client is sent something.
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

// address is that of the other end, as the server of net/http tells it.
type address string

// Network is not known.
func (address) Network() string { return "" }

// String returns the address.
func (a address) String() string { return string(a) }
