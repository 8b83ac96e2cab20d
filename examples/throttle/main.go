// Throttle shows a rule that spaces calls evenly instead of refusing them: for work that must not
// arrive in bursts.
//
//	go run ./examples/throttle
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
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{
		Resource:  "send mail",
		Threshold: 10, // per second: one every 100 ms
		Behavior:  flow.Throttle,
		MaxWait:   400 * time.Millisecond,
	}}})
	if err != nil {
		return err
	}
	ctx := context.Background()

	fmt.Fprintln(w, "one call after the other:")
	clock.SetSleep(api.SleepAdvance) // a waiting call advances the clock
	start := clock.Now()
	for n := range 5 {
		if err := send(ctx, guard); err != nil {
			return err
		}
		fmt.Fprintf(w, "  call %d runs at %v\n", n+1, time.Duration(clock.Now()-start))
	}

	clock.Advance(time.Second)
	fmt.Fprintln(w, "seven at once, a second later:")
	clock.SetSleep(api.SleepRecord) // a wait is recorded, and the clock stands still
	for n := range 7 {
		before := len(clock.Slept())
		err := send(ctx, guard)
		switch slept := clock.Slept()[before:]; {
		case err != nil:
			fmt.Fprintf(w, "  call %d is refused: the queue is full\n", n+1)
		case len(slept) > 0:
			fmt.Fprintf(w, "  call %d waits for %v\n", n+1, slept[0])
		default:
			fmt.Fprintf(w, "  call %d runs at once\n", n+1)
		}
	}
	return nil
}

func send(ctx context.Context, guard *api.Guard) error {
	return guard.Do(ctx, "send mail", func(context.Context) error { return nil })
}
