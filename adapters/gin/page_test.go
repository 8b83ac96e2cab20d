package penstockgin_test

import (
	"github.com/gin-gonic/gin"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = shown
)

func shown() (*gin.Engine, error) {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /users/:id", Threshold: 10}}}) // a second

	router := gin.New()
	router.Use(gin.Recovery(), penstockgin.Middleware())
	return router, err
}
