package penstockchi_test

import (
	"github.com/go-chi/chi/v5"

	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// The code that the page on this adapter shows, in docs/adapters.
var (
	_ = shown
)

func shown() (*chi.Mux, error) {
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /users/{id}", Threshold: 10}}}) // a second

	router := chi.NewRouter()
	router.Use(penstockchi.Middleware())
	return router, err
}
