// Authority shows which callers are admitted: an allow list with two callers, a deny list with one,
// and a caller without a name.
//
//	go run ./examples/authority
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	guard, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()

	err = guard.LoadRules(api.RuleSet{Authority: []authority.Rule{
		{ID: "refunds", Resource: "POST /refunds", Origins: []string{"back-office", "support"}},
		{ID: "no-crawler", Resource: "GET /orders", List: authority.Deny, Origins: []string{"crawler"}},
		{ID: "internal", Resource: "GET /health", Origins: []string{"balancer"}, AllowAnonymous: true},
	}})
	if err != nil {
		return err
	}
	for _, resource := range []string{"POST /refunds", "GET /orders", "GET /health"} {
		for _, caller := range []string{"back-office", "crawler", "balancer", ""} {
			// The caller is authenticated by the program, not taken from a header.
			ctx := api.WithOrigin(api.WithContext(context.Background(), "http"), caller)
			err := guard.Do(ctx, resource, func(context.Context) error { return nil })
			verdict := "may"
			if block, ok := errors.AsType[*api.BlockError](err); ok {
				verdict = "may not: " + block.Rule
			}
			fmt.Fprintf(w, "%-14s %-12s %s\n", resource, cmp.Or(caller, "(nobody)"), verdict)
		}
	}
	return nil
}
