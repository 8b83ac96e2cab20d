// Priority shows the privileges of prioritized calls. If the limit is used up, such a call borrows
// from the next bucket of the window, waits until that begins, and counts there. So important calls
// get through a burst, and the limit still holds. In a queue it jumps ahead of ordinary calls, but every
// second call that leaves the queue is an ordinary one.
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
	"strings"
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
	clock.SetSleep(api.SleepAdvance) // a waiting call advances the clock
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{
		{Resource: "POST /pay", Threshold: 10},
		{Resource: "POST /mail", Threshold: 10, Behavior: flow.Throttle, MaxWait: time.Second},
	}})
	if err != nil {
		return err
	}

	start := clock.Now()
	pay := func(opts ...api.Option) bool {
		e, err := guard.Entry(context.Background(), "POST /pay", opts...)
		e.Exit() // no effect on a refused call
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

	clock.SetSleep(api.SleepPark) // after this, calls wait until the clock advances
	calls := []string{"newsletter 1", "newsletter 2", "newsletter 3", "receipt 1", "receipt 2"}
	left := make(chan string, len(calls)+1)
	ctx, cancel := context.WithCancel(context.Background()) // like a request's context
	defer cancel()
	mail := func(name string, opts ...api.Option) {
		err := guard.Do(ctx, "POST /mail", func(context.Context) error {
			left <- name
			return nil
		}, opts...)
		if err != nil {
			left <- name + ": " + err.Error()
		}
	}
	mail("newsletter 0")
	say("%s leaves, and five queue: %s", <-left, strings.Join(calls, ", "))
	for i, name := range calls {
		if strings.HasPrefix(name, "receipt") {
			go mail(name, api.Prioritized())
		} else {
			go mail(name)
		}
		clock.AwaitParked(i + 1)
	}
	for waiting := len(calls); waiting > 0; waiting-- {
		clock.AwaitParked(waiting) // a call that others jumped ahead of wakes at its old time and goes back to sleep
		clock.Advance(100 * time.Millisecond)
		say("%s", <-left)
	}
	return nil
}
