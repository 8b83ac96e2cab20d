package hotspot_test

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
)

// Every user gets two calls per second, and one of them gets more. A call without a user is refused.
func Example() {
	guard, err := api.New(api.Config{Clock: api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{
		ID: "users", Resource: "GET /orders", Param: "user", Threshold: 2, Missing: hotspot.MissingRefuse,
		Exceptions: []hotspot.Exception{{Value: hotspot.ValueOf("batch"), Threshold: 4}},
	}}})
	if err != nil {
		panic(err)
	}
	for _, user := range []string{"ann", "bob", "batch", ""} {
		passed := 0
		for range 10 {
			if e, err := guard.Entry(context.Background(), "GET /orders", api.Param("user", user)); err == nil {
				passed++
				e.Exit()
			}
		}
		fmt.Printf("%q: %d of 10\n", user, passed)
	}
	// Output:
	// "ann": 2 of 10
	// "bob": 2 of 10
	// "batch": 4 of 10
	// "": 0 of 10
}

// Each app of each tenant gets two calls per second; acme's mobile app gets more.
func ExampleRule_keys() {
	guard, err := api.New(api.Config{Clock: api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{
		ID: "per-app", Resource: "*", Keys: []string{"param tenant", "origin", "resource"}, Threshold: 2,
		Exceptions: []hotspot.Exception{
			{Values: []argument.Value{hotspot.ValueOf("acme"), hotspot.ValueOf("mobile"), hotspot.ValueOf("*")}, Threshold: 4},
		},
	}}})
	if err != nil {
		panic(err)
	}
	for _, of := range [][3]string{
		{"acme", "mobile", "GET /orders"}, {"acme", "mobile", "GET /users"}, {"acme", "web", "GET /orders"}, {"globex", "mobile", "GET /orders"},
	} {
		passed := 0
		for range 10 {
			if e, err := guard.Entry(api.WithOrigin(context.Background(), of[1]), of[2], api.Param("tenant", of[0])); err == nil {
				passed++
				e.Exit()
			}
		}
		fmt.Printf("%q: %d of 10\n", of, passed)
	}
	// Output:
	// ["acme" "mobile" "GET /orders"]: 4 of 10
	// ["acme" "mobile" "GET /users"]: 4 of 10
	// ["acme" "web" "GET /orders"]: 2 of 10
	// ["globex" "mobile" "GET /orders"]: 2 of 10
}

// The limit of each user comes from a database. Until it has answered, the threshold holds.
func ExampleRule_limitsFromCode() {
	limitOf := func(_ context.Context, user string) (float64, error) {
		return map[string]float64{"ann": 4}[user], nil // here, a query
	}
	answered := make(chan struct{}, 1)
	guard, err := api.New(api.Config{
		Clock: api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		Limits: func(ctx context.Context, rule string, key argument.Value) (float64, time.Duration, error) {
			defer func() { answered <- struct{}{} }()
			user, _ := key.Scalar().(string)
			limit, err := limitOf(ctx, user)
			return limit, time.Minute, err // for a minute; then it is asked again
		},
	})
	if err != nil {
		panic(err)
	}
	err = guard.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{
		ID: "users", Resource: "GET /orders", Param: "user", Threshold: 1, LimitsFromCode: true,
	}}})
	if err != nil {
		panic(err)
	}
	passes := func() bool {
		e, err := guard.Entry(context.Background(), "GET /orders", api.Param("user", "ann"))
		e.Exit()
		return err == nil
	}
	fmt.Println("first:", passes())
	<-answered
	guard.Close() // which waits until the answer holds
	for i := range 4 {
		fmt.Printf("%d: %v\n", i+2, passes())
	}
	// Output:
	// first: true
	// 2: true
	// 3: true
	// 4: true
	// 5: false
}
