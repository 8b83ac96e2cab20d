package penstockgrpc

import (
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/api"
)

// guard holds the settings that options make.
type guard struct {
	rpc.Guard
	server   bool
	origin   func(ctx context.Context, fullMethod string) string
	resource func(fullMethod string) string
	costs    []cost
	options  func(ctx context.Context, req any, fullMethod string) []api.Option
}

// newGuard returns the guard of a server or a client.
func newGuard(server bool, opts []Option) *guard {
	g := &guard{server: server, Guard: rpc.Guard{Failures: rpc.ClientFailures, CodeOf: codeOf}}
	if server {
		g.Failures = rpc.ServerFailures
	} else {
		g.RetryAfter = retryAfter
	}
	for _, o := range opts {
		o(g)
	}
	return g
}

// enter enters the resource; guarded is false for calls that pass unguarded. Its error is a
// *refused.
func (g *guard) enter(ctx context.Context, req any, method string, known bool,
	opts ...api.Option) (c *rpc.Call, guarded bool, err error) {
	name, origin := method, ""
	switch {
	case g.resource != nil:
		name = g.resource(method)
	case Unguarded(method):
		name = ""
	case !known:
		name = Unknown
	}
	if name == "" {
		return nil, false, nil
	}
	if g.origin != nil {
		origin = g.origin(ctx, method)
	}
	if g.server {
		ctx, opts = g.Received(ctx, opts, func() *http.Request { return request(ctx, method) })
	}
	for _, c := range g.costs {
		if n := c.estimate(ctx, req, method); n > 0 {
			opts = append(opts, api.Cost(c.unit, n))
		}
	}
	if g.options != nil {
		opts = append(opts, g.options(ctx, req, method)...)
	}
	c, err = g.Enter(ctx, name, origin, opts...)
	if err != nil {
		return nil, true, refuse(err)
	}
	return c, true, nil
}

// sending returns the context of a client's call that sends its level on, in place of any other.
func sending(ctx context.Context) context.Context {
	level, given := api.CriticalityOf(ctx)
	if !given {
		return ctx
	}
	md, _ := metadata.FromOutgoingContext(ctx) // a copy, nil if there is none
	md = metadata.Join(md)
	md.Set(rpc.CriticalityKey, level.String())
	return metadata.NewOutgoingContext(ctx, md)
}

// codeOf returns the code that gRPC gives an error.
func codeOf(err error) uint32 {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	return uint32(s.Code())
}

// retryAfter returns the delay of google.rpc.RetryInfo, 0 if there is none.
func retryAfter(_ context.Context, err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// request returns a call as the values of [Param] see it.
func request(ctx context.Context, method string) *http.Request {
	md, _ := metadata.FromIncomingContext(ctx)
	header := make(http.Header, len(md))
	for name, values := range md {
		if !strings.HasPrefix(name, ":") {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		p = new(peer.Peer)
	}
	r := rpc.Request(ctx, method, p.Addr, p.LocalAddr, header)
	if host := md[":authority"]; len(host) > 0 {
		r.Host = host[0]
	}
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		r.TLS = &info.State
	}
	return r
}
