package penstockgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// tokens makes a call cost that many tokens, and give them back if it fails.
func tokens(n int64) []penstockgrpc.Option {
	return []penstockgrpc.Option{
		penstockgrpc.RefundOnError("tokens"),
		penstockgrpc.Cost("tokens", func(_ context.Context, req any, method string) int64 {
			if _, unary := req.(*pb.SimpleRequest); unary != (method == unaryCall) {
				panic(fmt.Sprintf("%T of %s", req, method))
			}
			return n
		}),
		penstockgrpc.Cost("rows", func(context.Context, any, string) int64 { return 0 }),
	}
}

// costs are cases of calls that cost 300 tokens at the server, and 200 at the client.
func costs() []testCase {
	notFound := func() error { return status.Error(codes.NotFound, "") }
	streamed := func(f func(to grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error) func(*stage, grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
		return func(_ *stage, to grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error { return f(to) }
	}
	streams := func(want codes.Code, atServer, atClient int64) func(*stage) error {
		return func(s *stage) error {
			stream, err := s.api.StreamingOutputCall(context.Background(), &pb.StreamingOutputCallRequest{})
			if err != nil {
				return err
			}
			return errors.Join(is(drain(stream), want), s.used(s.server, outputCall, atServer), s.used(s.client, outputCall, atClient))
		}
	}
	calls := func(want codes.Code, atServer, atClient int64) func(*stage) error {
		return func(s *stage) error {
			return errors.Join(is(s.call(), want), s.used(s.server, unaryCall, atServer), s.used(s.client, unaryCall, atClient))
		}
	}
	list := []testCase{
		{name: "a call keeps its estimate", run: calls(codes.OK, 300, 200)},
		{name: "a call settles what it has used", unary: func(_ *stage, ctx context.Context) error {
			api.FromContext(ctx).Settle("tokens", 50)
			return nil
		}, run: calls(codes.OK, 50, 200)},
		{name: "a call that fails gives back what it reserved", unary: func(*stage, context.Context) error { return notFound() },
			run: calls(codes.NotFound, 0, 0)},
		{name: "a call that fails keeps what it settled", unary: func(_ *stage, ctx context.Context) error {
			api.FromContext(ctx).Settle("tokens", 50)
			return notFound()
		}, run: calls(codes.NotFound, 50, 0)},
		{name: "a call that panics gives back what it reserved", unary: func(*stage, context.Context) error { return panics() },
			run: calls(codes.Internal, 0, 0)},
		{name: "a call whose client disconnects keeps its estimate", unary: hold, run: func(s *stage) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- s.callWith(ctx) }()
			<-s.held
			cancel()
			return errors.Join(is(<-done, codes.Canceled), s.used(s.server, unaryCall, 300), s.used(s.client, unaryCall, 200))
		}},
		{name: "a stream asks for more and settles", output: streamed(func(to grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
			e := api.FromContext(to.Context())
			if err := e.More(to.Context(), "tokens", 701); !errors.Is(err, api.ErrBlocked) {
				return fmt.Errorf("701 more: %w", err)
			}
			if err := e.More(to.Context(), "tokens", 600); err != nil {
				return err
			}
			e.Settle("tokens", 850)
			return to.Send(&pb.StreamingOutputCallResponse{})
		}), run: streams(codes.OK, 850, 200)},
		{name: "a stream that fails before its first message gives back what it reserved",
			output: streamed(func(grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error { return notFound() }),
			run:    streams(codes.NotFound, 0, 0)},
		{name: "a stream that fails after a message keeps its estimate",
			output: streamed(func(to grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
				if err := to.Send(&pb.StreamingOutputCallResponse{}); err != nil {
					return err
				}
				return notFound()
			}), run: streams(codes.NotFound, 300, 200)},
	}
	for i := range list {
		c, limit := &list[i], api.RuleSet{Flow: []flow.Rule{{Resource: every, Match: api.MatchRegex, Unit: "tokens", Threshold: 1000, Interval: time.Hour}}}
		c.server, c.client, c.serverOpts, c.clientOpts = limit, limit, tokens(300), tokens(200)
	}
	return list
}

// used waits until no call of a resource is in flight and its calls have used that many tokens.
func (s *stage) used(g *api.Guard, resource string, want int64) error {
	return s.until(fmt.Sprintf("%s has used %d tokens", resource, want), func() bool {
		all := g.UnitStats(resource)
		return len(all) == 1 && all[0].Total.Used() == want && of(g, resource).inFlight == 0
	})
}
