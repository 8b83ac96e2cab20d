package penstockgrpc

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// guard is what options make: how calls are guarded.
type guard struct {
	api      *api.Guard // nil for the default one
	context  string
	origin   func(ctx context.Context, fullMethod string) string
	resource func(fullMethod string) string
	options  func(ctx context.Context, req any, fullMethod string) []api.Option
	failure  func(error) bool
	failures uint32 // a bit for each code
}

var (
	serverFailures = codeSet(codes.Unknown, codes.DeadlineExceeded, codes.Internal, codes.Unavailable, codes.DataLoss)
	clientFailures = serverFailures | codeSet(codes.ResourceExhausted)
)

func newGuard(failures uint32, opts []Option) *guard {
	g := &guard{failures: failures}
	for _, o := range opts {
		o(g)
	}
	return g
}

func codeSet(of ...codes.Code) (set uint32) {
	for _, c := range of {
		set |= 1 << c
	}
	return set
}

// call is one call that was admitted.
type call struct {
	guard *guard
	ctx   context.Context // of the caller
	entry api.Admitted    // of nothing if the call is not guarded
	scope scope           // of a server
	ended bool            // what was guarded has returned
}

// scope is the context of a handler. Calls of the handler are counted below its own, and
// refusals that it makes a status of are told here.
type scope struct {
	context.Context
	refused atomic.Bool
}

// Value returns what the context has, and itself as the listener of [refusal.Tell].
func (s *scope) Value(key any) any {
	if key == refusal.ListenerKey() {
		return s
	}
	return s.Context.Value(key)
}

// Refused notes that the handler answers with a refusal, which is none of its failures; nor is
// it one of an interceptor around.
func (s *scope) Refused(err error) {
	s.refused.Store(true)
	refusal.Tell(s.Context, err)
}

// enter asks for the resource; guarded is false if the call is not to be guarded. Its error is
// one of *refused.
func (g *guard) enter(ctx context.Context, req any, method string, known bool,
	opts ...api.Option) (c *call, guarded bool, err error) {
	name := method
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
	c = &call{guard: g, ctx: ctx}
	if g.context != "" {
		ctx = api.WithContext(ctx, g.context)
	}
	if g.origin != nil {
		if origin := g.origin(ctx, method); origin != "" {
			ctx = api.WithOrigin(ctx, origin)
		}
	}
	if g.options != nil {
		opts = append(opts, g.options(ctx, req, method)...)
	}
	if g.api != nil {
		c.entry, err = g.api.Entry(ctx, name, opts...)
	} else {
		c.entry, err = api.Entry(ctx, name, opts...)
	}
	if err != nil {
		return nil, true, refuse(err)
	}
	return c, true, nil
}

// below is the context of a server's handler.
func (c *call) below() context.Context {
	c.scope.Context = c.entry.Context()
	return &c.scope
}

// end says how the call ended; err is what the handler or the client's invoker returned.
func (c *call) end(err error) {
	c.ended = true
	c.entry.Fail(c.failed(err))
}

// exit ends the call. It is to be deferred, so that it sees a panic, which goes on. As it
// does not recover, the stack stays as it is.
func (c *call) exit() {
	if !c.ended {
		c.entry.Fail(errPanicked)
	}
	c.entry.Exit()
}

// failed is what breakers are told of an outcome, nil if it is no failure.
func (c *call) failed(err error) error {
	switch {
	case err == nil, c.scope.refused.Load(), refusal.Of(err).Reason != refusal.None:
		return nil
	case c.guard.failure != nil:
		if !c.guard.failure(err) {
			return nil
		}
	case errors.Is(c.ctx.Err(), context.Canceled), c.guard.failures&(1<<codeOf(err)) == 0:
		return nil
	}
	if errors.Is(err, context.Canceled) { // of something else, and the engine would take it for no failure
		return status.Convert(err).Err()
	}
	return err
}

// codeOf is the code that gRPC gives an error.
func codeOf(err error) codes.Code {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	return min(s.Code(), 31) // others than the 17 there are have no meaning
}

var errPanicked = errors.New("the handler panicked")
