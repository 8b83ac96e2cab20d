package penstockgrpc

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/api"
)

// DialOptions returns client options that guard all calls. They chain: other interceptors run
// before or after them, in the order of the options.
func DialOptions(opts ...Option) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(UnaryClientInterceptor(opts...)),
		grpc.WithChainStreamInterceptor(StreamClientInterceptor(opts...)),
	}
}

// UnaryClientInterceptor guards a client's unary calls.
func UnaryClientInterceptor(opts ...Option) grpc.UnaryClientInterceptor {
	g := newGuard(false, opts)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx = sending(ctx)
		c, guarded, err := g.enter(ctx, req, method, true)
		if err != nil {
			return err
		}
		if !guarded {
			return next(ctx, method, req, reply, cc, opts...)
		}
		defer c.Exit()
		err = next(ctx, method, req, reply, cc, opts...)
		c.End(err)
		return err
	}
}

// StreamClientInterceptor guards a client's streams.
func StreamClientInterceptor(opts ...Option) grpc.StreamClientInterceptor {
	g := newGuard(false, opts)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
		method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx = sending(ctx)
		c, guarded, err := g.enter(ctx, nil, method, true, api.LongLived())
		if err != nil {
			return nil, err
		}
		if !guarded {
			return next(ctx, desc, cc, method, opts...)
		}
		s := &clientStream{call: c, single: !desc.ServerStreams}
		s.forget = context.AfterFunc(ctx, func() { s.over(ctx.Err()) })
		opened := false
		defer func() {
			if !opened {
				s.end(rpc.ErrPanicked)
			}
		}()
		s.ClientStream, err = next(ctx, desc, cc, method, append(opts[:len(opts):len(opts)], grpc.OnFinish(s.finished))...)
		opened = true
		if err != nil {
			s.end(err)
			return nil, err
		}
		return s, nil
	}
}

// clientStream ends its call when the stream ends; see the package's documentation. It doesn't call
// Context itself, since gRPC does not retry a stream once Context was called.
type clientStream struct {
	grpc.ClientStream
	call   *rpc.Call
	single bool                  // the method has one response
	forget func() bool           // stops the watch on the context
	once   sync.Once             // only the first end counts
	result atomic.Pointer[error] // result of the last attempt that gRPC reported
}

// end ends the call.
func (s *clientStream) end(err error) {
	s.forget()
	s.over(err)
}

// over ends the call where the stream may not have begun yet.
func (s *clientStream) over(err error) {
	s.once.Do(func() {
		if err == rpc.ErrPanicked { //nolint:errorlint // it is the error itself
			s.call.Exit()
			return
		}
		s.call.End(err)
		s.call.Exit()
	})
}

// finished is gRPC's OnFinish callback: it gets the result of the stream or, if an interceptor
// below makes several attempts, of one attempt. So it ends the call only if no other attempt can
// follow: the connection is closed, or the service config's timeout expires.
func (s *clientStream) finished(err error) {
	s.result.Store(&err)
	if code := codes.Code(codeOf(err)); code == codes.Canceled || code == codes.DeadlineExceeded {
		s.over(err)
	}
}

// Header ends the call if it returns no header, since the stream has then ended. gRPC returns no
// error in that case.
func (s *clientStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	if err != nil {
		s.end(err)
	} else if result := s.result.Load(); md == nil && result != nil {
		s.end(*result)
	}
	return md, err
}

// SendMsg ends the call on an error other than io.EOF; after io.EOF, RecvMsg knows the outcome.
func (s *clientStream) SendMsg(m any) error {
	err := s.ClientStream.SendMsg(m)
	if err != nil && err != io.EOF { //nolint:errorlint // gRPC returns it as it is
		s.end(err)
	}
	return err
}

// RecvMsg ends the call with the last response, or with the error instead of it.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		s.call.Answered()
	}
	switch {
	case err == io.EOF, err == nil && s.single: //nolint:errorlint // gRPC returns it as it is
		s.end(nil)
	case err != nil:
		s.end(err)
	}
	return err
}
