package penstockkratos_test

import (
	"context"

	"github.com/go-kratos/kratos/v2/middleware/recovery"
	"github.com/go-kratos/kratos/v2/transport"
	"github.com/go-kratos/kratos/v2/transport/grpc"
	"github.com/go-kratos/kratos/v2/transport/http"
	google "google.golang.org/grpc"

	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = served
	_ = dialed
	_ = client
	_ = optioned
)

func served() (*grpc.Server, *http.Server, error) {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "/greet.v1.Greeter/SayHello", Threshold: 10}}}) // a second

	grpcServer := grpc.NewServer(grpc.Middleware(recovery.Recovery(), penstockkratos.Server()))
	httpServer := http.NewServer(http.Middleware(recovery.Recovery(), penstockkratos.Server()))
	return grpcServer, httpServer, err
}

func dialed(ctx context.Context, target string) (*google.ClientConn, error) {
	conn, err := grpc.DialInsecure(ctx, grpc.WithEndpoint(target), grpc.WithMiddleware(penstockkratos.Client()))
	return conn, err
}

func client(ctx context.Context, target string) (*http.Client, error) {
	client, err := http.NewClient(ctx, http.WithEndpoint(target), http.WithMiddleware(penstockkratos.Client()))
	return client, err
}

func optioned() {
	penstockkratos.Origin(func(_ context.Context, t transport.Transporter) string {
		return t.RequestHeader().Get("X-App") // if only your proxies can call
	})
	penstockkratos.WithOptions(func(_ context.Context, _ transport.Transporter, req any) []api.Option {
		if r, ok := req.(interface{ GetUserId() string }); ok {
			return []api.Option{api.Param("user", r.GetUserId())}
		}
		return nil
	})
}
