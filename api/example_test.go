package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
)

func Example() {
	guard, err := api.New(api.Config{})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	defer api.SetDefault(guard)()

	err = api.LoadRules(api.RuleSet{Flow: []flow.Rule{
		{ID: "orders", Resource: "GET /orders", Threshold: 2, Interval: time.Hour},
	}})
	if err != nil {
		panic(err)
	}
	for range 3 {
		e, err := api.Entry(context.Background(), "GET /orders")
		if errors.Is(err, api.ErrBlocked) {
			fmt.Println(err)
			continue
		}
		fmt.Println("passed")
		e.Exit()
	}
	// Output:
	// passed
	// passed
	// penstock: flow rule "orders" blocked "GET /orders"
}

func ExampleCall() {
	guard, err := api.New(api.Config{})
	if err != nil {
		panic(err)
	}
	defer guard.Close()

	total, err := api.CallOn(context.Background(), guard, "sum", func(context.Context) (int, error) {
		return 40 + 2, nil
	})
	fmt.Println(total, err)
	// Output: 42 <nil>
}

// Only errors that the resource is responsible for open its breaker.
func ExampleGuard_FailWhen() {
	guard, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Breaker: []breaker.Rule{
		{Resource: "GET /orders", Strategy: breaker.ConsecutiveErrors, Threshold: 2},
	}})
	if err != nil {
		panic(err)
	}
	notFound, timeout := errors.New("not found"), errors.New("timeout")
	guard.FailWhen("GET /orders", func(err error) bool {
		return !errors.Is(err, notFound) && !errors.Is(err, context.Canceled)
	})

	for _, result := range []error{notFound, notFound, notFound, timeout, timeout, nil} {
		err := guard.Do(context.Background(), "GET /orders", func(context.Context) error { return result })
		fmt.Println(err)
	}
	// Output:
	// not found
	// not found
	// not found
	// timeout
	// timeout
	// penstock: breaker rule "breaker:GET /orders:consecutiveErrors" blocked "GET /orders"
}

// A call that is never exited holds its permits forever. With LeakAfter, the guard reports its
// caller.
func ExampleGuard_Leaks() {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, LeakAfter: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	forgetful := func() {
		if _, err := guard.Entry(context.Background(), "GET /orders"); err != nil {
			panic(err)
		}
		// no Exit
	}
	forgetful()
	clock.Advance(time.Hour)
	for _, leak := range guard.Leaks() {
		function, _, _ := strings.Cut(leak.Stack, "\n") // followed by the source position and the callers
		fmt.Println(leak.Resource, "is open since", leak.Age, "by", path.Base(function))
	}
	// Output: GET /orders is open since 1h0m0s by api_test.ExampleGuard_Leaks.func1
}

// A rule that acts over seconds is tested in no time with a clock that stands still.
func ExampleNew_manualClock() {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "mail", Threshold: 1, Interval: time.Minute, Window: flow.Ring}}})
	if err != nil {
		panic(err)
	}
	for range 2 {
		for range 2 {
			e, err := guard.Entry(context.Background(), "mail")
			fmt.Println(err == nil)
			e.Exit()
		}
		clock.Advance(time.Minute)
	}
	// Output:
	// true
	// false
	// true
	// false
}

func ExampleGuard_Drain() {
	guard, err := api.New(api.Config{})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Isolation: []isolation.Rule{
		{Resource: "GET /report", Threshold: 1, MaxQueue: 10, MaxWait: time.Minute}}})
	if err != nil {
		panic(err)
	}
	server := new(http.Server)
	ctx := context.Background()
	server.RegisterOnShutdown(func() { _ = guard.Drain(ctx) })

	runs, err := guard.Entry(ctx, "GET /report")
	if err != nil {
		panic(err)
	}
	go func() {
		if err := server.Shutdown(ctx); err != nil {
			panic(err)
		}
	}()
	_, err = guard.Entry(ctx, "GET /report") // would wait for a minute
	fmt.Println(errors.Is(err, api.ErrDraining))
	runs.Exit()
	fmt.Println(guard.Drain(ctx)) // all have ended
	// Output:
	// true
	// <nil>
}
