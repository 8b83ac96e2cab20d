// Package api is the entry point; most programs import nothing else. Code that writes rules in Go
// adds the packages of their families, such as flow; rule files need none.
//
//	e, err := api.Entry(ctx, "GET /orders")
//	if err != nil {
//		return err // a *api.BlockError: which rule, which kind, when to retry
//	}
//	defer e.Exit()
//
// The package functions use a default Guard, created at the first call; [New] creates a separate one
// with the same methods. Until rules are loaded, every call passes and is counted.
//
//	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{
//		{Resource: "GET /orders", Threshold: 100},
//	}})
//
// Everything here is safe for concurrent use, except a [Meter].
//
// The page docs/README.md lists the pages of the documentation.
package api
