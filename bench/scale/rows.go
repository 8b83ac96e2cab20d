package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/bench/measure"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

const (
	resource = "GET /orders"
	enough   = 1e9 // a limit that nobody reaches
)

// row is a kind of traffic.
type row struct {
	name  string
	start func(callers int) measure.Work
}

var rows = []row{
	{"two clock readings", clockReadings},
	{"no rule", guarded(rules.Set{}, nil)},
	{"reject rule", guarded(one(flow.Rule{Threshold: enough}), nil)},
	{"strict rule", guarded(one(flow.Rule{Threshold: enough, Window: flow.Strict}), nil)},
	{"coarse clock", guarded(one(flow.Rule{Threshold: enough}), coarse)},
	{"concurrency rule", guarded(rules.Set{Isolation: []isolation.Rule{{Resource: resource, Threshold: enough}}}, nil)},
	{"nearly all refused", guarded(one(flow.Rule{Threshold: 1, Interval: 24 * time.Hour}), nil)},
	{"own, no rule", apart(false)},
	{"own, reject rule", apart(true)},
}

func one(r flow.Rule) rules.Set {
	r.Resource = resource
	return rules.Set{Flow: []flow.Rule{r}}
}

func coarse() (clocks.Clock, func()) {
	clock := clocks.NewCoarse()
	return clock, func() { clock.Close() }
}

func clockReadings(int) measure.Work { return measure.Work{Call: measure.Readings} }

// guarded has all callers call one resource.
func guarded(set rules.Set, clock func() (clocks.Clock, func())) func(int) measure.Work {
	return func(int) measure.Work {
		cfg, closed := api.Config{}, func() {}
		if clock != nil {
			cfg.Clock, closed = clock()
		}
		g := guard(cfg, set)
		return measure.Work{
			Stop: func() { g.Close(); closed() },
			Call: func(_, n int) { calls(g, resource, n) },
		}
	}
}

// apart has each caller call a resource of its own.
func apart(limited bool) func(int) measure.Work {
	return func(callers int) measure.Work {
		var set rules.Set
		names := make([]string, callers)
		for i := range names {
			names[i] = fmt.Sprintf("GET /r/%02d", i)
			if limited {
				set.Flow = append(set.Flow, flow.Rule{Resource: names[i], Threshold: enough})
			}
		}
		g := guard(api.Config{}, set)
		return measure.Work{
			Stop: func() { g.Close() },
			Call: func(caller, n int) { calls(g, names[caller], n) },
		}
	}
}

func calls(g *api.Guard, resource string, n int) {
	ctx := context.Background()
	for range n {
		e, _ := g.Entry(ctx, resource)
		e.Exit()
	}
}

// guard is a Guard that logs nothing. What is configured here is right, so an error
// is a mistake in this program.
func guard(cfg api.Config, set rules.Set) *api.Guard {
	cfg.Logger = slog.New(slog.DiscardHandler)
	g, err := api.New(cfg)
	if err == nil {
		err = g.LoadRules(set)
	}
	if err != nil {
		panic(err)
	}
	return g
}
