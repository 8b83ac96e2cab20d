package inspect_test

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// This example prints the counts of each resource and its callers, and the refusals of each rule.
func Example() {
	guard, err := api.New(api.Config{Clock: api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{
		{ID: "orders", Resource: "GET /orders", Threshold: 2},
		{ID: "odrers", Resource: "GET /odrers", Threshold: 5}, // misspelt
	}})
	if err != nil {
		panic(err)
	}
	ctx := api.WithOrigin(context.Background(), "mobile")
	for range 3 {
		e, _ := guard.Entry(ctx, "GET /orders")
		e.Exit()
	}
	tree := guard.Tree()
	for _, r := range tree.Resources {
		fmt.Printf("%s: %d passed, %d refused within the last minute\n", r.Name, r.Minute.Pass, r.Minute.Block)
		for _, o := range r.Origins {
			fmt.Printf("  of %s: %d and %d\n", o.Name, o.Minute.Pass, o.Minute.Block)
		}
	}
	for _, r := range tree.Rules {
		fmt.Printf("%v rule %s: asked %v, refused %d\n", r.Kind, r.ID, r.Asked, r.Refused)
	}
	// Output:
	// GET /orders: 2 passed, 1 refused within the last minute
	//   of mobile: 2 and 1
	// flow rule orders: asked true, refused 1
	// flow rule odrers: asked false, refused 0
}
