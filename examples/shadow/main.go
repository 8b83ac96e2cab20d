// Shadow shows how to try a limit on live traffic before it limits anything: a rule in shadow mode
// decides and counts the calls it would have refused, and every call passes.
//
//	go run ./examples/shadow
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
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()

	rule := flow.Rule{ID: "search", Resource: "GET /search", Threshold: 10, Mode: api.Shadow}
	if err := guard.LoadRules(api.RuleSet{Flow: []flow.Rule{rule}}); err != nil {
		return err
	}
	var before int64
	for _, rate := range []int{8, 12, 20} {
		passed := oneSecond(guard, clock, rate)
		_, total := figures(guard)
		fmt.Fprintf(w, "shadow:  %2d calls, %2d pass, %2d would be refused\n", rate, passed, total-before)
		before = total
	}

	// The limit looks right, so enforce it. The rule starts with the resource's counts, which would
	// exceed the limit for a while without a pause.
	clock.Advance(2 * time.Second)
	rule.Mode = api.Enforce
	if err := guard.LoadRules(api.RuleSet{Flow: []flow.Rule{rule}}); err != nil {
		return err
	}
	passed := oneSecond(guard, clock, 20)
	refused, _ := figures(guard)
	fmt.Fprintf(w, "enforce: 20 calls, %2d pass, %2d are refused\n", passed, refused)
	return nil
}

// figures returns the number of calls that the rule has refused, or would have, since it was loaded.
func figures(guard *api.Guard) (refused, shadowBlocked int64) {
	rule := guard.RuleStats()[0]
	return rule.Refused, rule.ShadowBlocked
}

// oneSecond makes rate calls, evenly spaced, and returns the number that passed.
func oneSecond(guard *api.Guard, clock *api.ManualClock, rate int) (passed int) {
	end := clock.Now() + int64(time.Second)
	for range rate {
		if e, err := guard.Entry(context.Background(), "GET /search"); err == nil {
			passed++
			e.Exit()
		}
		clock.Advance(time.Second / time.Duration(rate))
	}
	clock.AdvanceTo(end)
	return passed
}
