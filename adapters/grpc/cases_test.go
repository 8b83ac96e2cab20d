package penstockgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

const every = ".*"

var (
	once     = api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex, Threshold: 1, Interval: time.Hour}}}
	oneByOne = api.RuleSet{Isolation: []isolation.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex, Threshold: 1}}}
	queue    = api.RuleSet{Flow: []flow.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 1, Interval: time.Hour,
		Behavior: flow.Throttle, MaxWait: 2 * time.Hour}}}
	obeys = api.RuleSet{Upstream: []upstream.Rule{{ID: "obeys", Resource: every, Match: api.MatchRegex, Obey: true, MaxPause: 24 * time.Hour}}}
	// watched has a breaker for every resource, which never opens.
	watched   = api.RuleSet{Breaker: []breaker.Rule{{ID: "watched", Resource: every, Match: api.MatchRegex, Threshold: 1, MinCalls: 1000}}}
	oneNested = api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: "nested", Threshold: 1, Interval: time.Hour}}}
	// bucket knows to the millisecond when it admits the next call.
	bucket = api.RuleSet{Flow: []flow.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 1, Interval: time.Hour, Behavior: flow.TokenBucket}}}
	ann    = penstockgrpc.Origin(func(context.Context, string) string { return "ann" })
)

// byLevel has a rule that counts the calls of each level, and levels are the options that read it.
var (
	byLevel = api.RuleSet{Adaptive: []adaptive.Rule{{Resource: every, Match: api.MatchRegex, Shed: api.ShedLevels}}}
	levels  = penstockgrpc.Criticality(nethttp.TrustedHeader(nethttp.CriticalityHeader, netip.MustParsePrefix("127.0.0.0/8")), api.Critical)
)

// sendsLevels makes calls with levels, and compares how many calls of each level the server has judged.
func sendsLevels(want ...int64) func(*stage) error {
	return func(s *stage) error {
		for _, level := range []api.Level{api.CriticalPlus, api.Sheddable} {
			ctx := metadata.AppendToOutgoingContext(api.WithCriticality(context.Background(), level), "criticality", "sheddablePlus") // replaced
			if _, err := s.api.UnaryCall(ctx, &pb.SimpleRequest{}); err != nil {
				return err
			}
		}
		stream, err := s.api.StreamingOutputCall(api.WithCriticality(context.Background(), api.SheddablePlus), new(pb.StreamingOutputCallRequest))
		for err == nil {
			_, err = stream.Recv()
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		var got []int64
		for _, level := range s.server.RuleStats()[0].Details.(adaptive.Stats).Levels {
			got = append(got, level.Offered)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the levels are %v, not %v", got, want)
		}
		return nil
	}
}

// nest makes two nested calls and passes a refusal on through f.
func nest(f func(context.Context, error) error) func(*stage, context.Context) error {
	return func(s *stage, ctx context.Context) error {
		for range 2 {
			e, err := s.server.Entry(ctx, "nested")
			if err != nil {
				return f(ctx, err)
			}
			e.Exit()
		}
		return nil
	}
}

func panics() error { panic("as it says") }

// retries is a service config that makes clients retry refused calls.
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
	"backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "PERMISSION_DENIED"]}}]}`

// trailers records the pushbacks that a client receives.
type trailers struct {
	mu        sync.Mutex
	pushbacks []string
}

func (r *trailers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (r *trailers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r *trailers) HandleConn(context.Context, stats.ConnStats)                       {}
func (r *trailers) HandleRPC(_ context.Context, s stats.RPCStats) {
	in, ok := s.(*stats.InTrailer)
	if !ok {
		return
	}
	if ms := pushback(in.Trailer); ms != "" {
		r.mu.Lock()
		r.pushbacks = append(r.pushbacks, ms)
		r.mu.Unlock()
	}
}

// cases lists the requirements for the adapter. Each run builds them anew.
func cases() []testCase {
	late, later := make(chan struct{}), make(chan struct{}) // each closed when the deadline of its case has passed
	list := []testCase{
		{name: "a call that passes", run: func(s *stage) error {
			if err := s.call(); err != nil {
				return err
			}
			return errors.Join(s.counted(s.server, unaryCall, figures{pass: 1, done: 1}), s.counted(s.client, unaryCall, figures{pass: 1, done: 1}))
		}},

		{name: "a client sends levels, up to a bound", serverOpts: []penstockgrpc.Option{levels}, server: byLevel, run: sendsLevels(0, 1, 1, 1)},
		{name: "no level is read by default", server: byLevel, run: sendsLevels(0, 3, 0, 0)},
		{name: "a client obeys an answer that says when to come back", server: once, client: obeys, run: func(s *stage) error {
			if err := s.call(); err != nil {
				return err
			}
			if err := s.call(); status.Code(err) != codes.ResourceExhausted || api.KindOf(err) == api.KindUpstream {
				return fmt.Errorf("the second call: %w", err)
			}
			err := s.call()
			if block, ok := errors.AsType[*api.BlockError](err); !ok || block.Kind != api.KindUpstream {
				return fmt.Errorf("the third call: %w", err)
			} else if wait, known := block.RetryAfter(); !known || wait < time.Hour-time.Second {
				return fmt.Errorf("the pause lasts %v", wait)
			}
			return s.counted(s.client, unaryCall, figures{pass: 2, block: 1, done: 2, failed: 1})
		}},
		{name: "refused by flow", server: once, run: refuses(codes.ResourceExhausted, "FLOW_BLOCKED", true, "")},
		{name: "refused by a hotspot rule", server: api.RuleSet{Hotspot: []hotspot.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex,
			Param: "user", Threshold: 1, Interval: time.Hour}}},
			serverOpts: []penstockgrpc.Option{penstockgrpc.WithOptions(func(ctx context.Context, req any, method string) []api.Option {
				if _, ok := req.(*pb.SimpleRequest); !ok || method != unaryCall {
					panic(fmt.Sprintf("%T of %s", req, method))
				}
				return []api.Option{api.Param("user", "ann")}
			})}, run: refuses(codes.ResourceExhausted, "HOTSPOT_BLOCKED", true, "")},
		{name: "refused by a system rule", server: api.RuleSet{System: []system.Rule{{ID: "secret", Metric: system.QPS, Threshold: 1, Interval: time.Hour}}},
			run: refuses(codes.Unavailable, "SYSTEM_BLOCKED", true, "")},
		{name: "refused by authority", server: api.RuleSet{Authority: []authority.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex,
			List: authority.Deny, Origins: []string{"ann"}}}}, serverOpts: []penstockgrpc.Option{ann}, run: func(s *stage) error {
			var trailer metadata.MD
			err := s.call(grpc.Trailer(&trailer))
			return refused(err, trailer, codes.PermissionDenied, "AUTHORITY_BLOCKED", false, "-1")
		}},
		{name: "refused by a breaker", server: api.RuleSet{Breaker: []breaker.Rule{{ID: "secret", Resource: every, Match: api.MatchRegex,
			Threshold: 0.5, MinCalls: 1, Recovery: time.Hour}}},
			unary: func(*stage, context.Context) error { return errors.New("down") }, run: func(s *stage) error {
				if err := is(s.call(), codes.Unknown); err != nil {
					return err
				}
				if err := s.counted(s.server, unaryCall, figures{pass: 1, done: 1, failed: 1}); err != nil {
					return err
				}
				var trailer metadata.MD
				return refused(s.call(grpc.Trailer(&trailer)), trailer, codes.Unavailable, "BREAKER_BLOCKED", true, "")
			}},
		{name: "refused by isolation", server: oneByOne, unary: hold, run: func(s *stage) error {
			return s.holding(func() error {
				var trailer metadata.MD
				return refused(s.call(grpc.Trailer(&trailer)), trailer, codes.ResourceExhausted, "ISOLATION_BLOCKED", false, "")
			})
		}},
		{name: "a stream is refused", server: once, run: func(s *stage) error {
			for range 2 {
				stream, err := s.api.StreamingOutputCall(context.Background(), &pb.StreamingOutputCallRequest{})
				if err != nil {
					return err
				}
				if err := drain(stream); err != nil {
					return refused(err, stream.Trailer(), codes.ResourceExhausted, "FLOW_BLOCKED", true, "")
				}
			}
			return errors.New("no stream was refused")
		}},
		{name: "a call that waits until its deadline", server: queue, serve: []grpc.ServerOption{grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				return next(&deadline{ctx, late}, req)
			})}, run: func(s *stage) error {
			if err := s.call(); err != nil {
				return err
			}
			var trailer metadata.MD
			err := s.waiting(s.server, func() error { return s.call(grpc.Trailer(&trailer)) }, func() { close(late) })
			return refused(err, trailer, codes.DeadlineExceeded, "GAVE_UP_WAITING", false, "")
		}},
		{name: "a client that disconnects while it waits takes nothing", server: queue, run: func(s *stage) error {
			if err := s.call(); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			err := s.waiting(s.server, func() error { return s.callWith(ctx) }, cancel)
			return errors.Join(is(err, codes.Canceled), s.counted(s.server, unaryCall, figures{pass: 1, block: 1, done: 1}))
		}},
		{name: "a client waits before the call", client: queue, run: func(s *stage) error {
			if err := s.call(); err != nil {
				return err
			}
			err := s.waiting(s.client, func() error { return s.callWith(&deadline{context.Background(), later}) }, func() { close(later) })
			if !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("the error is %w", err)
			}
			return errors.Join(is(err, codes.DeadlineExceeded), s.counted(s.client, unaryCall, figures{pass: 1, block: 1, done: 1}),
				s.counted(s.server, unaryCall, figures{pass: 1, done: 1}))
		}},
		{name: "a call that can't be made", serverOpts: []penstockgrpc.Option{penstockgrpc.Resource(func(string) string { return strings.Repeat("x", 100_000) })},
			run: func(s *stage) error {
				var trailer metadata.MD
				err := s.call(grpc.Trailer(&trailer))
				if n := len(s.server.Tree().Resources); n != 0 {
					return fmt.Errorf("there are %d resources", n)
				}
				return refused(err, trailer, codes.Internal, "INVALID_CALL", false, "")
			}},
		{name: "a client with a retry policy waits the pushback", server: bucket, dial: []grpc.DialOption{grpc.WithDefaultServiceConfig(retries)},
			attempt: func(s *stage, n int64) {
				if n == 4 {
					s.clock.Advance(time.Second)
				}
			}, run: func(s *stage) error {
				if err := s.call(); err != nil {
					return err
				}
				s.clock.Advance(time.Hour - 300*time.Millisecond)
				began := time.Now()
				if err := s.call(); err != nil {
					return err
				}
				pushbacks := s.trailers.all()
				if len(pushbacks) != 2 || s.attempts.Load() != 4 {
					return fmt.Errorf("pushbacks %v, %d attempts", pushbacks, s.attempts.Load())
				}
				var wait time.Duration
				for _, ms := range pushbacks {
					n, err := strconv.Atoi(ms)
					if err != nil || n <= 0 {
						return fmt.Errorf("pushbacks %v", pushbacks)
					}
					wait += time.Duration(n) * time.Millisecond
				}
				if took := time.Since(began); took < wait {
					return fmt.Errorf("the client took %s, and should have waited %s", took, wait)
				}
				return nil
			}},
		{name: "a client with a retry policy does not try again what authority refuses", dial: []grpc.DialOption{grpc.WithDefaultServiceConfig(retries)},
			server:     api.RuleSet{Authority: []authority.Rule{{Resource: every, Match: api.MatchRegex, List: authority.Deny, Origins: []string{"ann"}}}},
			serverOpts: []penstockgrpc.Option{ann}, run: func(s *stage) error {
				if err := is(s.call(), codes.PermissionDenied); err != nil {
					return err
				}
				if n := s.attempts.Load(); n != 1 {
					return fmt.Errorf("%d attempts", n)
				}
				return nil
			}},
		{name: "streams can be retried", server: bucket, dial: []grpc.DialOption{grpc.WithDefaultServiceConfig(retries)},
			attempt: func(s *stage, n int64) {
				if n == 3 {
					s.clock.Advance(time.Second)
				}
			}, run: func(s *stage) error {
				for range 2 {
					stream, err := s.api.StreamingOutputCall(context.Background(), &pb.StreamingOutputCallRequest{})
					if err != nil {
						return err
					}
					if err := drain(stream); err != nil {
						return err
					}
					s.clock.Advance(time.Hour - 10*time.Millisecond)
				}
				if n := s.attempts.Load(); n != 3 {
					return fmt.Errorf("%d attempts, one of them refused, were to be made", n)
				}
				return s.counted(s.client, outputCall, figures{pass: 2, done: 2, long: 2})
			}},

		{name: "a panic is a failure, leaks nothing and keeps its stack", unary: func(*stage, context.Context) error { return panics() },
			run: func(s *stage) error {
				if err := is(s.call(), codes.Internal); err != nil {
					return err
				}
				if !strings.Contains(s.stack, "adapters/grpc_test.panics(") {
					return fmt.Errorf("the stack is\n%s", s.stack)
				}
				return s.counted(s.server, unaryCall, figures{pass: 1, done: 1, failed: 1})
			}},
		{name: "a panic of a stream is a failure, leaks nothing and keeps its stack",
			output: func(*stage, grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error { return panics() }, run: func(s *stage) error {
				stream, err := s.api.StreamingOutputCall(context.Background(), &pb.StreamingOutputCallRequest{})
				if err != nil {
					return err
				}
				if err := is(drain(stream), codes.Internal); err != nil {
					return err
				}
				if !strings.Contains(s.stack, "adapters/grpc_test.panics(") {
					return fmt.Errorf("the stack is\n%s", s.stack)
				}
				return s.counted(s.server, outputCall, figures{pass: 1, done: 1, failed: 1, long: 1})
			}},
		{name: "the user decides what a failure is", unary: func(*stage, context.Context) error { return status.Error(codes.NotFound, "") },
			serverOpts: []penstockgrpc.Option{penstockgrpc.Failure(func(err error) bool { return status.Code(err) == codes.NotFound })},
			clientOpts: []penstockgrpc.Option{penstockgrpc.FailureCodes(codes.NotFound)}, run: outcome(codes.NotFound, 1, 1)},
		{name: "ResourceExhausted need not be a failure", unary: func(*stage, context.Context) error { return status.Error(codes.ResourceExhausted, "") },
			clientOpts: []penstockgrpc.Option{penstockgrpc.FailureCodes(codes.Unavailable)}, run: outcome(codes.ResourceExhausted, 0, 0)},
		{name: "a deadline error is a failure", unary: func(*stage, context.Context) error { return fmt.Errorf("query: %w", context.DeadlineExceeded) },
			run: outcome(codes.DeadlineExceeded, 1, 1)},
		{name: "a cancellation error is not a failure", unary: func(*stage, context.Context) error { return fmt.Errorf("query: %w", context.Canceled) },
			run: outcome(codes.Canceled, 0, 0)},
		{name: "a status around a cancel keeps its code", unary: func(*stage, context.Context) error {
			return errors.Join(status.Error(codes.Internal, ""), context.Canceled)
		}, run: outcome(codes.Internal, 1, 1)},
		{name: "a client that disconnects while the handler runs is not a failure", server: watched, client: watched, unary: hold, run: func(s *stage) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- s.callWith(ctx) }()
			<-s.held
			cancel()
			return errors.Join(is(<-done, codes.Canceled), s.counted(s.server, unaryCall, figures{pass: 1, done: 1}),
				s.counted(s.client, unaryCall, figures{pass: 1, done: 1}), s.judged(s.server, 0, 1), s.judged(s.client, 0, 1))
		}},
		{name: "a stream that its client ends has done well once it has sent something", server: watched, client: watched,
			output: func(s *stage, to grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
				if err := to.Send(&pb.StreamingOutputCallResponse{}); err != nil {
					return err
				}
				return hold(s, to.Context())
			},
			run: func(s *stage) error {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				stream, err := s.api.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{})
				if err != nil {
					return err
				}
				if _, err := stream.Recv(); err != nil {
					return err
				}
				<-s.held
				cancel()
				return errors.Join(is(drain(stream), codes.Canceled), s.counted(s.server, outputCall, figures{pass: 1, done: 1, long: 1}),
					s.counted(s.client, outputCall, figures{pass: 1, done: 1, long: 1}), s.judged(s.server, 1, 0), s.judged(s.client, 1, 0))
			}},

		{name: "a nested refusal is reported, and is not a failure", server: oneNested,
			unary: nest(func(_ context.Context, err error) error { return err }), run: nested(true)},
		{name: "a wrapped nested refusal is reported, and no failure", server: oneNested,
			unary: nest(func(_ context.Context, err error) error { return fmt.Errorf("billing: %w", err) }), run: nested(true)},
		{name: "a nested refusal that the handler reports as Unavailable is not a failure", server: oneNested,
			unary: nest(func(ctx context.Context, err error) error {
				refusal.Tell(ctx, err)
				return status.Error(codes.Unavailable, "come back")
			}), run: func(s *stage) error {
				return errors.Join(is(s.call(), codes.Unavailable), s.counted(s.server, unaryCall, figures{pass: 1, done: 1}))
			}},
		{name: "a nested refusal by a client's interceptor is reported, and no failure", client: api.RuleSet{Flow: []flow.Rule{{ID: "secret",
			Resource: outputCall, Threshold: 0}}}, unary: func(s *stage, ctx context.Context) error {
			_, err := s.api.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{})
			return fmt.Errorf("billing: %w", err)
		}, run: nested(false)},
		{name: "a nested refusal below two interceptors is reported once, and no failure", server: oneNested,
			unary: nest(func(_ context.Context, err error) error { return err }),
			serve: []grpc.ServerOption{grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				return penstockgrpc.UnaryServerInterceptor(penstockgrpc.On(outer), penstockgrpc.Resource(func(string) string { return "outer" }))(ctx, req, info, next)
			})}, run: func(s *stage) error {
				before := of(outer, "outer")
				if err := nested(true)(s); err != nil {
					return err
				}
				if after := of(outer, "outer"); after.failed != before.failed || after.done != before.done+1 {
					return fmt.Errorf("the outer one has counted %+v", after)
				}
				return nil
			}},
		{name: "nested calls are counted below the call", unary: nest(nil),
			serverOpts: []penstockgrpc.Option{ann, penstockgrpc.Context("grpc")}, run: func(s *stage) error {
				if err := s.call(); err != nil {
					return err
				}
				return s.below(unaryCall)
			}},
		{name: "nested calls of a stream are counted below it", serverOpts: []penstockgrpc.Option{ann, penstockgrpc.Context("grpc")},
			output: func(s *stage, to grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
				return nest(nil)(s, to.Context())
			},
			run: func(s *stage) error {
				stream, err := s.api.StreamingOutputCall(context.Background(), &pb.StreamingOutputCallRequest{})
				if err != nil {
					return err
				}
				return errors.Join(drain(stream), s.below(outputCall))
			}},

		{name: "methods that clients make up are one resource", serve: []grpc.ServerOption{grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			return status.Error(codes.Unimplemented, "")
		})}, clientOpts: unguarded, run: func(s *stage) error {
			for n := range 500 {
				if err := is(s.conn.Invoke(context.Background(), fmt.Sprintf("/made.Up/M%d", n), &pb.Empty{}, &pb.Empty{}), codes.Unimplemented); err != nil {
					return err
				}
			}
			if n := len(s.server.Tree().Resources); n != 1 {
				return fmt.Errorf("there are %d resources", n)
			}
			return s.counted(s.server, penstockgrpc.Unknown, figures{pass: 500, done: 500, long: 500})
		}},
		{name: "methods that look like health checks are guarded", serve: []grpc.ServerOption{grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			return status.Error(codes.Unimplemented, "")
		})}, clientOpts: unguarded, run: func(s *stage) error {
			made := []string{
				"/grpc.health.v9.Made/Up", "/grpc.health.v1.Health/Made", "/grpc.health.v1.HealthX/Check", "/grpc.health.v1.Health/Check/",
				"/grpc.health.v1.Health/check", "/grpc.health./Check", "/grpc.health.v1.Health//Check", "/grpc.reflection.v1.Made/Up",
				"/grpc.reflection.v2.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfos",
			}
			for _, method := range made {
				if err := is(s.conn.Invoke(context.Background(), method, &pb.Empty{}, &pb.Empty{}), codes.Unimplemented); err != nil {
					return fmt.Errorf("%s: %w", method, err)
				}
			}
			n := int64(len(made))
			return s.counted(s.server, penstockgrpc.Unknown, figures{pass: n, done: n, long: n})
		}},
		{name: "health is not guarded", server: once, register: func(to *grpc.Server) { healthpb.RegisterHealthServer(to, health.NewServer()) },
			run: func(s *stage) error {
				for range 3 {
					if _, err := healthpb.NewHealthClient(s.conn).Check(context.Background(), &healthpb.HealthCheckRequest{}); err != nil {
						return err
					}
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					watch, err := healthpb.NewHealthClient(s.conn).Watch(ctx, &healthpb.HealthCheckRequest{})
					if err != nil {
						return err
					}
					if _, err := watch.Recv(); err != nil {
						return err
					}
				}
				return nil
			}},
		{name: "a resource of no name is not guarded", server: once, serverOpts: unguarded, clientOpts: unguarded, run: func(s *stage) error {
			return errors.Join(s.call(), s.call(), s.call())
		}},

		{name: "a stream is one call until its end", server: oneByOne,
			output: func(s *stage, to grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
				return hold(s, to.Context())
			},
			run: func(s *stage) error {
				stream, err := s.api.StreamingOutputCall(context.Background(), &pb.StreamingOutputCallRequest{})
				if err != nil {
					return err
				}
				<-s.held
				for _, g := range []*api.Guard{s.server, s.client} {
					if f := of(g, outputCall); f.inFlight != 1 || f.done != 0 {
						return fmt.Errorf("counted %+v", f)
					}
				}
				second, err := s.api.StreamingOutputCall(context.Background(), &pb.StreamingOutputCallRequest{})
				if err != nil {
					return err
				}
				if err := refused(drain(second), second.Trailer(), codes.ResourceExhausted, "ISOLATION_BLOCKED", false, ""); err != nil {
					return err
				}
				s.release <- struct{}{}
				return errors.Join(drain(stream), s.counted(s.server, outputCall, figures{pass: 1, block: 1, done: 1, long: 1}))
			}},

		{name: "a client's refusal is a status and a BlockError", client: once, run: func(s *stage) error {
			if err := s.call(); err != nil {
				return err
			}
			_, opening := s.api.StreamingInputCall(context.Background())
			if opening != nil {
				return opening
			}
			_, opening = s.api.StreamingInputCall(context.Background())
			for _, err := range []error{s.call(), opening} {
				block, ok := errors.AsType[*api.BlockError](err)
				if !ok || block.Rule != "secret" || !errors.Is(err, api.ErrBlocked) {
					return fmt.Errorf("the error is %w", err)
				}
				if err := refused(err, nil, codes.ResourceExhausted, "FLOW_BLOCKED", true, "none"); err != nil {
					return err
				}
			}
			if n := s.attempts.Load(); n > 2 {
				return fmt.Errorf("%d calls came to the server", n)
			}
			_ = s.conn.Close() // ends the stream that nobody reads
			return s.counted(s.client, unaryCall, figures{pass: 1, block: 1, done: 1})
		}},
	}
	return slices.Concat(list, ends(), codesCases(), costs())
}

// codesCases returns one case for each code that a handler may return.
func codesCases() (list []testCase) {
	failures := map[codes.Code]int64{codes.Unknown: 1, codes.DeadlineExceeded: 1, codes.Internal: 1, codes.Unavailable: 1, codes.DataLoss: 1}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		client := failures[code]
		if code == codes.ResourceExhausted {
			client = 1
		}
		list = append(list, testCase{name: "the code " + code.String(),
			unary: func(*stage, context.Context) error { return status.Error(code, "") },
			run:   outcome(code, failures[code], client)})
	}
	return list
}

// ends are the ends of a client's stream; see docs/adapters/conformance.md.
func ends() []testCase {
	failing := func(*stage, grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
		return status.Error(codes.DataLoss, "")
	}
	holding := func(s *stage, to grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
		<-to.Context().Done()
		return to.Context().Err()
	}
	open := func(s *stage, ctx context.Context, opts ...grpc.CallOption) (grpc.ServerStreamingClient[pb.StreamingOutputCallResponse], error) {
		return s.api.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{}, opts...)
	}
	ok, failed := figures{pass: 1, done: 1, long: 1}, figures{pass: 1, done: 1, failed: 1, long: 1}
	return []testCase{
		{name: "a client's stream ends at io.EOF", run: func(s *stage) error {
			stream, err := open(s, context.Background())
			if err != nil {
				return err
			}
			return errors.Join(drain(stream), s.counted(s.client, outputCall, ok))
		}},
		{name: "a client's stream ends at an error of RecvMsg", output: failing, run: func(s *stage) error {
			stream, err := open(s, context.Background())
			if err != nil {
				return err
			}
			return errors.Join(is(drain(stream), codes.DataLoss), s.counted(s.client, outputCall, failed))
		}},
		{name: "a client's stream ends at its one response, not at CloseSend", run: func(s *stage) error {
			stream, err := s.api.StreamingInputCall(context.Background())
			if err != nil {
				return err
			}
			if err := errors.Join(stream.Send(&pb.StreamingInputCallRequest{}), stream.CloseSend()); err != nil {
				return err
			}
			if f := of(s.client, inputCall); f.inFlight != 1 {
				return fmt.Errorf("counted %+v", f)
			}
			return errors.Join(stream.RecvMsg(&pb.StreamingInputCallResponse{}), s.counted(s.client, inputCall, ok))
		}},
		{name: "a client's stream ends where there is no header", output: failing, run: func(s *stage) error {
			stream, err := open(s, context.Background())
			if err != nil {
				return err
			}
			if md, err := stream.Header(); md != nil || err != nil {
				return fmt.Errorf("the header is %v, %w", md, err)
			}
			return s.counted(s.client, outputCall, failed)
		}},
		{name: "a client's stream goes on after its header", run: func(s *stage) error {
			stream, err := s.api.FullDuplexCall(context.Background())
			if err != nil {
				return err
			}
			if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
				return err
			}
			if md, err := stream.Header(); md == nil || err != nil {
				return fmt.Errorf("the header is %v, %w", md, err)
			}
			if f := of(s.client, duplexCall); f.inFlight != 1 {
				return fmt.Errorf("counted %+v", f)
			}
			return errors.Join(stream.CloseSend(), drain(stream), s.counted(s.client, duplexCall, ok))
		}},
		{name: "a client's stream ends at an error of SendMsg", run: func(s *stage) error {
			stream, err := s.api.FullDuplexCall(context.Background(), grpc.MaxCallSendMsgSize(1))
			if err != nil {
				return err
			}
			err = stream.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: make([]byte, 10)}})
			return errors.Join(is(err, codes.ResourceExhausted), s.counted(s.client, duplexCall, failed))
		}},
		{name: "a client's stream does not end at io.EOF of SendMsg, but at what RecvMsg says then", run: func(s *stage) error {
			stream, err := s.api.HalfDuplexCall(context.Background()) // unimplemented
			if err != nil {
				return err
			}
			if err := s.until("the server has answered", func() bool { err = stream.Send(&pb.StreamingOutputCallRequest{}); return err != nil }); err != nil {
				return err
			}
			const halfDuplex = "/grpc.testing.TestService/HalfDuplexCall"
			if f := of(s.client, halfDuplex); !errors.Is(err, io.EOF) || f.inFlight != 1 {
				return fmt.Errorf("%w: counted %+v", err, f)
			}
			return errors.Join(is(drain(stream), codes.Unimplemented), s.counted(s.client, halfDuplex, ok))
		}},
		{name: "a client's stream ends with its context, even if nobody reads it", output: holding, run: func(s *stage) error {
			ctx, cancel := context.WithCancel(context.Background())
			if _, err := open(s, ctx); err != nil {
				cancel()
				return err
			}
			cancel()
			return s.counted(s.client, outputCall, ok)
		}},
		{name: "a client's stream ends with its deadline, even if nobody reads it", output: holding, run: func(s *stage) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			late := &deadline{Context: ctx, done: make(chan struct{})}
			if _, err := open(s, late); err != nil {
				return err
			}
			close(late.done)
			return s.counted(s.client, outputCall, failed)
		}},
		{name: "a client's stream ends with the time that the service config allows, even if nobody reads it", output: holding,
			dial: []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "timeout": "0.05s"}]}`)}, run: func(s *stage) error {
				if _, err := open(s, context.Background()); err != nil && status.Code(err) != codes.DeadlineExceeded {
					return err
				}
				return s.counted(s.client, outputCall, failed)
			}},
		{name: "a client's stream ends with its connection, even if nobody reads it", output: holding, run: func(s *stage) error {
			if _, err := open(s, context.Background()); err != nil {
				return err
			}
			return errors.Join(s.conn.Close(), s.counted(s.client, outputCall, ok))
		}},
		{name: "a client's stream that can't be opened leaks nothing", run: func(s *stage) error {
			if err := s.conn.Close(); err != nil {
				return err
			}
			if _, err := open(s, context.Background()); err == nil {
				return errors.New("it was opened")
			}
			return s.counted(s.client, outputCall, ok)
		}},
		{name: "a client's stream that panics when it is opened leaks nothing", inside: func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
			panic("as it says")
		},
			run: func(s *stage) (err error) {
				defer func() {
					if recover() == nil {
						err = errors.New("it doesn't panic")
						return
					}
					err = s.counted(s.client, outputCall, failed)
				}()
				_, _ = open(s, context.Background())
				return nil
			}},
		{name: "a context that goes on forgets a stream that has ended", run: func(s *stage) error {
			ctx := &counting{Context: context.Background(), done: make(chan struct{})}
			for range 10 {
				stream, err := open(s, ctx)
				if err != nil {
					return err
				}
				if err := drain(stream); err != nil {
					return err
				}
			}
			if ctx.asked.Load() < 10 {
				return errors.New("nobody asked the context")
			}
			return s.until("nobody waits for the context", func() bool { return ctx.waiting.Load() == 0 })
		}},
	}
}

// unguarded lets all calls pass.
var unguarded = []penstockgrpc.Option{penstockgrpc.Resource(func(string) string { return "" })}

// outer is the guard of an interceptor around the one under test.
var outer = api.Default()

// all returns the pushbacks that the client received.
func (r *trailers) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pushbacks
}

// deadline is a context whose deadline passes when done is closed.
type deadline struct {
	context.Context
	done chan struct{}
}

func (d *deadline) Done() <-chan struct{} { return d.done }

func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// counting is a context that counts who waits for its end.
type counting struct {
	context.Context
	done           chan struct{}
	asked, waiting atomic.Int64
}

func (c *counting) Done() <-chan struct{} { return c.done }

func (c *counting) AfterFunc(func()) (stop func() bool) {
	c.asked.Add(1)
	c.waiting.Add(1)
	var stopped atomic.Bool
	return func() bool {
		if stopped.Swap(true) {
			return false
		}
		c.waiting.Add(-1)
		return true
	}
}

// drain reads a stream to its end; for io.EOF it returns nil.
func drain[T any](stream interface{ Recv() (T, error) }) error {
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// refuses checks the refusal of a second unary call.
func refuses(code codes.Code, reason string, retry bool, push string) func(*stage) error {
	return func(s *stage) error {
		if err := s.call(); err != nil {
			return err
		}
		var trailer metadata.MD
		if err := refused(s.call(grpc.Trailer(&trailer)), trailer, code, reason, retry, push); err != nil {
			return err
		}
		return s.counted(s.server, unaryCall, figures{pass: 1, block: 1, done: 1})
	}
}

// refused checks a refusal's error. push is the pushback; "" means that it must match RetryInfo, if
// there is one.
func refused(err error, trailer metadata.MD, code codes.Code, reason string, retry bool, push string) error {
	if err := is(err, code); err != nil {
		return err
	}
	st := status.Convert(err)
	var info *errdetails.ErrorInfo
	var delay *errdetails.RetryInfo
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.RetryInfo:
			delay = d
		}
	}
	if info == nil || info.Reason != reason || info.Domain != refusal.Domain {
		return fmt.Errorf("the details have %v", info)
	}
	if (delay != nil && delay.RetryDelay.AsDuration() > 0) != retry {
		return fmt.Errorf("the details have %v", delay)
	}
	if strings.Contains(st.Proto().String(), "secret") {
		return fmt.Errorf("the status names the rule: %v", st)
	}
	if push == "none" {
		return nil
	}
	if push == "" && retry {
		push = strconv.FormatInt(delay.RetryDelay.AsDuration().Milliseconds(), 10)
	}
	if got := pushback(trailer); got != push {
		return fmt.Errorf("the pushback is %q, not %q", got, push)
	}
	return nil
}

// outcome checks how a call with that code is counted.
func outcome(code codes.Code, server, client int64) func(*stage) error {
	return func(s *stage) error {
		if err := is(s.call(), code); err != nil {
			return err
		}
		return errors.Join(s.counted(s.server, unaryCall, figures{pass: 1, done: 1, failed: server}),
			s.counted(s.client, unaryCall, figures{pass: 1, done: 1, failed: client}))
	}
}

// nested checks a call whose handler responds with the refusal of a nested call.
func nested(retry bool) func(*stage) error {
	return func(s *stage) error {
		var trailer metadata.MD
		err := s.call(grpc.Trailer(&trailer))
		if err := refused(err, trailer, codes.ResourceExhausted, "FLOW_BLOCKED", retry, ""); err != nil {
			return err
		}
		return s.counted(s.server, unaryCall, figures{pass: 1, done: 1})
	}
}

// below checks that a nested call is counted below a resource in the context grpc, with the origin
// ann.
func (s *stage) below(resource string) error {
	tree := s.server.Tree()
	entrance, ok := tree.Entrance("grpc")
	if !ok || len(entrance.Children) != 1 || entrance.Children[0].Name != resource ||
		len(entrance.Children[0].Children) != 1 || entrance.Children[0].Children[0].Name != "nested" {
		return fmt.Errorf("the tree is\n%s", text(s.server))
	}
	if n, ok := tree.Origin("nested", "ann"); !ok || n.Lifetime.Pass != 2 {
		return fmt.Errorf("the nested call is not counted for ann:\n%s", text(s.server))
	}
	return nil
}

func TestCases(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			if err := c.check(t, patience.Of(t), func(*stage, *adapter) {}); err != nil {
				t.Error(err)
			}
		})
	}
}
