package flow_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// A reload admits nothing that the previous rules would have refused, and earlier calls still count.
// Each line spends some units, loads other rules, and gives the units that remain.
// known bug 72
func TestReload(t *testing.T) {
	const minute = time.Minute
	orders := func(r flow.Rule) flow.Rule {
		r.ID, r.Resource = "r", "orders"
		return r
	}
	tenAMinute := orders(flow.Rule{Threshold: 10, Interval: minute, Buckets: 6})
	for _, tt := range []struct {
		name   string
		before flow.Rule
		after  flow.Rule
		left   int // of many calls, after 7 were made
	}{
		{"unchanged", tenAMinute, tenAMinute, 3},
		{"a higher threshold", tenAMinute, orders(flow.Rule{Threshold: 15, Interval: minute, Buckets: 6}), 8},
		{"a lower threshold", tenAMinute, orders(flow.Rule{Threshold: 5, Interval: minute, Buckets: 6}), 0},
		{"another ID", tenAMinute, flow.Rule{ID: "x", Resource: "orders", Threshold: 10, Interval: minute, Buckets: 6}, 3},
		{"a pattern instead of the name", tenAMinute, flow.Rule{ID: "r", Resource: "or.*", Match: spec.MatchRegex, Threshold: 10, Interval: minute, Buckets: 6}, 3},
		{"other buckets", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: minute, Buckets: 60}), 3},
		{"a longer interval", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: time.Hour}), 3},
		{"a shorter interval", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: time.Second}), 3},
		{"strict", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: minute, Window: flow.Strict}), 3},
		{"to a caller", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: minute, Origin: "app"}), 3},
		{"to others", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: minute, Origin: "other"}), 3},
		{"to a path", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: minute, Relation: flow.Chain, Ref: "web"}), 3},
		{"to another resource, which is it itself", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: minute, Relation: flow.Associated, Ref: "orders"}), 3},
		{"shadow", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: minute, Mode: spec.Shadow}), 20},
		{"off", tenAMinute, orders(flow.Rule{Threshold: 10, Interval: minute, Mode: spec.Off}), 20},
		{"nothing more", tenAMinute, orders(flow.Rule{Threshold: 0}), 0},
		{"hold after shadow mode", orders(flow.Rule{Threshold: 3, Interval: minute, Mode: spec.Shadow}), tenAMinute, 3},
		{"hold after shadow mode, the same shape", orders(flow.Rule{Threshold: 3, Interval: minute, Buckets: 6, Mode: spec.Shadow}), tenAMinute, 3},
		{"hold after nothing", orders(flow.Rule{Threshold: 3, Mode: spec.Off}), tenAMinute, 3},
		{"a queue's next cost", orders(flow.Rule{Threshold: 10, Behavior: flow.Throttle, MaxWait: time.Second}),
			orders(flow.Rule{Threshold: 1, Behavior: flow.Throttle, MaxWait: 3 * time.Second}), 2}, // six tenths wait already
		{"a queue that may not be so long", orders(flow.Rule{Threshold: 10, Behavior: flow.Throttle, MaxWait: time.Second}),
			orders(flow.Rule{Threshold: 10, Behavior: flow.Throttle, MaxWait: 700 * ms}), 1},
		{"a queue in shadow mode", orders(flow.Rule{Threshold: 10, Behavior: flow.Throttle, MaxWait: 600 * ms}),
			orders(flow.Rule{Threshold: 10, Behavior: flow.Throttle, MaxWait: 600 * ms, Mode: spec.Shadow}), 20},
		{"warm-up goes on", orders(flow.Rule{Threshold: 30, Behavior: flow.WarmUp}), orders(flow.Rule{Threshold: 60, Behavior: flow.WarmUp}), 13},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(t, tt.before)
			require.Equal(t, 7, g.passes(7, "orders from app in web"))
			g.load(tt.after)
			assert.Equal(t, tt.left, g.passes(20, "orders from app in web"))
			again := g.passes(20, "orders from app in web")
			if tt.left < 20 {
				assert.Zero(t, again)
			}
		})
	}
}

// Rules are reloaded while many goroutines make calls, on a clock that stands still: the higher of
// the two limits holds exactly, and every decision sees one of the two.
// known bug 66, 69, 70, 72
func TestReloadUnderLoad(t *testing.T) {
	const low, high = 40, 60
	for round := range 20 {
		g := newGuard(t, flow.Rule{Resource: "orders", Threshold: low})
		var passed atomic.Int64
		var stop atomic.Bool
		var callers, loaders sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for range 300 {
					if e, err := g.Enter(t.Context(), "orders", nil); err == nil {
						passed.Add(1)
						e.Exit()
					}
				}
			})
		}
		for l := range 2 {
			loaders.Go(func() {
				for i := 0; !stop.Load(); i++ {
					rules := []flow.Rule{{Resource: "orders", Threshold: low}}
					if (i+l)%2 == 0 {
						rules = []flow.Rule{{Resource: "carts", Threshold: 1}, {Resource: "orders", Threshold: high}}
					}
					if err := g.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, rules) }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		callers.Wait()
		stop.Store(true)
		loaders.Wait()
		require.LessOrEqual(t, passed.Load(), int64(high), "round %d", round)
		require.GreaterOrEqual(t, passed.Load(), int64(low), "round %d", round)
		g.load(flow.Rule{Resource: "orders", Threshold: high})
		require.Equal(t, high, int(passed.Load())+g.passes(high, "orders"))
	}
}

// A rule that changes is still one rule in the block log: one line per second, and every refusal is
// in one.
func TestReloadAndTheBlockLog(t *testing.T) {
	var log strings.Builder
	rule := func(i int) flow.Rule { return flow.Rule{ID: "r", Resource: "orders", Threshold: float64(i%2) / 2} }
	g := newGuardWith(t, engine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, rule(0))
	for i := range 100 {
		g.load(rule(i))
		assert.Equal(t, "block", g.outcome("orders"))
	}
	assert.Equal(t, 1, strings.Count(log.String(), "\n"))
	g.clock.Advance(time.Second)
	assert.Equal(t, 2, strings.Count(log.String(), "\n"))
	assert.Contains(t, log.String(), "count=99")
	assert.Equal(t, "block", g.outcome("orders"))
	assert.Equal(t, 2, strings.Count(log.String(), "\n"))
	g.clock.Advance(time.Second)
	assert.Equal(t, 3, strings.Count(log.String(), "\n"))
}

// A rule keeps its counters when it changes.
func TestReloadKeepsFigures(t *testing.T) {
	rule := func(threshold float64) flow.Rule { return flow.Rule{ID: "r", Resource: "orders", Threshold: threshold} }
	g := newGuard(t, rule(0))
	g.passes(5, "orders")
	g.load(rule(1))
	g.passes(5, "orders")
	figures := g.Rules().RuleStats()
	require.Len(t, figures, 1)
	assert.Equal(t, int64(9), figures[0].Refused)
}

// Names in rules have nodes from the load on, outside the caps, until no rule names them.
func TestRulesPinWhatTheyName(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 1, Contexts: 1, Calls: 100, Origins: 1}},
		flow.Rule{Resource: "a", Threshold: 5, Origin: "app"},
		flow.Rule{Resource: "b", Threshold: 5, Relation: flow.Associated, Ref: "c"},
		flow.Rule{Resource: "d", Threshold: 5, Relation: flow.Chain, Ref: "web"},
		flow.Rule{Resource: "e", Threshold: 5, Mode: spec.Off})
	for _, name := range []string{"a", "b", "c", "d"} {
		g.resource(name)
	}
	_, ok := g.FindResource("e")
	assert.False(t, ok, "a rule that is off names nothing")
	_, ok = g.resource("a").Origins().Find("app")
	assert.True(t, ok)
	_, ok = g.Tree().Entrances().Find("web")
	assert.True(t, ok)
	assert.Zero(t, g.Tree().Resources().Used())

	g.passes(1, "x") // takes the only node
	assert.Zero(t, g.Tree().Evict(g.clock.Now()))
	g.clock.Advance(time.Hour)
	g.Tree().Evict(g.clock.Now())
	for _, name := range []string{"a", "b", "c", "d"} {
		g.resource(name)
	}
	_, ok = g.FindResource("x")
	assert.False(t, ok, "idle")

	g.load()
	g.Tree().Evict(g.clock.Now())
	for _, name := range []string{"a", "b", "c", "d"} {
		_, ok := g.FindResource(name)
		assert.False(t, ok, name)
	}
	assert.Zero(t, g.Tree().Resources().Used())
	assert.Zero(t, g.Tree().Origins().Used())
}

// An evicted resource returns with its limit still used up, or is not evicted at all: units spent
// in a long window keep it.
func TestEvictionForgetsNoLimit(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule flow.Rule
	}{
		{"a long window", flow.Rule{Threshold: 5, Interval: 24 * time.Hour}},
		{"of a caller", flow.Rule{Threshold: 5, Interval: 24 * time.Hour, Origin: "app"}},
		{"of other callers", flow.Rule{Threshold: 5, Interval: 24 * time.Hour, Origin: "other"}},
		{"of a path", flow.Rule{Threshold: 5, Interval: 24 * time.Hour, Relation: flow.Chain, Ref: "web"}},
		{"a long queue", flow.Rule{Threshold: 1, Interval: 24 * time.Hour, Behavior: flow.Throttle, MaxWait: 24 * time.Hour}},
	} {
		for _, reloads := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, reloads), func(t *testing.T) {
				tt.rule.Resource, tt.rule.Match = "or.*", spec.MatchRegex
				g := newGuard(t, tt.rule)
				idle := func() {
					if reloads { // a reload may release a name that only a pattern selects
						other := tt.rule
						g.load(other, flow.Rule{Resource: "carts", Threshold: float64(g.Rules().Revision)})
					}
					g.clock.Advance(10 * time.Minute)
					g.Tree().Evict(g.clock.Now())
				}
				passed := 0
				for range 8 {
					idle()
					passed += g.passes(1, "orders from app in web")
				}
				assert.Equal(t, max(2, int(tt.rule.Threshold)), passed)
			})
		}
	}
}

// The node of a caller that a pattern's rule names may be evicted and return; the rule continues
// with the window it has.
func TestEvictionOfANamedCaller(t *testing.T) {
	for _, changes := range []bool{false, true} {
		rule := flow.Rule{Resource: "or.*", Match: spec.MatchRegex, Threshold: 5, Interval: 24 * time.Hour, Origin: "app"}
		g := newGuard(t, rule)
		assert.Equal(t, 1, g.passes(1, "orders from web"))
		passed := 0
		for i := range 5 {
			if changes {
				rule.ID = fmt.Sprint("after ", i)
			}
			g.load(rule)
			g.Tree().Evict(g.clock.Now())
			passed += g.passes(3, "orders from app")
			g.clock.Advance(10 * time.Minute)
			g.Tree().Evict(g.clock.Now())
		}
		assert.Equal(t, 5, passed, "changes: %v", changes)
	}
}

// A call that has found its resource is delayed while the resource is evicted as idle and created
// again; together with the calls made in between it doesn't exceed the limit.
func TestEvictionUnderACall(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule flow.Rule
	}{
		{"window", flow.Rule{Resource: "or.*", Match: spec.MatchRegex, Threshold: 3}},
		{"queue", flow.Rule{Resource: "or.*", Match: spec.MatchRegex, Threshold: 10, Behavior: flow.Throttle, MaxWait: 200 * ms}},
		{"caller", flow.Rule{Resource: "or.*", Match: spec.MatchRegex, Threshold: 3, Origin: "app"}},
		{"only the other caller leaves", flow.Rule{Resource: "orders", Threshold: 3, Origin: "other"}},
		{"only the path leaves", flow.Rule{Resource: "orders", Threshold: 3, Relation: flow.Chain, Ref: node.DefaultContext}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var g *guard
			passed := 0
			held := true
			h := &hook{asked: func() {
				if held {
					held = false
					assert.Positive(t, g.Tree().Evict(g.clock.Now()))
					passed += g.passes(5, "orders from app")
				}
			}}
			g = newGuardWith(t, engine.Config{Chain: trial.Chain().With(h, engine.Before("flow"))}, tt.rule)
			passed += g.passes(1, "orders from app")
			assert.Equal(t, 3, passed)
			assert.Zero(t, g.passes(5, "orders from app"))
			totals := g.resource("orders").Totals()
			assert.Equal(t, int64(3), totals.Pass)
		})
	}
}

// A queue continues when its rule gets another ID, changes its number, is off for a while, or
// rejects for a while: it keeps its last turn regardless of the rules loaded.
func TestReloadKeepsTheQueue(t *testing.T) {
	queue := flow.Rule{ID: "r", Resource: "orders", Threshold: 10, Behavior: flow.Throttle}
	with := func(change func(*flow.Rule)) []flow.Rule {
		r := queue
		change(&r)
		return []flow.Rule{r}
	}
	faster := queue
	faster.Threshold = 20
	for name, sets := range map[string][][]flow.Rule{
		"another ID":                        {with(func(r *flow.Rule) { r.ID = "s" })},
		"no ID":                             {with(func(r *flow.Rule) { r.ID = "" })},
		"another ID and another wait":       {with(func(r *flow.Rule) { r.ID, r.MaxWait = "s", 501*ms })},
		"off":                               {with(func(r *flow.Rule) { r.Mode = spec.Off }), {queue}},
		"off, by another ID":                {with(func(r *flow.Rule) { r.Mode = spec.Off }), with(func(r *flow.Rule) { r.ID = "s" })},
		"off, a pattern":                    {with(func(r *flow.Rule) { r.Resource, r.Match, r.Mode = ".*", spec.MatchRegex, spec.Off }), {queue}},
		"rejects for a while":               {with(func(r *flow.Rule) { r.Behavior = flow.Reject }), {queue}},
		"rejects, then off, then as it was": {with(func(r *flow.Rule) { r.Behavior = flow.Reject }), with(func(r *flow.Rule) { r.Mode = spec.Off }), {queue}},
		"numbered otherwise": {
			with(func(r *flow.Rule) { r.ID = "" }),
			append([]flow.Rule{func() flow.Rule { f := faster; f.ID = ""; return f }()}, with(func(r *flow.Rule) { r.ID = "" })...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, queue)
			require.Equal(t, 6, g.passes(10, "orders"))
			for _, set := range sets {
				g.load(set...)
			}
			assert.Zero(t, g.passes(10, "orders"))
		})
	}
}

// Loading rules, even often, doesn't change how warm a resource is.
func TestReloadKeepsWarmth(t *testing.T) {
	rule := func(threshold float64) flow.Rule {
		return flow.Rule{ID: "r", Resource: "orders", Threshold: threshold, Behavior: flow.WarmUp, Window: flow.Ring}
	}
	g := newGuard(t, rule(30))
	for range 5 {
		g.passes(30, "orders")
		g.clock.Advance(time.Second)
	}
	for range 100 {
		g.load(rule(31))
		g.load(rule(30))
	}
	assert.Equal(t, 13, g.passes(30, "orders"))
}

// A call is delayed under the old rules while the rule changes its shape and other calls use up the
// limit: it takes from the same window as they did.
func TestReloadOfAShapeUnderACall(t *testing.T) {
	rule := func(interval time.Duration) flow.Rule {
		return flow.Rule{ID: "r", Resource: "orders", Threshold: 3, Interval: interval}
	}
	const lower = "where a lower one took for it"
	for name, next := range map[string][]flow.Rule{
		"another shape":               {rule(time.Minute)},
		"and another limit":           {{ID: "r", Resource: "orders", Threshold: 2, Window: flow.Strict}},
		"which another rule has too":  {rule(time.Minute), {ID: "s", Resource: "orders", Threshold: 9, Interval: time.Minute}},
		"twice":                       nil,
		"and the old one goes on too": {rule(time.Minute), {ID: "s", Resource: "orders", Threshold: 3}},
		lower:                         {rule(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			var g *guard
			passed := 0
			held := true
			h := &hook{asked: func() {
				if !held {
					return
				}
				held = false
				if next == nil {
					g.load(rule(time.Hour))
					next = []flow.Rule{rule(time.Minute)}
				}
				g.load(next...)
				passed += g.passes(5, "orders")
			}}
			first := []flow.Rule{rule(time.Second)}
			if name == lower {
				first = append(first, flow.Rule{ID: "s", Resource: "orders", Threshold: 2})
			}
			g = newGuardWith(t, engine.Config{Chain: trial.Chain().With(h, engine.Before("flow"))}, first...)
			passed += g.passes(1, "orders")
			assert.LessOrEqual(t, passed, 3)
			assert.Zero(t, g.passes(1, "orders"))
		})
	}
}
