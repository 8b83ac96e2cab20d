// Package penstockkratos guards servers and clients built with kratos, over gRPC and HTTP:
//
//	grpc.NewServer(grpc.Middleware(recovery.Recovery(), penstockkratos.Server()))
//	http.NewServer(http.Middleware(recovery.Recovery(), penstockkratos.Server()))
//
// and their clients:
//
//	conn, err := grpc.DialInsecure(ctx, grpc.WithMiddleware(penstockkratos.Client()))
//
// A call that no rule refuses runs as an inbound call of the resource named by its operation,
// "/package.Service/Method", whichever transport it uses. Calls that its handler makes with its
// context are counted below it. A client's calls are outbound. A call that a rule makes wait waits
// within its own context, to which kratos gives a timeout. HTTP without generated code has no
// operations: a server's resource is then its route, "GET /users/{id}", and a client's is "GET
// api.example.com". Health checks and reflection are not guarded, since a refused probe gets the
// process restarted. [Resource] changes names and exemptions.
//
// # Refusals
//
// Package refusal defines how a refused call is reported: over HTTP as 429, 503 or 403, with
// Retry-After where the time is known, and over gRPC as ResourceExhausted, Unavailable or
// PermissionDenied, with google.rpc.ErrorInfo, google.rpc.RetryInfo and the trailer
// grpc-retry-pushback-ms. kratos' errors.Reason returns FLOW_BLOCKED and the like in both cases. A
// handler that returns the refusal of a nested call, wrapped or not, reports the same, unless it
// has turned it into a kratos error. A client whose call is refused locally gets a kratos error in
// which errors.As finds the *api.BlockError.
//
// # Failures
//
// Breakers count the codes Unknown, DeadlineExceeded, Internal, Unavailable and DataLoss as
// failures of the resource, for a client also ResourceExhausted, and a panic, which continues. A
// kratos error counts as the gRPC code of its status; statuses below 500 without a gRPC code are
// not failures. See [FailureCodes] and [Failure]. Breakers leave out a call that its caller has
// canceled by then, and a call whose handler returns the refusal of a nested call. A handler that
// turns such a refusal into a kratos error calls refusal.Tell to report it.
//
// # Limits
//
// kratos runs its middleware once for each message of a stream: guard gRPC streams with the
// interceptors of package penstockgrpc. The middleware does not see responses that an HTTP handler
// writes itself, only the error that it returns: use [Filter] for such routes. Requests that no
// route serves never reach it.
//
// Everything here is safe for concurrent use.
//
// The page docs/adapters/kratos.md has examples.
package penstockkratos

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/gorilla/mux"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
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
			ctx, opts := g.Received(ctx, []api.Option{rpc.Inbound}, func() *http.Request { return request(ctx, t) })
			c, err := g.enter(ctx, t, req, opts...)
			if err != nil {
				return nil, report(ctx, t, err)
			}
			if c == nil {
				return next(ctx, req)
			}
			defer c.Exit()
			resp, err := next(c.Below(), req)
			c.End(err)
			return resp, report(ctx, t, err)
		}
	}
}

// Client guards the calls of a client.
func Client(opts ...Option) middleware.Middleware {
	g := newGuard(rpc.ClientFailures, opts)
	g.RetryAfter = retryAfter
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, req any) (any, error) {
			t, ok := transport.FromClientContext(ctx)
			if !ok {
				return next(ctx, req)
			}
			if level, given := api.CriticalityOf(ctx); given {
				t.RequestHeader().Set(rpc.CriticalityKey, level.String())
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

// guard holds the settings that options make.
type guard struct {
	rpc.Guard
	origin   func(context.Context, transport.Transporter) string
	resource func(name string) string
	costs    []cost
	options  func(ctx context.Context, t transport.Transporter, req any) []api.Option
}

func newGuard(failures uint32, opts []Option) *guard {
	g := &guard{Guard: rpc.Guard{Failures: failures, CodeOf: codeOf, Abort: http.ErrAbortHandler}}
	for _, o := range opts {
		o(g)
	}
	return g
}

// enter enters the resource. The call is nil if it passes unguarded.
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
	for _, c := range g.costs {
		if n := c.estimate(ctx, t, req); n > 0 {
			opts = append(opts, api.Cost(c.unit, n))
		}
	}
	if g.options != nil {
		opts = append(opts, g.options(ctx, t, req)...)
	}
	return g.Enter(ctx, name, origin, opts...)
}

// nameOf returns the operation. Without one kratos uses the path, and a client's path contains
// everything that its wildcards matched.
func nameOf(t transport.Transporter) string {
	h, ok := t.(khttp.Transporter)
	if !ok || h.Operation() != h.PathTemplate() {
		return t.Operation()
	}
	r := h.Request()
	if r.RequestURI == "" && isPath(h.PathTemplate(), r.URL) { // a client's request
		return r.Method + " " + netname.HostOf(r.URL.Scheme, r.URL.Host)
	}
	return response.Method(r.Method) + " " + cmp.Or(template(h), nethttp.Unmatched)
}

// isPath reports whether a template is the path itself, perhaps with a query: the program gave
// none.
func isPath(template string, of *url.URL) bool {
	if end := strings.IndexAny(template, "?#"); end >= 0 {
		template = template[:end]
	}
	return template == of.Path || template == of.EscapedPath()
}

// template returns the pattern of the route that serves a request, "" if none does; kratos then has
// the path instead.
func template(h khttp.Transporter) string {
	if r := h.Request(); r.RequestURI != "" && mux.CurrentRoute(r) == nil {
		return ""
	}
	return h.PathTemplate()
}

// request returns a server's call as the values of [Param] see it.
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

// retryAfter returns how long a client's server wants to be left alone: by the headers of an HTTP
// answer, or by google.rpc.RetryInfo. 0 means that it doesn't say.
func retryAfter(ctx context.Context, err error) time.Duration {
	if t, ok := transport.FromClientContext(ctx); ok && t.Kind() == transport.KindHTTP {
		if reply := t.ReplyHeader(); reply != nil {
			header := make(http.Header)
			for _, name := range []string{"Retry-After", "Date", "Ratelimit"} {
				header[name] = reply.Values(name)
			}
			return response.RetryAfter(header)
		}
	}
	if s, ok := status.FromError(err); ok {
		for _, detail := range s.Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				return info.GetRetryDelay().AsDuration()
			}
		}
	}
	return 0
}

// codeOf returns the gRPC code of an error.
func codeOf(err error) uint32 {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	if e, ok := errors.AsType[*kerrors.Error](err); ok && e.Code < http.StatusInternalServerError && s.Code() == codes.Unknown {
		return uint32(codes.InvalidArgument) // no gRPC code: the caller's mistake
	}
	return uint32(s.Code())
}
