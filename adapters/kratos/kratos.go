// Package penstockkratos guards servers and clients that are built with kratos, by gRPC and by
// HTTP:
//
//	grpc.NewServer(grpc.Middleware(recovery.Recovery(), penstockkratos.Server()))
//	http.NewServer(http.Middleware(recovery.Recovery(), penstockkratos.Server()))
//
// and their clients:
//
//	conn, err := grpc.DialInsecure(ctx, grpc.WithMiddleware(penstockkratos.Client()))
//
// A call that no rule refuses runs as an inbound call of the resource that its operation names,
// "/package.Service/Method", whichever way it comes in, and calls that its handler makes with its
// context are counted below it. A client's calls are outbound. Where rules have a call wait, it waits
// within its own context, to which kratos gives a timeout. HTTP without generated code has no
// operations: a server's resource is "GET /users/{id}" there, the route's, and a client's is
// "GET api.example.com". Health checks and reflection are not guarded, since a refused probe has
// the process restarted. [Resource] changes all that.
//
// # Refusals
//
// A refused call is told by package refusal: by HTTP as 429, 503 or 403, with Retry-After where
// it is known, and by gRPC as ResourceExhausted, Unavailable or PermissionDenied, with
// google.rpc.ErrorInfo, google.rpc.RetryInfo and the trailer grpc-retry-pushback-ms. errors.Reason
// of kratos reads FLOW_BLOCKED and the like in both cases. The same is told where a handler
// returns the refusal of a call of its own, wrapped or not, unless it has made an error of
// kratos of it. The error of a client whose call is refused before it is made is one of
// kratos, in which errors.As finds the *api.BlockError.
//
// # Failures
//
// Breakers count the codes Unknown, DeadlineExceeded, Internal, Unavailable and DataLoss as
// failures of the resource, for a client also ResourceExhausted, and a panic, which continues. An
// error of kratos counts by the code that gRPC has for its own, and those below 500 that gRPC has
// none for are no failures. See [FailureCodes] and [Failure]. They leave out a call that its
// caller has canceled by then, and one whose handler returns a refusal that it got from a call of its
// own. A handler that makes an error of kratos of such a refusal calls refusal.Tell, so that it is known.
//
// # Limits
//
// kratos asks its middleware once for each message of a stream: streams of gRPC are for the
// interceptors of the package penstockgrpc. What a handler of HTTP writes itself the middleware does
// not see, but for the error that it returns: [Filter] is for such routes. Requests that no route
// serves never come to it.
//
// Everything here is safe for concurrent use.
package penstockkratos

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/gorilla/mux"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/netname"
)

// Server guards the handlers of a server.
func Server(opts ...Option) middleware.Middleware {
	g := newGuard(rpc.ServerFailures, opts)
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, req any) (any, error) {
			t, ok := transport.FromServerContext(ctx)
			if !ok {
				return next(ctx, req)
			}
			opts := g.Attach([]api.Option{rpc.Inbound}, func() *http.Request { return request(ctx, t) })
			c, err := g.enter(ctx, t, req, opts...)
			if err != nil {
				return nil, tell(ctx, t, err)
			}
			if c == nil {
				return next(ctx, req)
			}
			defer c.Exit()
			resp, err := next(c.Below(), req)
			c.End(err)
			return resp, tell(ctx, t, err)
		}
	}
}

// Client guards the calls of a client.
func Client(opts ...Option) middleware.Middleware {
	g := newGuard(rpc.ClientFailures, opts)
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, req any) (any, error) {
			t, ok := transport.FromClientContext(ctx)
			if !ok {
				return next(ctx, req)
			}
			c, err := g.enter(ctx, t, req)
			if err != nil {
				return nil, refuse(err)
			}
			if c == nil {
				return next(ctx, req)
			}
			defer c.Exit()
			resp, err := next(ctx, req)
			c.End(err)
			return resp, err
		}
	}
}

// guard is what options make: how calls are guarded.
type guard struct {
	rpc.Guard
	origin   func(context.Context, transport.Transporter) string
	resource func(name string) string
	options  func(ctx context.Context, t transport.Transporter, req any) []api.Option
}

func newGuard(failures uint32, opts []Option) *guard {
	g := &guard{Guard: rpc.Guard{Failures: failures, CodeOf: codeOf, Abort: http.ErrAbortHandler}}
	for _, o := range opts {
		o(g)
	}
	return g
}

// enter asks for the resource. The call is nil if it is not to be guarded.
func (g *guard) enter(ctx context.Context, t transport.Transporter, req any, opts ...api.Option) (c *rpc.Call, err error) {
	name, origin := nameOf(t), ""
	switch {
	case g.resource != nil:
		name = g.resource(name)
	case rpc.Unguarded(name):
		name = ""
	}
	if name == "" {
		return nil, nil
	}
	if g.origin != nil {
		origin = g.origin(ctx, t)
	}
	if g.options != nil {
		opts = append(opts, g.options(ctx, t, req)...)
	}
	return g.Enter(ctx, name, origin, opts...)
}

// nameOf is the operation. Without one kratos uses the path, and a client's path contains
// everything that its wildcards matched.
func nameOf(t transport.Transporter) string {
	h, ok := t.(khttp.Transporter)
	if !ok || h.Operation() != h.PathTemplate() {
		return t.Operation()
	}
	r := h.Request()
	if r.RequestURI == "" && isPath(h.PathTemplate(), r.URL) { // of a client
		return r.Method + " " + netname.HostOf(r.URL.Scheme, r.URL.Host)
	}
	return response.Method(r.Method) + " " + cmp.Or(template(h), nethttp.Unmatched)
}

// isPath reports whether a template is the path itself, perhaps with a query: its program gave none.
func isPath(template string, of *url.URL) bool {
	if end := strings.IndexAny(template, "?#"); end >= 0 {
		template = template[:end]
	}
	return template == of.Path || template == of.EscapedPath()
}

// template is the pattern of the route that serves a request, "" if none does: kratos then has the
// path in its place.
func template(h khttp.Transporter) string {
	if r := h.Request(); r.RequestURI != "" && mux.CurrentRoute(r) == nil {
		return ""
	}
	return h.PathTemplate()
}

// request is a server's call as the values of [Param] see it.
func request(ctx context.Context, t transport.Transporter) *http.Request {
	if h, ok := t.(khttp.Transporter); ok {
		return h.Request()
	}
	header := make(http.Header)
	for _, name := range t.RequestHeader().Keys() {
		if !strings.HasPrefix(name, ":") {
			header[http.CanonicalHeaderKey(name)] = t.RequestHeader().Values(name)
		}
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		p = new(peer.Peer)
	}
	r := rpc.Request(ctx, t.Operation(), p.Addr, p.LocalAddr, header)
	r.Host = t.RequestHeader().Get(":authority")
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		r.TLS = &info.State
	}
	return r
}

// codeOf is the code that gRPC has for an error.
func codeOf(err error) uint32 {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	if e, ok := errors.AsType[*kerrors.Error](err); ok && e.Code < http.StatusInternalServerError && s.Code() == codes.Unknown {
		return uint32(codes.InvalidArgument) // which gRPC has none for: the caller's mistake
	}
	return uint32(s.Code())
}
