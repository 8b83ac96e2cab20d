package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

const (
	resource = "GET /orders"
	enough   = 1e9 // a limit that nobody reaches
)

// row is a kind of traffic on one hot resource.
type row struct {
	name string
	// start makes all callers share a Guard or, if each, gives every caller its own: then processors
	// share nothing.
	start func(callers int, each bool) measure.Work
}

var rows = []row{
	{"clock read twice", clockReadings},
	{"and a shared CAS", exchanges},
	{"no rule", guarded(rules.Set{}, nil)},
	{"strict rule", guarded(one(flow.Rule{Threshold: enough}), nil)},
	{"reject, a ring", guarded(one(flow.Rule{Threshold: enough, Window: flow.Ring}), nil)},
	{"refused, limit 0", guarded(one(flow.Rule{}), nil)},
	{"100 a second", guarded(one(flow.Rule{Threshold: 100}), nil)},
	// In 20 ms, as long as a batch of calls: units saved up over a second are not part of this
	// measurement.
	{"100,000 a second", guarded(one(flow.Rule{Threshold: 2_000, Interval: 20 * time.Millisecond, Buckets: 20}), nil)},
	{"concurrency rule", guarded(rules.Set{Isolation: []isolation.Rule{{Resource: resource, Threshold: enough}}}, nil)},
	{"system QPS", guarded(rules.Set{System: []system.Rule{{Metric: system.QPS, Threshold: enough}}}, nil, api.Inbound())},
	// All calls of a value share its mutex and counts, refused ones too.
	{"one hot value", guarded(ofValues(enough), nil, api.Param("user", "ann"))},
	{"a value refused", guarded(ofValues(0), nil, api.Param("user", "ann"))},
	{"coarse clock", guarded(one(flow.Rule{Threshold: enough}), coarse)},
}

func one(r flow.Rule) rules.Set {
	r.Resource = resource
	return rules.Set{Flow: []flow.Rule{r}}
}

func ofValues(threshold float64) rules.Set {
	return rules.Set{Hotspot: []hotspot.Rule{{Resource: resource, Param: "user", Threshold: threshold}}}
}

func coarse() (clocks.Clock, func()) {
	clock := clocks.NewCoarse()
	return clock, func() { clock.Close() }
}

// clockReadings is the unit.
func clockReadings(int, bool) measure.Work { return measure.Work{Call: measure.Readings} }

// exchanges is the minimum cost of an exact limit that all processors write to.
func exchanges(callers int, each bool) measure.Work {
	words := make([]struct {
		atomic.Uint64
		_ [120]byte
	}, callers)
	return measure.Work{Call: func(caller, n int) {
		if !each {
			caller = 0
		}
		for range n {
			measure.Readings(caller, 1)
			for w := &words[caller]; ; {
				if old := w.Load(); w.CompareAndSwap(old, old+1) {
					break
				}
			}
		}
	}}
}

func guarded(set rules.Set, clock func() (clocks.Clock, func()), options ...api.Option) func(int, bool) measure.Work {
	return func(callers int, each bool) measure.Work {
		guards := make([]*api.Guard, callers)
		var closed []func()
		for i := range guards {
			if i > 0 && !each {
				guards[i] = guards[0]
				continue
			}
			cfg := api.Config{}
			if clock != nil {
				var stop func()
				cfg.Clock, stop = clock()
				closed = append(closed, stop)
			}
			guards[i] = guard(cfg, set)
			closed = append([]func(){func() { guards[i].Close() }}, closed...)
		}
		return measure.Work{
			Stop: func() {
				for _, end := range closed {
					end()
				}
			},
			Call: func(caller, n int) { calls(guards[caller], n, options) },
		}
	}
}

func calls(g *api.Guard, n int, options []api.Option) {
	ctx := context.Background()
	for range n {
		e, _ := g.Entry(ctx, resource, options...)
		e.Exit()
	}
}

// guard returns a Guard that logs nothing. The configuration is fixed, so an error is a bug in this
// program.
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
