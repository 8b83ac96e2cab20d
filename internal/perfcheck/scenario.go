package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// scenario is something whose cost is watched.
type scenario struct {
	name string
	// of names the scenario that this one is measured against, and most is how many
	// times the cost of that one it may cost. The usual figure is about two thirds of it.
	of   string
	most float64
	// instructions is how many a call may take, 0 if they are not counted.
	instructions int
	// batch is how many calls are timed at once, 0 for the usual number.
	batch int
	setup func() (run func(calls int))
}

const clock = "two clock readings"

var scenarios = []scenario{
	{name: clock, setup: func() func(int) {
		began := time.Now()
		return func(n int) {
			for range n {
				_ = time.Since(began)
				_ = time.Since(began)
			}
		}
	}},
	{name: "no rule", of: clock, most: 3.7, instructions: 2050, setup: calls{}.setup},
	{name: "one rule", of: clock, most: 4.4, instructions: 2450, setup: calls{rules: ruled(1, hot)}.setup},
	{name: "four nodes", of: clock, most: 5.8, instructions: 3300, setup: calls{
		rules: ruled(1, hot), opts: []core.Option{api.Inbound()}, ctx: api.WithContext(context.Background(), "web", "app")}.setup},
	// A batch has so many calls that traffic is dense to the clock, on a slow machine too.
	{name: "coarse clock", of: clock, most: 3.2, batch: 1000, setup: calls{rules: ruled(1, hot), coarse: true}.setup},
	{name: "blocked", of: "one rule", most: 0.8, instructions: 1550, setup: calls{
		rules: []flow.Rule{{Resource: hot, Threshold: 1, Interval: 24 * time.Hour}}}.setup},
	{name: "six families", of: clock, most: 11, instructions: 5400, setup: sixFamilies},
	{name: "ten rules", of: "one rule", most: 1.6, setup: calls{rules: ruled(10, hot)}.setup},
	{name: "rules elsewhere", of: "one rule", most: 1.4, setup: calls{rules: append(elsewhere(10_000), ruled(1, hot)...)}.setup},
	{name: "names in turn", of: clock, most: 4.8, setup: func() func(int) {
		g, names := newGuard(nil, false), inTurn()
		return func(n int) {
			for i := range n {
				e, _ := g.Entry(context.Background(), names[i%len(names)])
				e.Exit()
			}
		}
	}},
	{name: "handles in turn", of: "names in turn", most: 1, instructions: 2050, setup: func() func(int) {
		g := newGuard(nil, false)
		var handles []*api.Handle
		for _, name := range inTurn() {
			handles = append(handles, g.Resource(name))
		}
		return func(n int) {
			for i := range n {
				e, _ := handles[i%len(handles)].Entry(context.Background())
				e.Exit()
			}
		}
	}},
}

const hot = "GET /orders"

// calls are calls of one hot resource.
type calls struct {
	rules  []flow.Rule
	opts   []core.Option
	ctx    context.Context
	coarse bool
}

func (c calls) setup() func(int) {
	g, ctx := newGuard(c.rules, c.coarse), c.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	return func(n int) {
		for range n {
			e, _ := g.Entry(ctx, hot, c.opts...)
			e.Exit()
		}
	}
}

// sixFamilies are calls that a rule of each of six families judges and none refuses:
// inbound, with a caller and a value, on four nodes.
func sixFamilies() func(int) {
	g := loaded(rules.Set{
		Authority: []authority.Rule{{Resource: hot, Origins: []string{"app"}}},
		System:    []system.Rule{{Metric: system.QPS, Threshold: 1e9}},
		Hotspot:   []hotspot.Rule{{Resource: hot, Param: "user", Threshold: 1e9}},
		Flow:      ruled(1, hot),
		Isolation: []isolation.Rule{{Resource: hot, Threshold: 1e9}},
		Breaker:   []breaker.Rule{{Resource: hot, Threshold: 0.5}},
	}, false)
	ctx, user := api.WithContext(context.Background(), "web", "app"), "ann"
	return func(n int) {
		for range n {
			e, _ := g.Entry(ctx, hot, api.Inbound(), api.Param("user", user))
			e.Exit()
		}
	}
}

// newGuard is loaded with flow rules.
func newGuard(set []flow.Rule, coarse bool) *api.Guard {
	return loaded(rules.Set{Flow: set}, coarse)
}

// loaded returns a guard for as long as the program runs.
func loaded(set rules.Set, coarse bool) *api.Guard {
	cfg := api.Config{Logger: slog.New(slog.DiscardHandler), Caps: node.Caps{Resources: 100_000}}
	if coarse {
		cfg.Clock = core.NewCoarseClock()
	}
	g, err := api.New(cfg)
	if err == nil {
		err = g.LoadRules(set)
	}
	if err != nil {
		panic(err) // the scenarios are written here
	}
	return g
}

// ruled are rules that never refuse.
func ruled(n int, resource string) []flow.Rule {
	set := make([]flow.Rule, n)
	for i := range set {
		set[i] = flow.Rule{ID: fmt.Sprint(resource, i), Resource: resource, Threshold: 1e9 + float64(i)}
	}
	return set
}

func elsewhere(n int) []flow.Rule {
	set := make([]flow.Rule, 0, n)
	for i := range n {
		set = append(set, ruled(1, fmt.Sprint("GET /", i))...)
	}
	return set
}

func inTurn() []string {
	names := make([]string, 8)
	for i := range names {
		names[i] = fmt.Sprint("GET /orders/", i)
	}
	return names
}
