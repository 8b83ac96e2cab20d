package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/bench/measure"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

const (
	resource = "GET /orders"
	enough   = 1e9 // a limit that nobody reaches
	never    = 24 * time.Hour
	endpoint = "10.0.0.7:8080"
	inTurn   = 8 // resources
)

// way is a Penstock call under certain rules.
type way struct {
	name   string
	rules  rules.Set
	config func() (cfg api.Config, done func())
	ctx    func(context.Context) context.Context
	opts   []engine.Option
	handle bool // the call uses a handle instead of the name
	// call replaces an Entry of the resource unless nil.
	call func(g *api.Guard, ctx context.Context) func() bool
	// before runs once, after the rules are loaded.
	before func(g *api.Guard)
	// refused means that no call passes, or only the first.
	refused bool
}

// ways are the rows of the first two tables. The rows that targets refer to come first, and are
// found by name.
var ways = []way{
	{name: "no rule"},
	{name: "one reject rule", rules: one(flow.Rule{Threshold: enough})},
	{name: "four nodes", rules: one(flow.Rule{Threshold: enough}), ctx: fromApp, opts: []engine.Option{api.Inbound()}},
	{name: "coarse clock", rules: one(flow.Rule{Threshold: enough}), config: coarse},
	{name: "refused", rules: one(flow.Rule{Threshold: 1, Interval: never}), refused: true},
	{name: "handle", rules: one(flow.Rule{Threshold: enough}), handle: true},
	{name: "names in turn", call: func(g *api.Guard, ctx context.Context) func() bool {
		list, i := names(inTurn), 0
		return func() bool {
			e, err := g.Entry(ctx, list[i%inTurn])
			e.Exit()
			i++
			return err == nil
		}
	}},
	{name: "handles in turn", call: func(g *api.Guard, ctx context.Context) func() bool {
		var list [inTurn]*api.Handle
		for i, name := range names(inTurn) {
			list[i] = g.Resource(name)
		}
		i := 0
		return func() bool {
			e, err := list[i%inTurn].Entry(ctx)
			e.Exit()
			i++
			return err == nil
		}
	}},
	{name: "ten rules", rules: ten()},
	{name: "rules elsewhere", rules: elsewhere(10_000), config: manyNames},

	{name: "concurrency", rules: one(flow.Rule{Threshold: enough, Metric: flow.Concurrency})},
	{name: "warm-up", rules: one(flow.Rule{Threshold: enough, Behavior: flow.WarmUp})},
	{name: "throttle, no wait", rules: one(flow.Rule{Threshold: enough, Behavior: flow.Throttle})},
	{name: "by memory", config: halfFull, rules: one(flow.Rule{
		Threshold: enough, MemoryThreshold: enough / 2, LowMemory: flow.Share(0.25), HighMemory: flow.Share(0.75),
	})},
	{name: "isolation", rules: rules.Set{Isolation: []isolation.Rule{{Resource: resource, Threshold: enough}}}},
	{name: "adaptive", rules: rules.Set{Adaptive: []adaptive.Rule{{Resource: resource}}}},
	{name: "breaker", rules: rules.Set{Breaker: []breaker.Rule{{Resource: resource, Threshold: 0.5}}}},
	{name: "outlier", rules: rules.Set{Outlier: []outlier.Rule{{Resource: resource, Threshold: 0.5}}}, opts: []engine.Option{api.Endpoint(endpoint)}},
	{name: "hotspot, a string", rules: hot(enough), opts: []engine.Option{api.Param("user", "u-1")}},
	{name: "hotspot, an int", rules: hot(enough), opts: []engine.Option{api.Param("user", 7)}},
	{name: "system", rules: rules.Set{System: []system.Rule{{Metric: system.QPS, Threshold: enough}}}, opts: []engine.Option{api.Inbound()}},
	{name: "authority", rules: callers("app"), ctx: fromApp},
	{name: "six families", rules: six(), ctx: fromApp, opts: []engine.Option{api.Inbound(), api.Param("user", "u-1")}},
	{name: "one of each family", rules: each(), ctx: fromApp, opts: []engine.Option{api.Inbound(), api.Param("user", "u-1"), api.Endpoint(endpoint)}},

	{name: "refused: concurrency", rules: one(flow.Rule{Metric: flow.Concurrency}), refused: true},
	{name: "refused: warm-up", rules: one(flow.Rule{Threshold: 1, Interval: never, Behavior: flow.WarmUp}), refused: true},
	{name: "refused: throttle", rules: one(flow.Rule{Threshold: 1, Interval: never, Behavior: flow.Throttle}), refused: true},
	{name: "refused: isolation", rules: rules.Set{Isolation: []isolation.Rule{{Resource: resource}}}, refused: true},
	{name: "refused: breaker", before: trip, refused: true, rules: rules.Set{Breaker: []breaker.Rule{
		{Resource: resource, Strategy: breaker.ErrorCount, Threshold: 1, MinCalls: 1, Recovery: never},
	}}},
	{name: "refused: hotspot, a string", rules: hot(0), opts: []engine.Option{api.Param("user", "u-1")}, refused: true},
	{name: "refused: hotspot, an int", rules: hot(0), opts: []engine.Option{api.Param("user", 7)}, refused: true},
	{name: "refused: system", rules: rules.Set{System: []system.Rule{{Metric: system.Concurrency}}}, opts: []engine.Option{api.Inbound()}, refused: true},
	{name: "refused: authority", rules: callers("somebody else"), ctx: fromApp, refused: true},
}

func one(r flow.Rule) rules.Set {
	r.Resource = resource
	return rules.Set{Flow: []flow.Rule{r}}
}

func ten() (set rules.Set) {
	for i := range 10 {
		set.Flow = append(set.Flow, flow.Rule{Resource: resource, Threshold: enough + float64(i)})
	}
	return set
}

func elsewhere(n int) rules.Set {
	set := one(flow.Rule{Threshold: enough})
	for _, name := range names(n) {
		set.Flow = append(set.Flow, flow.Rule{Resource: name, Threshold: 100})
	}
	return set
}

func hot(threshold float64) rules.Set {
	return rules.Set{Hotspot: []hotspot.Rule{{Resource: resource, Param: "user", Threshold: threshold}}}
}

func callers(name string) rules.Set {
	return rules.Set{Authority: []authority.Rule{{Resource: resource, Origins: []string{name}}}}
}

// six returns rules of the families that neither learn a limit nor eject endpoints.
func six() rules.Set {
	return rules.Set{
		Authority: callers("app").Authority,
		System:    []system.Rule{{Metric: system.QPS, Threshold: enough}},
		Hotspot:   hot(enough).Hotspot,
		Flow:      one(flow.Rule{Threshold: enough}).Flow,
		Isolation: []isolation.Rule{{Resource: resource, Threshold: enough}},
		Breaker:   []breaker.Rule{{Resource: resource, Threshold: 0.5}},
	}
}

func each() rules.Set {
	set := six()
	set.Adaptive = []adaptive.Rule{{Resource: resource}}
	set.Outlier = []outlier.Rule{{Resource: resource, Threshold: 0.5}}
	return set
}

func fromApp(ctx context.Context) context.Context {
	return api.WithOrigin(api.WithContext(ctx, "web"), "app")
}

func coarse() (api.Config, func()) {
	clock := clocks.NewCoarse()
	return api.Config{Clock: clock}, func() { clock.Close() }
}

// halfFull simulates a machine that uses half of its memory.
func halfFull() (api.Config, func()) { return api.Config{Host: fixed{}}, func() {} }

type fixed struct{}

func (fixed) Load(int64) (float64, error) { return 0, nil }
func (fixed) CPU(int64) (float64, error)  { return 0, nil }
func (fixed) Memory(int64) (host.Memory, error) {
	return host.Memory{Used: 1 << 30, Limit: 2 << 30}, nil
}

func manyNames() (api.Config, func()) {
	return api.Config{Caps: node.Caps{Resources: 200_000, Calls: 200_000}}, func() {}
}

func trip(g *api.Guard) {
	e, err := g.Entry(context.Background(), resource)
	if err == nil {
		e.Fail(errors.New("down"))
		e.Exit()
	}
}

// names returns n different names of resources.
func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("GET /r/%06d", i)
	}
	return list
}

// open returns the guard and a call of it that reports whether it passed.
func (w way) open() (call func() bool, g *api.Guard, done func()) {
	g, ctx, done := w.guard()
	if w.call != nil {
		return w.call(g, ctx), g, done
	}
	once := w.loop(g, ctx)
	return func() bool { return once(1) }, g, done
}

func (w way) guard() (g *api.Guard, ctx context.Context, done func()) {
	cfg, closed := api.Config{}, func() {}
	if w.config != nil {
		cfg, closed = w.config()
	}
	g = guard(cfg, w.rules)
	if w.before != nil {
		w.before(g)
	}
	ctx = context.Background()
	if w.ctx != nil {
		ctx = w.ctx(ctx)
	}
	return g, ctx, func() { g.Close(); closed() }
}

// work returns any number of the way's calls. Calls by name are made without a function of this
// program in between, which would be a tenth of their cost.
func (w way) work() measure.Work {
	if w.call != nil {
		call, _, done := w.open()
		return measure.Work{Stop: done, Call: func(_, n int) {
			for range n {
				call()
			}
		}}
	}
	g, ctx, done := w.guard()
	loop := w.loop(g, ctx)
	return measure.Work{Stop: done, Call: func(_, n int) { loop(n) }}
}

// loop makes n calls and reports whether the last one passed.
func (w way) loop(g *api.Guard, ctx context.Context) func(n int) bool {
	opts := w.opts
	if w.handle {
		h := g.Resource(resource)
		return func(n int) (passed bool) {
			for range n {
				e, err := h.Entry(ctx, opts...)
				e.Exit()
				passed = err == nil
			}
			return passed
		}
	}
	return func(n int) (passed bool) {
		for range n {
			e, err := g.Entry(ctx, resource, opts...)
			e.Exit()
			passed = err == nil
		}
		return passed
	}
}

// apart returns the work of callers that share nothing: each has its own guard.
func (w way) apart(callers int) measure.Work {
	all := make([]measure.Work, callers)
	for i := range all {
		all[i] = w.work()
	}
	return measure.Work{
		Stop: func() {
			for _, own := range all {
				own.Stop()
			}
		},
		Call: func(i, n int) { all[i].Call(i, n) },
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
