package penstockkratos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"testing"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	httpstatus "github.com/go-kratos/kratos/v2/transport/http/status"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/penstock-go/penstock/adapters/internal/rpctest"
	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

const unary = "/test.v1.Service/Unary"

func options(o rpctest.Options) (opts []penstockkratos.Option) {
	opts = append(opts, penstockkratos.On(o.Guard), penstockkratos.Context(o.Context))
	if o.Origin != "" {
		opts = append(opts, penstockkratos.Origin(func(context.Context, transport.Transporter) string { return o.Origin }))
	}
	if o.User != "" {
		opts = append(opts, penstockkratos.WithOptions(func(_ context.Context, t transport.Transporter, req any) []api.Option {
			if _, ok := req.(*emptypb.Empty); !ok || t.Operation() != unary {
				panic(fmt.Sprintf("%T of %s", req, t.Operation()))
			}
			return []api.Option{api.Param("user", o.User)}
		}))
	}
	if o.Cost > 0 {
		opts = append(opts, penstockkratos.RefundOnError("tokens"),
			penstockkratos.Cost("tokens", func(context.Context, transport.Transporter, any) int64 { return o.Cost }))
	}
	if o.Levels {
		opts = append(opts, penstockkratos.Criticality(nethttp.TrustedHeader(nethttp.CriticalityHeader, netip.MustParsePrefix("127.0.0.0/8")), o.AtMost))
	}
	if o.Resource != nil {
		opts = append(opts, penstockkratos.Resource(o.Resource))
	}
	if o.FailureCodes != nil {
		set := make([]codes.Code, len(o.FailureCodes))
		for i, c := range o.FailureCodes {
			set[i] = codes.Code(c)
		}
		opts = append(opts, penstockkratos.FailureCodes(set...))
	}
	if o.Failure != nil {
		opts = append(opts, penstockkratos.Failure(o.Failure))
	}
	return opts
}

// around is a middleware around the one under test.
func around(s *rpctest.Service) middleware.Middleware {
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, req any) (_ any, err error) {
			defer func() {
				if p := recover(); p != nil {
					s.Recovered()
					err = kerrors.InternalServer("", fmt.Sprint("recovered: ", p))
				}
			}()
			return next(s.Around(ctx), req)
		}
	}
}

func listen(t testing.TB) net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// run runs a server until the test ends.
func run(t testing.TB, s transport.Server) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Start(context.Background())
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // closes what is still open
		_ = s.Stop(ctx)
		<-ended
	})
}

// startGRPC serves over gRPC.
func startGRPC(t testing.TB, s *rpctest.Service, atServer, atClient rpctest.Options) rpctest.Client {
	listener := listen(t)
	srv := kgrpc.NewServer(kgrpc.Listener(listener), kgrpc.Timeout(0),
		kgrpc.Middleware(around(s), penstockkratos.Server(options(atServer)...)))
	srv.RegisterService(&grpc.ServiceDesc{ServiceName: "test.v1.Service", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Unary",
		Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			in := new(emptypb.Empty)
			if err := decode(in); err != nil {
				return nil, err
			}
			return interceptor(ctx, in, &grpc.UnaryServerInfo{FullMethod: unary}, func(ctx context.Context, _ any) (any, error) {
				return &emptypb.Empty{}, s.Unary(ctx)
			})
		},
	}}}, nil)
	run(t, srv)
	conn, err := kgrpc.DialInsecure(context.Background(), kgrpc.WithEndpoint(listener.Addr().String()), kgrpc.WithTimeout(0),
		kgrpc.WithMiddleware(penstockkratos.Client(options(atClient)...)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return rpctest.Client{Unary: func(ctx context.Context) error { return conn.Invoke(ctx, unary, &emptypb.Empty{}, &emptypb.Empty{}) }}
}

func reportOverGRPC(err error) rpctest.Report {
	s := status.Convert(err)
	is := rpctest.Report{Code: rpctest.Code(s.Code()), Text: s.Proto().String()}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			is.Reason, is.Domain = d.Reason, d.Domain
		case *errdetails.RetryInfo:
			is.RetryDelay = d.RetryDelay.AsDuration()
		}
	}
	return is
}

// answered is an error with its response's headers.
type answered struct {
	error
	header http.Header
}

func (a *answered) Unwrap() error { return a.error }

// serveHTTP serves the routes of add over HTTP, without a timeout.
func serveHTTP(t testing.TB, add func(*khttp.Server), opts ...khttp.ServerOption) (address string) {
	listener := listen(t)
	srv := khttp.NewServer(append(opts, khttp.Listener(listener), khttp.Timeout(0))...)
	add(srv)
	run(t, srv)
	return listener.Addr().String()
}

// dialHTTP returns an HTTP client.
func dialHTTP(t testing.TB, address string, opts ...penstockkratos.Option) *khttp.Client {
	through := &http.Transport{}
	t.Cleanup(through.CloseIdleConnections)
	client, err := khttp.NewClient(context.Background(), khttp.WithEndpoint(address), khttp.WithTimeout(0), khttp.WithTransport(through),
		khttp.WithMiddleware(penstockkratos.Client(opts...)), khttp.WithErrorDecoder(func(ctx context.Context, resp *http.Response) error {
			if err := khttp.DefaultErrorDecoder(ctx, resp); err != nil {
				return &answered{err, resp.Header}
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// startHTTP serves over HTTP, as generated code does.
func startHTTP(t testing.TB, s *rpctest.Service, atServer, atClient rpctest.Options) rpctest.Client {
	client := dialHTTP(t, serveHTTP(t, func(srv *khttp.Server) {
		srv.Route("/").POST("/unary", func(c khttp.Context) error {
			khttp.SetOperation(c, unary)
			out, err := c.Middleware(func(ctx context.Context, _ any) (any, error) {
				return &emptypb.Empty{}, s.Unary(ctx)
			})(c, &emptypb.Empty{})
			if err != nil {
				return err
			}
			return c.Result(http.StatusOK, out)
		})
	}, khttp.Middleware(around(s), penstockkratos.Server(options(atServer)...))), options(atClient)...)
	return rpctest.Client{Unary: func(ctx context.Context) error {
		return client.Invoke(ctx, http.MethodPost, "/unary", nil, &emptypb.Empty{}, khttp.Operation(unary), khttp.PathTemplate("/unary"))
	}}
}

// reportOverHTTP reads what HTTP can report: gRPC's codes Unknown and Internal are both 500, and a
// call that gave up waiting is 503. There is no domain.
func reportOverHTTP(err error) rpctest.Report {
	e := kerrors.FromError(err)
	is := rpctest.Report{Code: rpctest.Code(httpstatus.ToGRPCCode(int(e.Code))), Reason: e.Reason, Text: e.Error()}
	if e.Reason != "" {
		is.Domain = "penstock"
	}
	if a, ok := errors.AsType[*answered](err); ok {
		seconds, _ := strconv.Atoi(a.header.Get("Retry-After"))
		is.RetryDelay = time.Duration(seconds) * time.Second
	}
	switch {
	case e.Reason == "GAVE_UP_WAITING" && e.Code == http.StatusServiceUnavailable:
		is.Code = rpctest.DeadlineExceeded
	case e.Reason == "" && errors.Is(err, context.Canceled):
		is.Code = rpctest.Canceled
	case e.Reason == "" && e.Code == http.StatusInternalServerError:
		is.Code = rpctest.Unknown
	}
	return is
}

func framework(start func(testing.TB, *rpctest.Service, rpctest.Options, rpctest.Options) rpctest.Client,
	reported func(error) rpctest.Report, lacks map[string]string) rpctest.Framework {
	for _, c := range rpctest.Cases() {
		if c.OfStream {
			lacks[c.Name] = "kratos asks its middleware once for each message of a stream"
		}
	}
	return rpctest.Framework{Start: start, Unary: unary, Reported: reported, Without: lacks}
}

func TestGRPC(t *testing.T) {
	f := framework(startGRPC, reportOverGRPC, map[string]string{})
	f.Error = func(code rpctest.Code, text string) error { return status.Error(codes.Code(code), text) }
	rpctest.Run(t, f)
}

func TestHTTP(t *testing.T) {
	const none = "HTTP has no status for it"
	f := framework(startHTTP, reportOverHTTP, map[string]string{
		"the code 6": none, "the code 9": none, "the code 11": none, "the code 13": none, "the code 15": none,
		"a deadline error is a failure": none, "a cancellation error is not a failure": none,
	})
	f.Error = func(code rpctest.Code, text string) error {
		return kerrors.New(httpstatus.FromGRPCCode(codes.Code(code)), "", text)
	}
	rpctest.Run(t, f)
}
