// A server with kratos: three greetings a minute, the fourth is refused.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	khttp "github.com/go-kratos/kratos/v2/transport/http"

	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /hello/{name}", Threshold: 3, Interval: time.Minute}}})
	if err != nil {
		log.Fatal(err)
	}
	server := khttp.NewServer(khttp.Middleware(penstockkratos.Server()))
	server.Route("/").GET("/hello/{name}", func(c khttp.Context) error { // as generated code does
		hello, err := c.Middleware(func(context.Context, any) (any, error) { return "hello, " + c.Vars().Get("name"), nil })(c, nil)
		if err != nil {
			return err
		}
		return c.Result(http.StatusOK, hello)
	})
	for _, name := range []string{"ann", "bob", "eve", "joe"} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/hello/"+name, nil))
		fmt.Println(name+":", w.Code, http.StatusText(w.Code))
	}
}
