package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/slots"
	"github.com/penstock-go/penstock/system"
)

const hot = "GET /orders"

// calls are calls of one hot resource. The zero value is calls without a rule.
type calls struct {
	rules   rules.Set
	opts    []engine.Option
	ctx     context.Context       // nil means context.Background
	clock   func() *clocks.Coarse // nil means the machine's
	ownSlot bool                  // the chain has a custom slot
}

func (c calls) setup() func(int) { return c.on(c.guard()) }

// on makes the calls on a guard. The compiler inlines Entry into the loop, as it does in most
// programs, only if on itself is not inlined elsewhere.
//
//go:noinline
func (c calls) on(g *api.Guard) func(int) {
	ctx := cmp.Or(c.ctx, context.Background())
	return func(n int) {
		for range n {
			e, _ := g.Entry(ctx, hot, c.opts...)
			e.Exit()
		}
	}
}

func (c calls) guard() *api.Guard {
	var cfg api.Config
	if c.clock != nil {
		cfg.Clock = c.clock()
	}
	if c.ownSlot {
		cfg.Chain = slots.Default().With(content{nothing}, slots.Before("flow"))
	}
	return newGuard(cfg, c.rules)
}

// content is a custom slot that looks at every call and accepts all.
type content struct{ slots.AskOnly }

func (content) Name() string { return "content" }

func nothing(slots.Call) slots.Verdict { return slots.Verdict{} }

// sixFamilies makes calls that are checked by a rule of each of six families and refused by none:
// inbound, with a caller and a value, on four nodes.
func sixFamilies() func(int) {
	g := newGuard(api.Config{}, rules.Set{
		Authority: []authority.Rule{{Resource: hot, Origins: []string{"app"}}},
		System:    []system.Rule{{Metric: system.QPS, Threshold: 1e9}},
		Hotspot:   []hotspot.Rule{{Resource: hot, Param: "user", Threshold: 1e9}},
		Flow:      ruled(1, hot),
		Isolation: []isolation.Rule{{Resource: hot, Threshold: 1e9}},
		Breaker:   []breaker.Rule{{Resource: hot, Threshold: 0.5}},
	})
	user := "ann"
	return func(n int) {
		for range n {
			e, _ := g.Entry(fromApp, hot, api.Inbound(), api.Param("user", user))
			e.Exit()
		}
	}
}

// turnAtOnce makes calls under a throttle whose turn is due on arrival.
func turnAtOnce(opts []engine.Option) func() func(int) {
	return calls{opts: opts, rules: rules.Set{
		Flow: []flow.Rule{{Resource: hot, Threshold: 1e9, Behavior: flow.Throttle}}}}.setup
}

// turnAwaited makes calls under a throttle that each wait for their turn.
func turnAwaited(ctx context.Context, opts ...engine.Option) func() func(int) {
	return func() func(int) {
		g := newGuard(api.Config{Clock: new(moved)}, rules.Set{
			Flow: []flow.Rule{{Resource: hot, Threshold: 100, Behavior: flow.Throttle}}})
		return func(n int) {
			for range n {
				e, _ := g.Entry(ctx, hot, opts...)
				e.Exit()
			}
		}
	}
}

// moved is a clock that only sleeping calls move, one at a time.
type moved struct{ now int64 }

func (c *moved) Now() int64 { return c.now }

func (c *moved) Sleep(_ context.Context, d time.Duration) error {
	c.now += int64(d)
	return nil
}

// namesInTurn makes calls of eight resources by their names.
func namesInTurn() func(int) {
	g, names := newGuard(api.Config{}, rules.Set{}), inTurn()
	return func(n int) {
		for i := range n {
			e, _ := g.Entry(context.Background(), names[i%len(names)])
			e.Exit()
		}
	}
}

// handlesInTurn makes the same calls by handles.
func handlesInTurn() func(int) {
	g := newGuard(api.Config{}, rules.Set{})
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
}

// newGuard returns a guard that lives as long as the program.
func newGuard(cfg api.Config, set rules.Set) *api.Guard {
	cfg.Logger, cfg.Caps = slog.New(slog.DiscardHandler), node.Caps{Resources: 100_000}
	g, err := api.New(cfg)
	if err == nil {
		err = g.LoadRules(set)
	}
	if err != nil {
		panic(err) // the scenarios are fixed
	}
	return g
}

// flowRules returns n rules for the hot resource that never refuse.
func flowRules(n int) rules.Set { return rules.Set{Flow: ruled(n, hot)} }

// twoFamilies returns a flow rule that never refuses, and an isolation rule with the given limit.
func twoFamilies(inFlight int) rules.Set {
	return rules.Set{Flow: ruled(1, hot), Isolation: []isolation.Rule{{Resource: hot, Threshold: inFlight}}}
}

// elsewhere returns n rules for other resources, and one for the hot resource.
func elsewhere(n int) rules.Set {
	var set []flow.Rule
	for i := range n {
		set = append(set, ruled(1, fmt.Sprint("GET /", i))...)
	}
	return rules.Set{Flow: append(set, ruled(1, hot)...)}
}

// ruled returns n rules for a resource that never refuse.
func ruled(n int, resource string) []flow.Rule {
	set := make([]flow.Rule, n)
	for i := range set {
		set[i] = flow.Rule{ID: fmt.Sprint(resource, i), Resource: resource, Threshold: 1e9 + float64(i)}
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
