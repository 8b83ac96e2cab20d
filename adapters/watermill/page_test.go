package penstockwatermill_test

import (
	"github.com/ThreeDotsLabs/watermill/message"

	penstockwatermill "github.com/penstock-go/penstock/adapters/watermill"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = shown
)

func shown(router *message.Router) error {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "message send-mail", Threshold: 10}}}) // a second

	router.AddMiddleware(penstockwatermill.Middleware())
	return err
}
