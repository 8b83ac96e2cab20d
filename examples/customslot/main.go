// Customslot shows slots of your own in the chain: one that refuses calls for a reason of
// your own, one that takes from a pool of connections and gives back, and one that records
// how long calls took.
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
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/slots"
)

// tenants refuses the calls of tenants that are suspended. It takes nothing of anybody, so
// it is a slots.AskOnly: one function, whose answer is the verdict.
type tenants struct{ slots.AskOnly }

func (tenants) Name() string { return "tenants" }

func newTenants(suspended map[string]bool) tenants {
	return tenants{func(c slots.Call) slots.Verdict {
		if suspended[c.Origin()] {
			return c.Refuse("tenant is suspended")
		}
		return slots.Verdict{} // nothing against it
	}}
}

// connections is a pool: a call takes a connection, and holds it until it exits.
type connections struct{ free atomic.Int64 }

func (*connections) Name() string { return "connections" }

// Ask is the early look. It takes nothing, and may be left out.
func (p *connections) Ask(c slots.Call) slots.Verdict {
	if p.free.Load() > 0 {
		return slots.Verdict{}
	}
	return c.Refuse("no connection is free")
}

// Take decides: it checks and takes in one step. What is reserved is given back when the call
// exits, or immediately if a slot behind this one refuses it.
func (p *connections) Take(c slots.Call) slots.Verdict {
	for free := p.free.Load(); free > 0; free = p.free.Load() {
		if p.free.CompareAndSwap(free, free-1) {
			c.Hold(p, 1)
			return slots.Verdict{}
		}
	}
	return c.Refuse("no connection is free")
}

// Direct says that Take never makes a call wait, so the slot need not be asked first.
func (*connections) Direct() bool { return true }

func (p *connections) GiveBack(units int64, _ time.Time) { p.free.Add(units) }

// stopwatch records calls that took long. Slots run on the caller's goroutine, between the
// call and its answer: keep them short, and safe for concurrent use.
type stopwatch struct {
	limit time.Duration
	slow  func(resource string, took time.Duration)
}

func (stopwatch) Name() string { return "stopwatch" }

func (s stopwatch) Completed(c slots.Call) {
	if took := c.Took(); took > s.limit {
		s.slow(c.Resource(), took)
	}
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	slow := func(resource string, took time.Duration) { fmt.Fprintf(w, "slow: %s took %v\n", resource, took) }
	pool := new(connections)
	pool.free.Store(1)
	chain := slots.Default().
		With(newTenants(map[string]bool{"globex": true}), slots.After("authority")). // before anything is taken
		With(pool, slots.After("isolation")).
		With(stopwatch{100 * time.Millisecond, slow}, slots.After("statistic"))
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
		if _, err := guard.Entry(ctx, "GET /carts"); err != nil { // the only connection is taken
			fmt.Fprintf(w, "%s: %v\n", tenant, err)
		}
		clock.Advance(150 * time.Millisecond) // the guarded code runs
		e.Exit()
		fmt.Fprintf(w, "%s: served\n", tenant)
	}
	return nil
}
