// A server with connect: three greetings a minute, the fourth is refused.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

const procedure = "/greet.v1.GreetService/Greet"

type text = wrapperspb.StringValue

func greet(_ context.Context, req *connect.Request[text]) (*connect.Response[text], error) {
	return connect.NewResponse(wrapperspb.String("hello, " + req.Msg.Value)), nil
}

func main() {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: procedure, Threshold: 3, Interval: time.Minute}}})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(connect.NewUnaryHandler(procedure, greet, connect.WithInterceptors(penstockconnect.Interceptor())))
	defer server.Close()
	client := connect.NewClient[text, text](server.Client(), server.URL+procedure)
	for _, name := range []string{"ann", "bob", "eve", "joe"} {
		_, err := client.CallUnary(context.Background(), connect.NewRequest(wrapperspb.String(name)))
		fmt.Println(name+":", err)
	}
}
