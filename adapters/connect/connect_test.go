package penstockconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/emptypb"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/adapters/internal/rpctest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// The procedures of the test service.
const (
	unary  = "/test.v1.Service/Unary"
	stream = "/test.v1.Service/Stream"
)

func options(o rpctest.Options) (opts []penstockconnect.Option) {
	opts = append(opts, penstockconnect.On(o.Guard), penstockconnect.Context(o.Context))
	if o.Origin != "" {
		opts = append(opts, penstockconnect.Origin(func(context.Context, penstockconnect.Call) string { return o.Origin }))
	}
	if o.User != "" {
		opts = append(opts, penstockconnect.WithOptions(func(_ context.Context, of penstockconnect.Call) []api.Option {
			if _, ok := of.Message.(*emptypb.Empty); !ok || of.Spec.Procedure != unary || of.Peer.Addr == "" || of.Header == nil {
				panic(fmt.Sprintf("the call is %+v", of))
			}
			return []api.Option{api.Param("user", o.User)}
		}))
	}
	if o.Cost > 0 {
		opts = append(opts, penstockconnect.RefundOnError("tokens"),
			penstockconnect.Cost("tokens", func(context.Context, penstockconnect.Call) int64 { return o.Cost }))
	}
	if o.Levels {
		opts = append(opts, penstockconnect.Criticality(nethttp.TrustedHeader(nethttp.CriticalityHeader, netip.MustParsePrefix("127.0.0.0/8")), o.AtMost))
	}
	if o.Resource != nil {
		opts = append(opts, penstockconnect.Resource(o.Resource))
	}
	if o.FailureCodes != nil {
		codes := make([]connect.Code, len(o.FailureCodes))
		for i, c := range o.FailureCodes {
			codes[i] = connect.Code(c)
		}
		opts = append(opts, penstockconnect.FailureCodes(codes...))
	}
	if o.Failure != nil {
		opts = append(opts, penstockconnect.Failure(o.Failure))
	}
	return opts
}

// around is an interceptor around the one under test.
type around struct{ *rpctest.Service }

func (a around) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (resp connect.AnyResponse, err error) {
		defer a.recovers(&err)
		return next(a.Around(ctx), req)
	}
}

func (a around) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		defer a.recovers(&err)
		return next(a.Around(ctx), conn)
	}
}

func (a around) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (a around) recovers(err *error) {
	if p := recover(); p != nil {
		a.Recovered()
		*err = connect.NewError(connect.CodeInternal, fmt.Errorf("recovered: %v", p))
	}
}

// handlers returns the service's handlers.
func handlers(s *rpctest.Service, opts ...connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(unary, connect.NewUnaryHandler(unary, func(ctx context.Context, _ *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		return connect.NewResponse(&emptypb.Empty{}), s.Unary(ctx)
	}, opts...))
	mux.Handle(stream, connect.NewServerStreamHandler(stream,
		func(ctx context.Context, _ *connect.Request[emptypb.Empty], to *connect.ServerStream[emptypb.Empty]) error {
			return s.Stream(ctx, func() error { return to.Send(&emptypb.Empty{}) })
		}, opts...))
	return mux
}

// start serves over HTTP/2, and calls with the protocol that opts ask for.
func start(opts ...connect.ClientOption) func(testing.TB, *rpctest.Service, rpctest.Options, rpctest.Options) rpctest.Client {
	return func(t testing.TB, s *rpctest.Service, atServer, atClient rpctest.Options) rpctest.Client {
		srv := httptest.NewUnstartedServer(handlers(s, connect.WithInterceptors(around{s}, penstockconnect.Interceptor(options(atServer)...))))
		srv.EnableHTTP2 = true
		srv.StartTLS()
		t.Cleanup(srv.Close)
		opts := append(opts[:len(opts):len(opts)], connect.WithInterceptors(penstockconnect.Interceptor(options(atClient)...)))
		one := connect.NewClient[emptypb.Empty, emptypb.Empty](srv.Client(), srv.URL+unary, opts...)
		many := connect.NewClient[emptypb.Empty, emptypb.Empty](srv.Client(), srv.URL+stream, opts...)
		return rpctest.Client{
			Unary: func(ctx context.Context) error {
				_, err := one.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
				return err
			},
			Stream: func(ctx context.Context) (rpctest.Stream, error) {
				from, err := many.CallServerStream(ctx, connect.NewRequest(&emptypb.Empty{}))
				if err != nil {
					return rpctest.Stream{}, err
				}
				return rpctest.Stream{
					Recv: func() error {
						if from.Receive() {
							return nil
						}
						if err := from.Err(); err != nil {
							return err
						}
						return io.EOF
					},
					Leave: func() { _ = from.Close() },
				}, nil
			},
		}
	}
}

func reported(err error) rpctest.Report {
	is := rpctest.Report{Code: rpctest.Code(connect.CodeOf(err)), Text: connect.CodeOf(err).String()}
	of, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return is
	}
	is.Text = fmt.Sprint(of.Message(), of.Meta())
	for _, d := range of.Details() {
		v, err := d.Value()
		if err != nil {
			panic(err)
		}
		switch v := v.(type) {
		case *errdetails.ErrorInfo:
			is.Reason, is.Domain = v.Reason, v.Domain
		case *errdetails.RetryInfo:
			is.RetryDelay = v.RetryDelay.AsDuration()
		}
		is.Text += fmt.Sprint(v)
	}
	return is
}

func framework(opts ...connect.ClientOption) rpctest.Framework {
	return rpctest.Framework{Start: start(opts...), Unary: unary, Stream: stream, Reported: reported,
		Error: func(code rpctest.Code, text string) error {
			return connect.NewError(connect.Code(code), errors.New(text))
		}}
}

func TestCases(t *testing.T) {
	t.Run("connect", func(t *testing.T) { rpctest.Run(t, framework()) })
	t.Run("gRPC", func(t *testing.T) { rpctest.Run(t, framework(connect.WithGRPC())) })
	t.Run("gRPC-Web", func(t *testing.T) { rpctest.Run(t, framework(connect.WithGRPCWeb())) })
}
