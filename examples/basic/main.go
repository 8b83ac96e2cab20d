// Basic shows the calls that guard code: Entry and Exit, Do, Call, and the details of a refusal.
//
//	go run ./examples/basic
//
// The package functions use a default engine. It logs refusals, at most one line per second and rule:
// these are the WARN lines on standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	// Rules may come from a file (api.LoadRulesFile, api.WatchRules) or from code.
	err := api.LoadRules(api.RuleSet{Flow: []flow.Rule{
		{ID: "orders", Resource: "GET /orders", Threshold: 2, Interval: time.Minute},
	}})
	if err != nil {
		return err
	}
	ctx := context.Background()

	for n := range 3 {
		err := order(ctx)
		fmt.Fprintf(w, "order %d: %v\n", n+1, err)

		// errors.Is(err, api.ErrBlocked) holds for every refusal; the *api.BlockError has details.
		if blocked, ok := errors.AsType[*api.BlockError](err); ok {
			limit, _ := blocked.Limit()
			wait, known := blocked.RetryAfter()
			fmt.Fprintf(w, "  kind %s, rule %q, limit %v, retry within two minutes: %t\n",
				blocked.Kind, blocked.Rule, limit, known && wait <= 2*time.Minute)
		}
	}

	// Do enters, runs and exits. The function's error is returned and marks the call as failed, and
	// so does a panic.
	err = api.Do(ctx, "send mail", func(context.Context) error {
		return errors.New("no such mailbox")
	})
	fmt.Fprintln(w, "mail:", err)

	// Call is like Do, but for a function with a result.
	items, err := api.Call(ctx, "count items", func(context.Context) (int, error) {
		return 42, nil
	})
	fmt.Fprintln(w, "items:", items, err)

	// Every call is counted, with or without rules.
	for _, r := range api.Tree().Resources {
		n := r.Lifetime
		fmt.Fprintf(w, "%-12s %d passed, %d blocked, %d failed\n", r.Name, n.Pass, n.Block, n.Exception)
	}
	return nil
}

// order is guarded explicitly: the shortest code without a closure.
func order(ctx context.Context) error {
	e, err := api.Entry(ctx, "GET /orders")
	if err != nil {
		return err // refused: don't run
	}
	defer e.Exit() // or, to count failures: defer e.ExitOn(&err), with err a named result

	// The guarded code goes here.
	return nil
}
