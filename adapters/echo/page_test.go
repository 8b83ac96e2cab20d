package penstockecho_test

import (
	"github.com/labstack/echo/v5"

	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = shown
)

func shown() (*echo.Echo, error) {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /users/:id", Threshold: 10}}}) // a second

	e := echo.New()
	e.Use(penstockecho.Middleware())
	return e, err
}
