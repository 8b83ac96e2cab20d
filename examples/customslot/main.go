// Customslot shows your own slots in the chain: one refuses calls for its own reason, one acquires
// connections from a pool and releases them, and one records the duration of calls.
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

// tenants refuses calls of suspended tenants. It reserves nothing, so it is a slots.AskOnly: one
// function, which returns the verdict.
type tenants struct{ slots.AskOnly }

func (tenants) Name() string { return "tenants" }

func newTenants(suspended map[string]bool) tenants {
	return tenants{func(c slots.Call) slots.Verdict {
		if suspended[c.Origin()] {
			return c.Refuse("tenant is suspended")
		}
		return slots.Verdict{} // no objection
	}}
}

// connections is a pool: a call takes a connection, and holds it until it exits.
type connections struct{ free atomic.Int64 }

func (*connections) Name() string { return "connections" }

// Ask is an optional early check. It takes nothing.
func (p *connections) Ask(c slots.Call) slots.Verdict {
	if p.free.Load() > 0 {
		return slots.Verdict{}
	}
	return c.Refuse("no connection is free")
}

// Take decides: it checks and takes a connection in one step. The reservation is released when the call
// exits, or immediately if a later slot refuses the call.
func (p *connections) Take(c slots.Call) slots.Verdict {
	for free := p.free.Load(); free > 0; free = p.free.Load() {
		if p.free.CompareAndSwap(free, free-1) {
			c.Hold(p, 1)
			return slots.Verdict{}
		}
	}
	return c.Refuse("no connection is free")
}

// Direct reports that Take never makes a call wait, so Ask is not needed first.
func (*connections) Direct() bool { return true }

func (p *connections) GiveBack(units int64, _ time.Time) { p.free.Add(units) }

// stopwatch records slow calls. Slots run on the caller's goroutine, as part of the call: keep them
// short, and safe for concurrent use.
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
