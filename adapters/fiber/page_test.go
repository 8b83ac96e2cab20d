package penstockfiber_test

import (
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = shown
)

func shown() (*fiber.App, error) {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /hello/:name", Threshold: 10}}}) // a second

	app := fiber.New()
	app.Use(recover.New(), penstockfiber.Middleware())
	return app, err
}
