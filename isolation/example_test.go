package isolation_test

import (
	"context"
	"fmt"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/isolation"
)

// Two calls run at once, and all others are refused until one of them ends.
func Example() {
	guard, err := api.New(api.Config{})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Isolation: []isolation.Rule{{ID: "pdf", Resource: "render pdf", Threshold: 2}}})
	if err != nil {
		panic(err)
	}
	enter := func() api.Admitted {
		e, err := guard.Entry(context.Background(), "render pdf")
		fmt.Println("enter:", err)
		return e
	}
	first, second := enter(), enter()
	enter() // a refused entry needs no Exit
	first.Exit()
	third := enter()
	second.Exit()
	third.Exit()
	// Output:
	// enter: <nil>
	// enter: <nil>
	// enter: penstock: isolation rule "pdf" blocked "render pdf"
	// enter: <nil>
}
