package penstockconnect_test

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = served
	_ = optioned
)

func served(mux *http.ServeMux, greeter any) error {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "/greet.v1.GreetService/Greet", Threshold: 10}}}) // a second

	guard := connect.WithInterceptors(penstockconnect.Interceptor())

	mux.Handle(greetv1connect.NewGreetServiceHandler(greeter, guard))

	client := greetv1connect.NewGreetServiceClient(http.DefaultClient, "http://localhost:8080", guard)
	_ = client
	return err
}

func optioned() {
	penstockconnect.Origin(func(_ context.Context, call penstockconnect.Call) string {
		return call.Header.Get("X-App") // if only your proxies can call
	})
	penstockconnect.WithOptions(func(_ context.Context, call penstockconnect.Call) []api.Option {
		if r, ok := call.Message.(interface{ GetUserId() string }); ok { // nil for a stream
			return []api.Option{api.Param("user", r.GetUserId())}
		}
		return nil
	})
}

// greetv1connect stands for code that connect generates.
var greetv1connect generated

type generated struct{}

func (generated) NewGreetServiceHandler(greeter any, opts ...connect.HandlerOption) (string, http.Handler) {
	return "/greet.v1.GreetService/", http.NotFoundHandler()
}

func (generated) NewGreetServiceClient(client connect.HTTPClient, base string, opts ...connect.ClientOption) any {
	return nil
}
