// Priority shows a call that a full limit does not refuse: a prioritized one borrows
// from the next bucket of the window, waits until it begins, and counts there. So
// important calls get through a burst, and the limit holds all the same.
//
//	go run ./examples/priority
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
	clock.SetSleep(api.SleepAdvance) // a call that waits moves the clock
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "POST /pay", Threshold: 10}}})
	if err != nil {
		return err
	}

	start := clock.Now()
	pay := func(opts ...api.Option) bool {
		e, err := guard.Entry(context.Background(), "POST /pay", opts...)
		e.Exit() // of a refused call it does nothing
		return err == nil
	}
	burst := func() (passed int) {
		for range 12 {
			if pay() {
				passed++
			}
		}
		return passed
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(w, "%6v  %s\n", time.Duration(clock.Now()-start), fmt.Sprintf(format, args...))
	}

	say("12 calls: %d pass", burst())
	clock.Advance(600 * time.Millisecond)
	say("an ordinary call: %t", pay())
	// A call waits for less than 500 ms (api.Config.OccupyTimeout), or is refused.
	say("a prioritized call ...")
	passed := pay(api.Prioritized())
	say("... has waited for the next bucket: %t", passed)
	say("12 calls: %d pass, for one of the 10 was borrowed", burst())
	return nil
}
