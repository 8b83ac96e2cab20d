// A server with gin: three greetings a minute, the fourth is refused.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gin-gonic/gin"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /hello/:name", Threshold: 3, Interval: time.Minute}}})
	if err != nil {
		log.Fatal(err)
	}
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(gin.Recovery(), penstockgin.Middleware())
	router.GET("/hello/:name", func(c *gin.Context) { c.String(http.StatusOK, "hello, "+c.Param("name")) })
	server := httptest.NewServer(router)
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
