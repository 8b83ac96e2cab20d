// Customslot shows slots of your own in the chain: one that refuses calls for a reason of
// your own, and one that records how long calls took.
//
//	go run ./examples/customslot
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
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/slots"
)

// tenants refuses the calls of tenants that are suspended. It takes nothing of anybody, so
// it is a core.AskOnly: one function, whose answer is the verdict.
type tenants struct{ core.AskOnly }

func (tenants) Name() string { return "tenants" }

func newTenants(suspended map[string]bool) tenants {
	return tenants{func(inv *core.Invocation) core.Verdict {
		if suspended[inv.Origin()] {
			return inv.Refuse("tenant is suspended")
		}
		return core.Verdict{} // nothing against it
	}}
}

// stopwatch records calls that took long. Slots run on the caller's goroutine, between the
// call and its answer: keep them short, and safe for concurrent use.
type stopwatch struct {
	limit time.Duration
	slow  func(resource string, took time.Duration)
}

func (stopwatch) Name() string { return "stopwatch" }

func (s stopwatch) Completed(inv *core.Invocation) {
	if took := time.Duration(inv.Now() - inv.Began()); took > s.limit {
		s.slow(inv.Resource().Name(), took)
	}
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	slow := func(resource string, took time.Duration) { fmt.Fprintf(w, "slow: %s took %v\n", resource, took) }
	chain := slots.Default().
		With(newTenants(map[string]bool{"globex": true}), core.After("authority")). // before anything is taken
		With(stopwatch{100 * time.Millisecond, slow}, core.After("statistic"))
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Chain: chain, Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()

	for _, tenant := range []string{"acme", "globex"} {
		ctx := api.WithOrigin(api.WithContext(context.Background(), "http"), tenant)
		e, err := guard.Entry(ctx, "GET /orders")
		if err != nil {
			fmt.Fprintf(w, "%s: %v (kind %v)\n", tenant, err, api.KindOf(err))
			continue
		}
		clock.Advance(150 * time.Millisecond) // the guarded code runs
		e.Exit()
		fmt.Fprintf(w, "%s: served\n", tenant)
	}
	return nil
}
