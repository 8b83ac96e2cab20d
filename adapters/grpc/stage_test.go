package penstockgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

// The methods of the test service.
const (
	unaryCall  = "/grpc.testing.TestService/UnaryCall"
	outputCall = "/grpc.testing.TestService/StreamingOutputCall" // a stream of responses
	inputCall  = "/grpc.testing.TestService/StreamingInputCall"  // a stream of requests
	duplexCall = "/grpc.testing.TestService/FullDuplexCall"
)

// adapter is the adapter under test: ours, or a broken one.
type adapter struct {
	unaryServer  func(...penstockgrpc.Option) grpc.UnaryServerInterceptor
	streamServer func(...penstockgrpc.Option) grpc.StreamServerInterceptor
	unaryClient  func(...penstockgrpc.Option) grpc.UnaryClientInterceptor
	streamClient func(...penstockgrpc.Option) grpc.StreamClientInterceptor
}

var ours = adapter{
	penstockgrpc.UnaryServerInterceptor, penstockgrpc.StreamServerInterceptor,
	penstockgrpc.UnaryClientInterceptor, penstockgrpc.StreamClientInterceptor,
}

// testCase is one requirement for the adapter. Server and client each have their own guard.
type testCase struct {
	name                   string
	server, client         api.RuleSet
	serverOpts, clientOpts []penstockgrpc.Option
	dial                   []grpc.DialOption
	serve                  []grpc.ServerOption
	register               func(*grpc.Server)
	inside                 grpc.StreamClientInterceptor // below the adapter's
	attempt                func(*stage, int64)          // called for each attempt at the server, before its guard
	// The handlers of the two methods; nil means the default.
	unary  func(*stage, context.Context) error
	output func(*stage, grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error
	run    func(*stage) error
}

// stage is the setting of a case: a server on the loopback interface, and a client.
type stage struct {
	pb.UnimplementedTestServiceServer
	server, client *api.Guard
	clock          *clocks.Manual // shared by both guards
	conn           *grpc.ClientConn
	api            pb.TestServiceClient
	held, release  chan struct{} // used by hold
	attempts       atomic.Int64  // attempts that reached the server
	trailers       trailers      // received by the client
	stack          string        // of the last panic, taken where it was recovered
	patience       time.Duration // limit on the wait for an event that must come

	testCase *testCase
}

// check runs the case and returns an error that names what the adapter does wrong.
func (c *testCase) check(t *testing.T, patience time.Duration, change func(*stage, *adapter)) error {
	a := ours
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	s := &stage{clock: clock, held: make(chan struct{}), release: make(chan struct{}), testCase: c, patience: patience}
	guard := func(set api.RuleSet) *api.Guard {
		g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.LoadRules(set); err != nil {
			t.Fatal(err)
		}
		return g
	}
	s.server, s.client = guard(c.server), guard(c.client)
	defer s.server.Close()
	defer s.client.Close()
	change(s, &a)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	of := append([]penstockgrpc.Option{penstockgrpc.On(s.server)}, c.serverOpts...)
	server := grpc.NewServer(append(c.serve,
		grpc.ChainUnaryInterceptor(s.recoverUnary, a.unaryServer(of...)),
		grpc.ChainStreamInterceptor(s.recoverStream, a.streamServer(of...)))...)
	pb.RegisterTestServiceServer(server, s)
	if c.register != nil {
		c.register(server)
	}
	served := make(chan struct{})
	go func() {
		_ = server.Serve(listener)
		close(served)
	}()
	of = append([]penstockgrpc.Option{penstockgrpc.On(s.client)}, c.clientOpts...)
	streams := []grpc.StreamClientInterceptor{a.streamClient(of...)}
	if c.inside != nil {
		streams = append(streams, c.inside)
	}
	s.conn, err = grpc.NewClient(listener.Addr().String(), append(c.dial,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(a.unaryClient(of...)),
		grpc.WithStatsHandler(&s.trailers),
		grpc.WithChainStreamInterceptor(streams...))...)
	if err != nil {
		t.Fatal(err)
	}
	s.api = pb.NewTestServiceClient(s.conn)

	err = c.run(s)
	if err == nil {
		err = s.settled()
	}
	_ = s.conn.Close()
	server.Stop()
	<-served
	if err == nil {
		err = s.until("no goroutine of the adapter or of gRPC is left", func() bool { return strays() == "" })
	}
	return err
}

// settled waits until neither side has a call in flight.
func (s *stage) settled() error {
	return s.until("nothing is in flight", func() bool {
		for _, g := range []*api.Guard{s.server, s.client} {
			tree := g.Tree()
			if tree.Waiting != 0 {
				return false
			}
			for _, n := range tree.Resources {
				if n.InFlight != 0 {
					return false
				}
			}
		}
		return true
	})
}

// strays returns the stacks of goroutines of gRPC or the adapter, without those of tests.
func strays() (found string) {
	stacks := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		ours := strings.Contains(stack, "google.golang.org/grpc") || strings.Contains(stack, "adapters/grpc")
		if ours && !strings.Contains(stack, "testing.tRunner") && !strings.Contains(stack, "testing.(*M)") {
			found += stack + "\n\n"
		}
	}
	return found
}

func (s *stage) recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
	s.attempted()
	defer s.recovers(&err)
	return next(ctx, req)
}

func (s *stage) recoverStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	s.attempted()
	defer s.recovers(&err)
	return next(srv, ss)
}

func (s *stage) attempted() {
	n := s.attempts.Add(1)
	if f := s.testCase.attempt; f != nil {
		f(s, n)
	}
}

func (s *stage) recovers(err *error) {
	if p := recover(); p != nil {
		s.stack = string(debug.Stack())
		*err = status.Errorf(codes.Internal, "recovered: %v", p)
	}
}

func (s *stage) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if f := s.testCase.unary; f != nil {
		if err := f(s, ctx); err != nil {
			return nil, err
		}
	}
	return &pb.SimpleResponse{}, nil
}

func (s *stage) StreamingOutputCall(_ *pb.StreamingOutputCallRequest, to grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	if f := s.testCase.output; f != nil {
		return f(s, to)
	}
	for range 3 {
		if err := to.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) StreamingInputCall(from grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	for {
		if _, err := from.Recv(); errors.Is(err, io.EOF) {
			return from.SendAndClose(&pb.StreamingInputCallResponse{})
		} else if err != nil {
			return err
		}
	}
}

func (s *stage) FullDuplexCall(both grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	for {
		if _, err := both.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := both.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// hold reports that the handler runs, and waits until it is released or its caller disconnects.
func hold(s *stage, ctx context.Context) error {
	s.held <- struct{}{}
	select {
	case <-s.release:
		return nil
	case <-ctx.Done():
		return status.Error(codes.Internal, "as handlers say that fail for it")
	}
}

// call makes a unary call.
func (s *stage) call(opts ...grpc.CallOption) error { return s.callWith(context.Background(), opts...) }

func (s *stage) callWith(ctx context.Context, opts ...grpc.CallOption) error {
	_, err := s.api.UnaryCall(ctx, &pb.SimpleRequest{}, opts...)
	return err
}

// holding calls f while a unary call runs.
func (s *stage) holding(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- s.call() }()
	<-s.held
	err := f()
	s.release <- struct{}{}
	return errors.Join(err, <-done)
}

// waiting makes a call, ends it as soon as it waits for a rule, and returns its error.
func (s *stage) waiting(g *api.Guard, call func() error, end func()) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	err := s.until("the call waits", func() bool { return g.Tree().Waiting == 1 })
	end()
	return errors.Join(err, <-done)
}

// until waits for a condition.
func (s *stage) until(what string, ok func() bool) error {
	for end := time.Now().Add(s.patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("it never comes to pass that %s\nserver:\n%s\nclient:\n%s\n%s", what, text(s.server), text(s.client), strays())
		}
	}
	return nil
}

func text(g *api.Guard) string {
	var to strings.Builder
	_ = g.Tree().WriteText(&to)
	return to.String()
}

// figures are a resource's counts.
type figures struct{ pass, block, done, failed, long, inFlight int64 }

func of(g *api.Guard, resource string) (f figures) {
	if n, ok := g.Tree().Resource(resource); ok {
		c := n.Lifetime
		f = figures{c.Pass, c.Block, c.Complete, c.Exception, c.LongLived, n.InFlight}
	}
	return f
}

// counted waits until a resource has the counts of want.
func (s *stage) counted(g *api.Guard, resource string, want figures) error {
	if err := s.until(fmt.Sprintf("%s has counted %+v", resource, want), func() bool { return of(g, resource) == want }); err != nil {
		return fmt.Errorf("%+v: %w", of(g, resource), err)
	}
	return nil
}

// judged waits until the only breaker has counted that many calls and left out that many. Nodes
// count the end of a call earlier than the breaker does.
func (s *stage) judged(g *api.Guard, calls, neutral int64) error {
	return s.until(fmt.Sprintf("the breaker has counted %d calls, and left out %d", calls, neutral), func() bool {
		b := g.Breakers()[0]
		return b.Calls == calls && b.Neutral == neutral
	})
}

// is checks the code of an error.
func is(err error, want codes.Code) error {
	if got := status.Code(err); got != want {
		return fmt.Errorf("the code is %s, not %s: %w", got, want, err)
	}
	return nil
}

// pushback returns the trailer that says when to retry.
func pushback(md metadata.MD) string { return strings.Join(md.Get("grpc-retry-pushback-ms"), ",") }
