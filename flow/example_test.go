package flow_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// exampleGuard returns a guard with the rules, on a clock that stands still, so that the examples
// always print the same.
func exampleGuard(set ...flow.Rule) (*api.Guard, *api.ManualClock) {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	clock.SetSleep(api.SleepRecord) // calls that wait run at once, and the wait is recorded
	guard, err := api.New(api.Config{Clock: clock})
	if err != nil {
		panic(err)
	}
	if err := guard.LoadRules(api.RuleSet{Flow: set}); err != nil {
		panic(err)
	}
	return guard, clock
}

// Two calls per second pass, and all others are refused. A refusal knows when to retry.
func Example() {
	guard, clock := exampleGuard(flow.Rule{ID: "orders", Resource: "GET /orders", Threshold: 2})
	defer guard.Close()
	for range 3 {
		e, err := guard.Entry(context.Background(), "GET /orders")
		if refusal, ok := errors.AsType[*api.BlockError](err); ok {
			wait, _ := refusal.RetryAfter()
			fmt.Println(err, "for", wait)
			clock.Advance(wait)
			continue
		}
		fmt.Println("passed")
		e.Exit()
	}
	e, err := guard.Entry(context.Background(), "GET /orders")
	fmt.Println("after that:", err)
	e.Exit()
	// Output:
	// passed
	// passed
	// penstock: flow rule "orders" blocked "GET /orders" for 1.02s
	// after that: <nil>
}

// Calls leave at even intervals, and queue for up to MaxWait.
func ExampleRule_throttle() {
	guard, clock := exampleGuard(flow.Rule{
		Resource: "send mail", Threshold: 10, Behavior: flow.Throttle, MaxWait: 250 * time.Millisecond,
	})
	defer guard.Close()
	for range 4 {
		waits := len(clock.Slept())
		e, err := guard.Entry(context.Background(), "send mail")
		if err != nil {
			fmt.Println("refused: the queue is too long")
			continue
		}
		fmt.Println("passed, after", sum(clock.Slept()[waits:]))
		e.Exit()
	}
	// Output:
	// passed, after 0s
	// passed, after 100ms
	// passed, after 200ms
	// refused: the queue is too long
}

func sum(waits []time.Duration) (all time.Duration) {
	for _, d := range waits {
		all += d
	}
	return all
}

// A field that the rule doesn't read is an error, which says how to fix it.
func ExampleRule_Normalized() {
	_, err := flow.Rule{Resource: "GET /orders", Threshold: 100, MaxWait: time.Second}.Normalized(3)
	fmt.Println(err)
	rule, err := flow.Rule{Resource: "GET /orders", Threshold: 100, Behavior: flow.Throttle}.Normalized(3)
	fmt.Println(rule.ID, rule.Interval, rule.MaxWait, err)
	// Output:
	// maxWait: has no meaning for behavior reject: remove it, or set behavior to throttle or warmUpThrottle
	// flow:GET /orders:throttle 1s 500ms <nil>
}
