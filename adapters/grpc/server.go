package penstockgrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/api"
)

// ServerOptions returns server options that guard all methods. They chain: other interceptors run
// before or after them, in the order of the options.
func ServerOptions(opts ...Option) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(UnaryServerInterceptor(opts...)),
		grpc.ChainStreamInterceptor(StreamServerInterceptor(opts...)),
	}
}

// UnaryServerInterceptor guards a server's unary methods.
func UnaryServerInterceptor(opts ...Option) grpc.UnaryServerInterceptor {
	g := newGuard(true, opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		trailer := func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) } // fails if no server made the context
		c, guarded, err := g.enter(ctx, req, info.FullMethod, true, rpc.Inbound)
		if err != nil {
			return nil, report(err, trailer)
		}
		if !guarded {
			return next(ctx, req)
		}
		defer c.Exit()
		resp, err := next(c.Below(), req)
		c.End(err)
		return resp, report(err, trailer)
	}
}

// StreamServerInterceptor guards a server's streams.
func StreamServerInterceptor(opts ...Option) grpc.StreamServerInterceptor {
	g := newGuard(true, opts)
	return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		c, guarded, err := g.enter(s.Context(), nil, info.FullMethod, srv != nil, rpc.Inbound, api.LongLived())
		if err != nil {
			return report(err, s.SetTrailer)
		}
		if !guarded {
			return next(srv, s)
		}
		defer c.Exit()
		err = next(srv, &serverStream{s, c.Below(), c})
		c.End(err)
		return report(err, s.SetTrailer)
	}
}

// serverStream is a stream with its own context.
type serverStream struct {
	grpc.ServerStream
	ctx  context.Context
	call *rpc.Call
}

// SendMsg records that the client was sent a message.
func (s *serverStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.call.Answered()
	}
	return err
}

// Context is the handler's context.
func (s *serverStream) Context() context.Context { return s.ctx }
