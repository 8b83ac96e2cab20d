// A server with fiber: three greetings a minute, the fourth is refused.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gofiber/fiber/v3"

	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /hello/:name", Threshold: 3, Interval: time.Minute}}})
	if err != nil {
		log.Fatal(err)
	}
	app := fiber.New()
	app.Use(penstockfiber.Middleware())
	app.Get("/hello/:name", func(c fiber.Ctx) error { return c.SendString("hello, " + c.Params("name")) })
	for _, name := range []string{"ann", "bob", "eve", "joe"} {
		resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/hello/"+name, nil), fiber.TestConfig{Timeout: 0})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name+":", resp.Status)
		resp.Body.Close()
	}
}
