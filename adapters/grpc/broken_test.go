package penstockgrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/api"
)

type (
	handler       = func(context.Context) (any, error)
	streamHandler = func(grpc.ServerStream) error
)

// guardOf returns the guard for a broken adapter, which has no options of its own.
func guardOf(s *stage, client bool) *api.Guard {
	if client {
		return s.client
	}
	return s.server
}

// brokenUnary returns a unary server interceptor that runs calls through a faulty f.
func brokenUnary(f func(
	ctx context.Context, g *api.Guard, name string, run handler,
) (any, error)) func(*stage, *adapter) {
	return func(s *stage, a *adapter) {
		a.unaryServer = func(...penstockgrpc.Option) grpc.UnaryServerInterceptor {
			return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				return f(ctx, guardOf(s, false), info.FullMethod, func(ctx context.Context) (any, error) { return next(ctx, req) })
			}
		}
	}
}

// brokenStream returns a stream server interceptor that runs calls through a faulty f.
func brokenStream(f func(
	ss grpc.ServerStream, g *api.Guard, name string, run streamHandler,
) error) func(*stage, *adapter) {
	return func(s *stage, a *adapter) {
		a.streamServer = func(...penstockgrpc.Option) grpc.StreamServerInterceptor {
			return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
				return f(ss, guardOf(s, false), info.FullMethod, func(ss grpc.ServerStream) error { return next(srv, ss) })
			}
		}
	}
}

// brokenClient returns a stream client interceptor that ends its calls when watch does.
func brokenClient(watch func(e api.Admitted, s grpc.ClientStream) grpc.ClientStream) func(*stage, *adapter) {
	return func(s *stage, a *adapter) {
		a.streamClient = func(...penstockgrpc.Option) grpc.StreamClientInterceptor {
			return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
				method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				e, err := guardOf(s, true).Entry(ctx, method, api.LongLived())
				if err != nil {
					return nil, err
				}
				stream, err := next(ctx, desc, cc, method, opts...)
				if err != nil {
					return nil, err
				}
				return watch(e, stream), nil
			}
		}
	}
}

// untilError ends its call when RecvMsg fails, and at no other time.
type untilError struct {
	grpc.ClientStream
	entry api.Admitted
}

func (u *untilError) RecvMsg(m any) error {
	err := u.ClientStream.RecvMsg(m)
	if err != nil {
		u.entry.Exit()
	}
	return err
}

func leavesEarly(e api.Admitted, s grpc.ClientStream) grpc.ClientStream {
	e.Exit()
	return s
}

func untilErrorOnly(e api.Admitted, s grpc.ClientStream) grpc.ClientStream { return &untilError{s, e} }

// A faulty adapter fails a case. The faults are known from adapters of other libraries, or likely
// ones for this adapter.
func TestBrokenAdaptersFail(t *testing.T) {
	for _, tt := range []struct {
		mistake string
		broken  func(*stage, *adapter)
		cases   []string // those expected to fail
	}{
		{"the entry is leaked on a panic", brokenUnary(
			func(ctx context.Context, g *api.Guard, name string, run handler) (any, error) {
				e, err := g.Entry(ctx, name, api.Inbound())
				if err != nil {
					return nil, err
				}
				resp, err := run(e.Context())
				e.Fail(err)
				e.Exit()
				return resp, err
			}), []string{"a panic is a failure, leaks nothing and keeps its stack"}},
		{"a panic is none", brokenUnary(
			func(ctx context.Context, g *api.Guard, name string, run handler) (any, error) {
				e, err := g.Entry(ctx, name, api.Inbound())
				if err != nil {
					return nil, err
				}
				defer e.Exit()
				return run(e.Context())
			}), []string{"a panic is a failure, leaks nothing and keeps its stack"}},
		{"a panic loses its stack", brokenUnary(
			func(ctx context.Context, g *api.Guard, name string, run handler) (resp any, err error) {
				e, err := g.Entry(ctx, name, api.Inbound())
				if err != nil {
					return nil, err
				}
				var p any
				func() {
					defer func() { p = recover() }()
					resp, err = run(e.Context())
				}()
				if p != nil {
					e.Fail(context.DeadlineExceeded)
					e.Exit()
					panic(p)
				}
				e.Exit()
				return resp, err
			}), []string{"a panic is a failure, leaks nothing and keeps its stack"}},
		{"errors are not reported", brokenUnary(
			func(ctx context.Context, g *api.Guard, name string, run handler) (any, error) {
				e, err := g.Entry(ctx, name, api.Inbound())
				if err != nil {
					return nil, err
				}
				defer e.Exit()
				return run(e.Context())
			}), []string{"the code Unavailable", "the code Unknown", "refused by a breaker"}},
		{"every error is a failure", brokenUnary(
			func(ctx context.Context, g *api.Guard, name string, run handler) (any, error) {
				e, err := g.Entry(ctx, name, api.Inbound())
				if err != nil {
					return nil, err
				}
				defer e.ExitOn(&err)
				var resp any
				resp, err = run(e.Context())
				return resp, err
			}), []string{"the code NotFound", "the code Canceled"}},
		{"a nested refusal is a failure", brokenUnary(
			func(ctx context.Context, g *api.Guard, name string, run handler) (any, error) {
				e, err := g.Entry(ctx, name, api.Inbound())
				if err != nil {
					return nil, err
				}
				resp, err := run(e.Context())
				if err != nil {
					err = status.Error(codes.ResourceExhausted, err.Error())
				}
				defer e.ExitOn(&err)
				return resp, err
			}), []string{"a nested refusal is reported, and is not a failure", "a nested refusal that the handler reports as Unavailable is not a failure"}},
		{"a refusal is a bare error", brokenUnary(
			func(ctx context.Context, g *api.Guard, name string, run handler) (resp any, err error) {
				err = g.Do(ctx, name, func(ctx context.Context) (err error) {
					resp, err = run(ctx)
					return err
				}, api.Inbound())
				return resp, err
			}), []string{"refused by flow", "a call that waits until its deadline", "a client with a retry policy waits the pushback"}},
		{"calls of the handler are counted elsewhere", brokenUnary(
			func(ctx context.Context, g *api.Guard, name string, run handler) (any, error) {
				e, err := g.Entry(ctx, name, api.Inbound())
				if err != nil {
					return nil, err
				}
				defer e.Exit()
				return run(ctx)
			}), []string{"nested calls are counted below the call"}},
		{"probes are refused", brokenUnary(
			func(ctx context.Context, g *api.Guard, name string, run handler) (any, error) {
				e, err := g.Entry(ctx, name, api.Inbound())
				if err != nil {
					return nil, err
				}
				defer e.Exit()
				return run(ctx)
			}), []string{"health is not guarded"}},
		{"a stream exits at once", brokenStream(
			func(ss grpc.ServerStream, g *api.Guard, name string, run streamHandler) error {
				e, err := g.Entry(ss.Context(), name, api.Inbound(), api.LongLived())
				if err != nil {
					return err
				}
				e.Exit()
				return run(ss)
			}), []string{"a stream is one call until its end"}},
		{"a stream has a response time", brokenStream(
			func(ss grpc.ServerStream, g *api.Guard, name string, run streamHandler) (err error) {
				e, err := g.Entry(ss.Context(), name, api.Inbound())
				if err != nil {
					return err
				}
				defer e.ExitOn(&err)
				err = run(ss)
				return err
			}), []string{"a panic of a stream is a failure, leaks nothing and keeps its stack"}},
		{"clients make resources", brokenStream(
			func(ss grpc.ServerStream, g *api.Guard, name string, run streamHandler) error {
				e, err := g.Entry(ss.Context(), name, api.Inbound(), api.LongLived())
				if err != nil {
					return err
				}
				defer e.Exit()
				return run(ss)
			}), []string{"methods that clients make up are one resource"}},
		{"a client's stream exits when it is opened", brokenClient(leavesEarly), []string{
			"a stream is one call until its end", "a client's stream ends at an error of RecvMsg",
			"a client's stream ends at its one response, not at CloseSend"}},
		{"a client's stream exits only where RecvMsg fails", brokenClient(untilErrorOnly), []string{
			"a client's stream ends at its one response, not at CloseSend", "a client's stream ends where there is no header",
			"a client's stream ends at an error of SendMsg", "a client's stream ends with its context, even if nobody reads it",
			"a client's stream ends with its deadline, even if nobody reads it", "a client's stream ends with its connection, even if nobody reads it",
			"a client's stream ends with the time that the service config allows, even if nobody reads it",
			"a client's stream that can't be opened leaks nothing", "a client's stream that panics when it is opened leaks nothing"}},
		{"a client's stream is kept by its context", func(_ *stage, a *adapter) {
			a.streamClient = func(opts ...penstockgrpc.Option) grpc.StreamClientInterceptor {
				ours := penstockgrpc.StreamClientInterceptor(opts...)
				return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
					method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
					context.AfterFunc(ctx, func() {})
					return ours(ctx, desc, cc, method, next, opts...)
				}
			}
		}, []string{"a context that goes on forgets a stream that has ended"}},
		{"a client's stream asks for its context, and is not retried", func(_ *stage, a *adapter) {
			a.streamClient = func(opts ...penstockgrpc.Option) grpc.StreamClientInterceptor {
				ours := penstockgrpc.StreamClientInterceptor(opts...)
				return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
					method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
					s, err := ours(ctx, desc, cc, method, next, opts...)
					if err == nil {
						s.Context()
					}
					return s, err
				}
			}
		}, []string{"streams can be retried"}},
		{"a client's refusal is no status", func(s *stage, a *adapter) {
			a.unaryClient = func(...penstockgrpc.Option) grpc.UnaryClientInterceptor {
				return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
					next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					return guardOf(s, true).Do(ctx, method, func(ctx context.Context) error {
						return next(ctx, method, req, reply, cc, opts...)
					})
				}
			}
		}, []string{"a client's refusal is a status and a BlockError", "a client waits before the call"}},
	} {
		t.Run(tt.mistake, func(t *testing.T) {
			for _, name := range tt.cases {
				found := false
				for _, c := range cases() {
					if c.name != name {
						continue
					}
					found = true
					// A correct adapter finishes every case sooner, unless the machine stalls; then
					// the case fails, and this test passes for the wrong reason.
					if err := c.check(t, 500*time.Millisecond, tt.broken); err == nil {
						t.Errorf("nobody notices in the case %q", name)
					}
				}
				if !found {
					t.Errorf("there is no case %q", name)
				}
			}
		})
	}
}
