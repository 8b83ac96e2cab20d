// Nested shows where calls belong: in a context (the way they come in), with an origin (who makes
// them), and inside each other. Rules can look at each.
//
//	go run ./examples/nested
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
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
	// A clock that stands still until it is moved makes every run the same.
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{
		// acme has a limit of its own; every other caller has this one, each for itself.
		{Resource: "GET /orders", Origin: "acme", Threshold: 3},
		{Resource: "GET /orders", Origin: flow.OriginOther, Threshold: 1},
		// Calls that come in through the context "batch" get two queries a second. Others don't
		// count towards that, and are not limited by it.
		{Resource: "sql orders", Relation: flow.Chain, Ref: "batch", Threshold: 2},
	}})
	if err != nil {
		return err
	}

	query := func(ctx context.Context) error {
		return guard.Do(ctx, "sql orders", func(context.Context) error {
			clock.Advance(time.Millisecond) // the time it takes
			return nil
		})
	}

	// An origin must be something you know, such as the owner of an API key, and not
	// what a request says of itself.
	for _, caller := range []string{"acme", "globex", "initech"} {
		ctx := api.WithOrigin(api.WithContext(context.Background(), "web"), caller)
		for range 4 {
			// Do hands on the context of the call: what uses it is nested. With Entry,
			// that context is e.Context().
			err := guard.Do(ctx, "GET /orders", query)
			fmt.Fprintf(w, "%-8s %s\n", caller, verdict(err))
		}
	}
	batch := api.WithContext(context.Background(), "batch")
	err = guard.Do(batch, "nightly export", func(ctx context.Context) error {
		for range 3 {
			fmt.Fprintf(w, "export   %s\n", verdict(query(ctx)))
		}
		return nil
	})
	if err != nil {
		return err
	}

	tree := guard.Tree()
	fmt.Fprintln(w)
	if err := tree.WriteText(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nGET /orders by caller:")
	orders, _ := tree.Resource("GET /orders")
	for _, o := range orders.Origins {
		fmt.Fprintf(w, "  %-8s %d passed, %d blocked\n", o.Name, o.Lifetime.Pass, o.Lifetime.Block)
	}
	return nil
}

func verdict(err error) string {
	if err != nil {
		return "blocked"
	}
	return "passed"
}
