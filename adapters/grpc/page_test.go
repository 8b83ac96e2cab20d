package penstockgrpc_test

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = served
	_ = dialed
	_ = optioned
	_ = stopped
)

func served() (*grpc.Server, error) {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "/shop.Orders/Get", Threshold: 10}}}) // a second

	server := grpc.NewServer(penstockgrpc.ServerOptions()...)
	return server, err
}

func dialed(target string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(target, append(penstockgrpc.DialOptions(), grpc.WithTransportCredentials(creds))...)
	return conn, err
}

func stopped(ctx context.Context, guard *api.Guard, server *grpc.Server) {
	go func() { _ = guard.Drain(ctx) }()
	server.GracefulStop()
}

func optioned() {
	penstockgrpc.WithOptions(func(ctx context.Context, req any, fullMethod string) []api.Option {
		if r, ok := req.(interface{ GetUserId() string }); ok { // nil for a stream
			return []api.Option{api.Param("user", r.GetUserId())}
		}
		return nil
	})
}
