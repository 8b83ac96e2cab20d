// Warmup plots the calls that a warm-up rule admits. A service that was idle (empty caches, no
// connections) gets a third of its limit, and all of it after some use; after a quiet time it is
// cold again.
//
//	go run ./examples/warmup
//
// With a manual clock, a minute of traffic takes no time.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

const offered = 150 // calls per second, evenly spaced

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{
		Resource:     "GET /search",
		Threshold:    120,
		Behavior:     flow.WarmUp,
		WarmUpPeriod: 10 * time.Second,
		ColdFactor:   3, // cold, it gets 120/3
	}}})
	if err != nil {
		return err
	}

	fmt.Fprintf(w, "passed each second, of %d calls\n", offered)
	for second := range 15 {
		chart(w, second, oneSecond(guard, clock))
	}
	clock.Advance(time.Minute)
	fmt.Fprintln(w, "     ... nothing for a minute ...")
	for second := range 3 {
		chart(w, 75+second, oneSecond(guard, clock))
	}
	return nil
}

// oneSecond makes a second's calls and returns the number that passed.
func oneSecond(guard *api.Guard, clock *api.ManualClock) (passed int) {
	end := clock.Now() + int64(time.Second)
	for range offered {
		if e, err := guard.Entry(context.Background(), "GET /search"); err == nil {
			passed++
			e.Exit()
		}
		clock.Advance(time.Second / offered)
	}
	clock.AdvanceTo(end)
	return passed
}

func chart(w io.Writer, second, passed int) {
	fmt.Fprintf(w, "%3d s |%s %d\n", second+1, strings.Repeat("#", passed/2), passed)
}
