package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
)

// Half of the calls fail, and the breaker opens. After Recovery it admits a probe, which succeeds,
// and the breaker closes.
func Example() {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	guard.OnBreaker(func(c breaker.Change) { fmt.Println(c.From, "->", c.To) })
	err = guard.LoadRules(api.RuleSet{Breaker: []breaker.Rule{
		{ID: "orders", Resource: "GET /orders", Threshold: 0.5, MinCalls: 4, Recovery: 3 * time.Second},
	}})
	if err != nil {
		panic(err)
	}
	call := func(outcome error) {
		err := guard.Do(context.Background(), "GET /orders", func(context.Context) error { return outcome })
		fmt.Println("call:", err)
	}
	down := errors.New("the service is down")
	call(nil)
	call(nil)
	call(down)
	call(down)
	call(nil) // refused
	clock.Advance(3 * time.Second)
	call(nil)
	// Output:
	// call: <nil>
	// call: <nil>
	// call: the service is down
	// closed -> open
	// call: the service is down
	// call: penstock: breaker rule "orders" blocked "GET /orders"
	// open -> halfOpen
	// halfOpen -> closed
	// call: <nil>
}

// Five failures in a row open it, however long they take to come.
func ExampleRule_consecutiveErrors() {
	rule, err := breaker.Rule{Resource: "GET /carts", Strategy: breaker.ConsecutiveErrors, Threshold: 5}.Normalized()
	fmt.Println(rule.ID, rule.Recovery, rule.Probes, err)
	_, err = breaker.Rule{Resource: "GET /carts", Strategy: breaker.ConsecutiveErrors, Threshold: 5, MinCalls: 20}.Normalized()
	fmt.Println(err)
	// Output:
	// breaker:GET /carts:consecutiveErrors 5s 1 <nil>
	// minCalls: has no meaning for strategy consecutiveErrors, which counts until a call succeeds: remove it, or set strategy to errorCount
}
