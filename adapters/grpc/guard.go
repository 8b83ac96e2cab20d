package penstockgrpc

import (
	"context"

	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/api"
)

// guard is what options make: how calls are guarded.
type guard struct {
	rpc.Guard
	origin   func(ctx context.Context, fullMethod string) string
	resource func(fullMethod string) string
	options  func(ctx context.Context, req any, fullMethod string) []api.Option
}

func newGuard(failures uint32, opts []Option) *guard {
	g := &guard{Guard: rpc.Guard{Failures: failures, CodeOf: codeOf}}
	for _, o := range opts {
		o(g)
	}
	return g
}

// enter asks for the resource; guarded is false if the call is not to be guarded. Its error is
// one of *refused.
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
	if g.options != nil {
		opts = append(opts, g.options(ctx, req, method)...)
	}
	c, err = g.Enter(ctx, name, origin, opts...)
	if err != nil {
		return nil, true, refuse(err)
	}
	return c, true, nil
}

// codeOf is the code that gRPC gives an error.
func codeOf(err error) uint32 {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	return uint32(s.Code())
}
