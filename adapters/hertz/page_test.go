package penstockhertz_test

import (
	"github.com/cloudwego/hertz/pkg/app/server"

	penstockhertz "github.com/penstock-go/penstock/adapters/hertz"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = shown
)

func shown() (*server.Hertz, error) {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /hello/:name", Threshold: 10}}}) // a second

	h := server.Default(server.WithSenseClientDisconnection(true))
	h.Use(penstockhertz.Middleware())
	return h, err
}
