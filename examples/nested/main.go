// Nested shows the place of calls: in a context (the way they come in), with an origin (the
// caller), and inside each other. Rules can use each of these.
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
	// With a manual clock, every run is the same.
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{
		// acme has its own limit; each other caller has this one for itself.
		{Resource: "GET /orders", Origin: "acme", Threshold: 3},
		{Resource: "GET /orders", Origin: flow.OriginOther, Threshold: 1},
		// Calls in the context "batch" get two queries a second. Other calls neither count towards
		// that limit nor are limited by it.
		{Resource: "sql orders", Relation: flow.Chain, Ref: "batch", Threshold: 2},
	}})
	if err != nil {
		return err
	}

	query := func(ctx context.Context) error {
		return guard.Do(ctx, "sql orders", func(context.Context) error {
			clock.Advance(time.Millisecond) // the query takes this long
			return nil
		})
	}

	// An origin must be verified, such as the owner of an API key, not a claim of the request.
	for _, caller := range []string{"acme", "globex", "initech"} {
		ctx := api.WithOrigin(api.WithContext(context.Background(), "web"), caller)
		for range 4 {
			// Do passes on the context of the call; calls made with it are nested. With Entry, the
			// context is e.Context().
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
