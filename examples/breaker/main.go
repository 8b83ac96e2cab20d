// Breaker shows how a breaker stops calls to a failed service, and how it detects that the service
// is back.
//
//	go run ./examples/breaker
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

var (
	errDown     = errors.New("connection refused")
	errNotFound = errors.New("no such user")
)

func run(w io.Writer) error {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	began := clock.Now()
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	guard.OnBreaker(func(c breaker.Change) {
		fmt.Fprintf(w, "  after %v, %s: %v -> %v\n", c.At.Sub(time.Unix(0, began)), c.Resource, c.From, c.To)
	})

	// Opens when half of the calls in a second fail, if there were at least ten; probes after five
	// seconds; and admits all calls again in three steps of two seconds.
	err = guard.LoadRules(api.RuleSet{Breaker: []breaker.Rule{{
		Resource: "users", Threshold: 0.5, MinCalls: 10, Interval: time.Second, Recovery: 5 * time.Second, Ramp: 2 * time.Second,
	}}})
	if err != nil {
		return err
	}

	// "No such user" is a response, not a failure; the breaker doesn't count it.
	for second := range 14 {
		asked, passed, failed := 0, 0, 0
		for range 100 {
			asked++
			err := guard.Do(context.Background(), "users", func(context.Context) error {
				passed++
				if second == 2 || second == 3 {
					return errDown
				}
				return api.Ignore(errNotFound)
			})
			if errors.Is(err, errDown) {
				failed++
			}
			clock.Advance(10 * time.Millisecond)
		}
		fmt.Fprintf(w, "second %2d: %d asked, %3d passed, %2d failed, %3d refused\n", second, asked, passed, failed, asked-passed)
	}

	// An operator opens the breaker for the duration of a migration.
	if err := guard.ForceBreaker("breaker:users", "users", breaker.ForceOpen); err != nil {
		return err
	}
	err = guard.Do(context.Background(), "users", func(context.Context) error { return nil })
	fmt.Fprintln(w, err)
	return nil
}
