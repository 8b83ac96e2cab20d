// A server with hertz: three greetings a minute, the fourth is refused.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	penstockhertz "github.com/penstock-go/penstock/adapters/hertz"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	limit := flow.Rule{Resource: "GET /hello/:name", Threshold: 3, Interval: time.Minute}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err, api.LoadRules(api.RuleSet{Flow: []flow.Rule{limit}})); err != nil {
		log.Fatal(err)
	}
	h := server.New(server.WithListener(listener), server.WithSenseClientDisconnection(true))
	h.Use(penstockhertz.Middleware())
	h.GET("/hello/:name", func(_ context.Context, c *app.RequestContext) { c.String(200, "hello, "+c.Param("name")) })
	go func() { log.Fatal(h.Run()) }()
	for _, name := range []string{"ann", "bob", "eve", "joe"} {
		resp, err := http.Get("http://" + listener.Addr().String() + "/hello/" + name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name+":", resp.Status)
		resp.Body.Close()
	}
}
