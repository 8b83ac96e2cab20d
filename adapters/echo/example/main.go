// A server with echo 5: three greetings a minute, the fourth is refused.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v5"

	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /hello/:name", Threshold: 3, Interval: time.Minute}}})
	if err != nil {
		log.Fatal(err)
	}
	e := echo.New()
	e.Use(penstockecho.Middleware())
	e.GET("/hello/:name", func(c *echo.Context) error { return c.String(http.StatusOK, "hello, "+c.Param("name")) })
	server := httptest.NewServer(e)
	defer server.Close()
	for _, name := range []string{"ann", "bob", "eve", "joe"} {
		resp, err := server.Client().Get(server.URL + "/hello/" + name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name+":", resp.Status)
		resp.Body.Close()
	}
}
