package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/slots"
	"github.com/penstock-go/penstock/system"
)

// Explain says why a call is refused, and when it would pass.
func ExampleGuard_Explain() {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{
		Flow: []flow.Rule{
			{ID: "orders", Resource: "GET /orders", Threshold: 2},
			{ID: "reads", Resource: "GET *", Match: api.MatchPrefix, Threshold: 100},
		},
		Hotspot: []hotspot.Rule{{ID: "users", Resource: "GET /orders", Param: "user", Threshold: 10}},
	})
	if err != nil {
		panic(err)
	}
	ctx, user := context.Background(), api.Param("user", "u-17")
	for range 2 {
		e, err := guard.Entry(ctx, "GET /orders", user)
		if err != nil {
			panic(err)
		}
		e.Exit()
	}
	clock.Advance(250 * time.Millisecond)
	x, err := guard.Explain(ctx, "GET /orders", user)
	if err != nil {
		panic(err)
	}
	fmt.Print(x)
	// Output:
	// GET /orders, in context default
	// refused by flow orders for another 770ms
	//
	// hotspot users: passes
	//   GET /orders: it names the resource
	//   "u-17": units in 1s: 2 of 10, 8 left
	//
	// flow orders: refused for another 770ms
	//   GET /orders: it names the resource
	//   units in 1s: 2 of 2, 0 left
	//
	// left out:
	//   flow reads: rule "orders" is more specific
}

func quiet(t testing.TB, cfg api.Config) (*api.Guard, *clocks.Manual) {
	t.Helper()
	clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
	clock.SetSleep(clocks.SleepRecord)
	cfg.Clock, cfg.Logger = clock, slog.New(slog.DiscardHandler)
	g, err := api.New(cfg)
	require.NoError(t, err)
	books.Keep(t, g.Engine())
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g, clock
}

// explained is a rule of a family, in force on "orders", with the calls made before it is asked.
type explained struct {
	set    api.RuleSet
	before func(t *testing.T, g *api.Guard)
	opts   []api.Option
	hold   bool // calls are kept open
	left   int  // calls that pass
	next   time.Duration
}

// In each family, as many calls pass as Explain reports remaining; the next one is refused, as is
// any call until the nanosecond before the announced time.
func TestExplainAgainstEntry(t *testing.T) {
	fail := func(t *testing.T, g *api.Guard, opts ...api.Option) {
		t.Helper()
		for range 3 {
			e, err := g.Entry(t.Context(), "orders", opts...)
			require.NoError(t, err)
			e.Fail(errors.New("failed"))
			e.Exit()
		}
	}
	spend := func(n int, opts ...api.Option) func(*testing.T, *api.Guard) {
		return func(t *testing.T, g *api.Guard) {
			t.Helper()
			for range n {
				e, err := g.Entry(t.Context(), "orders", opts...)
				require.NoError(t, err)
				e.Exit()
			}
		}
	}
	user := []api.Option{api.Param("user", "ann")}
	none := func(*testing.T, *api.Guard) {}
	for name, tt := range map[string]explained{
		"flow window":    {set: api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 5}}}, before: spend(2), left: 3, next: 1020 * time.Millisecond},
		"flow ring":      {set: api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 5, Window: flow.Ring}}}, before: spend(2), left: 3, next: time.Second},
		"flow throttle":  {set: api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 10, Behavior: flow.Throttle}}}, before: spend(1), left: 5, next: 100 * time.Millisecond},
		"flow bucket":    {set: api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 10, Burst: 3, Behavior: flow.TokenBucket}}}, before: spend(1), left: 3, next: 100 * time.Millisecond},
		"flow permits":   {set: api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 3, Metric: flow.Concurrency}}}, before: none, hold: true, left: 3},
		"flow cold":      {set: api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 30, Behavior: flow.WarmUp}}}, before: spend(1), left: 9},
		"hotspot window": {set: api.RuleSet{Hotspot: []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 4}}}, opts: user, before: spend(1, user...), left: 3, next: 1100 * time.Millisecond},
		"hotspot refill": {set: api.RuleSet{Hotspot: []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 2, Burst: 2, Window: hotspot.Refill}}}, opts: user, before: spend(1, user...), left: 3, next: time.Second + 1},
		"hotspot queue":  {set: api.RuleSet{Hotspot: []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 10, Behavior: hotspot.Throttle}}}, opts: user, before: none, left: 6, next: 100 * time.Millisecond},
		"hotspot bucket": {set: api.RuleSet{Hotspot: []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 4, Burst: 1, Behavior: hotspot.TokenBucket}}}, opts: user, before: none, left: 2, next: 250 * time.Millisecond},
		"hotspot held":   {set: api.RuleSet{Hotspot: []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 2, Metric: hotspot.Concurrency}}}, opts: user, before: none, hold: true, left: 2},
		"isolation":      {set: api.RuleSet{Isolation: []isolation.Rule{{Resource: "orders", Threshold: 4}}}, before: none, hold: true, left: 4},
		"adaptive":       {set: api.RuleSet{Adaptive: []adaptive.Rule{{Resource: "orders", Start: 3, Floor: 1, Ceiling: 10}}}, before: none, hold: true, left: 6},
		"system":         {set: api.RuleSet{System: []system.Rule{{Metric: system.QPS, Threshold: 4}}}, opts: []api.Option{api.Inbound()}, before: none, left: 4, next: time.Second},
		"system permits": {set: api.RuleSet{System: []system.Rule{{Metric: system.Concurrency, Threshold: 4}}}, opts: []api.Option{api.Inbound()}, before: none, hold: true, left: 4},
		"breaker":        {set: api.RuleSet{Breaker: []breaker.Rule{{Resource: "orders", Strategy: breaker.ConsecutiveErrors, Threshold: 3, Recovery: time.Second}}}, before: func(t *testing.T, g *api.Guard) { t.Helper(); fail(t, g) }, left: 0, next: time.Second},
		"outlier": {set: api.RuleSet{Outlier: []outlier.Rule{{Resource: "orders", Strategy: breaker.ConsecutiveErrors, Threshold: 3, Recovery: time.Second}}},
			opts: []api.Option{api.Endpoint("a:80")}, before: func(t *testing.T, g *api.Guard) {
				t.Helper()
				spend(1, api.Endpoint("b:80"))(t, g)
				fail(t, g, api.Endpoint("a:80"))
			}, left: 0, next: time.Second},
		"authority": {set: api.RuleSet{Authority: []authority.Rule{{Resource: "orders", Origins: []string{"ann"}}}}, before: none, left: 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, clock := quiet(t, api.Config{})
			require.NoError(t, g.LoadRules(tt.set))
			tt.before(t, g)
			explain := func() api.Explanation {
				x, err := g.Explain(t.Context(), "orders", tt.opts...)
				require.NoError(t, err)
				require.Len(t, x.Rules, 1)
				return x
			}
			x := explain()
			if r := x.Rules[0]; tt.left > 0 {
				require.NotNil(t, r.Measures[0].Remaining)
				assert.Equal(t, int64(tt.left), *r.Measures[0].Remaining)
			}
			var open []api.Admitted
			for i := range tt.left {
				e, err := g.Entry(t.Context(), "orders", tt.opts...)
				require.NoError(t, err, "call %d", i)
				if open = append(open, e); !tt.hold {
					e.Exit()
				}
			}
			x = explain()
			require.Equal(t, core.Refused, x.Outcome, "%v", x)
			_, err := g.Entry(t.Context(), "orders", tt.opts...)
			require.ErrorIs(t, err, api.ErrBlocked)
			if tt.next == 0 {
				if name != "flow cold" { // its limit moves with every second
					assert.Zero(t, x.Next)
				}
			} else {
				require.Equal(t, tt.next, x.Next.Sub(x.At))
				clock.Advance(tt.next - 1)
				assert.Equal(t, core.Refused, explain().Outcome)
				_, err = g.Entry(t.Context(), "orders", tt.opts...)
				require.ErrorIs(t, err, api.ErrBlocked)
				clock.Advance(1)
				assert.NotEqual(t, core.Refused, explain().Outcome)
				e, err := g.Entry(t.Context(), "orders", tt.opts...)
				require.NoError(t, err)
				e.Exit()
			}
			for _, e := range open {
				e.Exit()
			}
		})
	}
}

// Asking leaves nothing behind: no resource, caller, context or value, and no memory.
func TestExplainKeepsNothing(t *testing.T) {
	g, _ := quiet(t, api.Config{})
	require.NoError(t, g.LoadRules(api.RuleSet{
		Flow:    []flow.Rule{{Resource: "*", Threshold: 5}, {ID: "regex", Resource: "GET .*", Match: api.MatchRegex, Threshold: 5, Origin: flow.OriginOther}},
		Hotspot: []hotspot.Rule{{Resource: "*", Param: "user", Threshold: 5}},
		Breaker: []breaker.Rule{{Resource: "*", Threshold: 0.5}},
		Outlier: []outlier.Rule{{Resource: "*", Threshold: 0.5}},
	}))
	e, err := g.Entry(t.Context(), "GET /known", api.Param("user", "ann"))
	require.NoError(t, err)
	e.Exit()
	before, err := json.Marshal(g.Tree())
	require.NoError(t, err)
	ask := func(from, to int) {
		for i := from; i < to; i++ {
			name := fmt.Sprint("x", i)
			ctx := api.WithOrigin(api.WithContext(t.Context(), name), name)
			for _, resource := range []string{"GET /" + name, "GET /known"} {
				x, err := g.Explain(ctx, resource, api.Param("user", name), api.Endpoint(name))
				require.NoError(t, err)
				require.Equal(t, core.Passes, x.Outcome)
				require.Equal(t, resource == "GET /known", x.Node != "")
			}
		}
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	ask(0, 50)
	used := heap()
	ask(50, 1500)
	assert.Less(t, heap(), used+200_000)
	after, err := json.Marshal(g.Tree())
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

// Beyond the caps Explain uses the nodes that stand for all further names, as a call does.
func TestExplainBeyondTheCaps(t *testing.T) {
	g, _ := quiet(t, api.Config{Caps: api.Caps{Resources: 1, Origins: 1, Contexts: 1}})
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{
		{ID: "any", Resource: "*", Threshold: 2}, {ID: "others", Resource: "*", Origin: flow.OriginOther, Threshold: 5},
	}}))
	for i := range 6 {
		name := fmt.Sprint("orders", i)
		ctx := api.WithOrigin(api.WithContext(t.Context(), name), name)
		x, err := g.Explain(ctx, name)
		require.NoError(t, err)
		e, err := g.Entry(ctx, name)
		require.Equal(t, err == nil, x.Outcome == core.Passes, "%d: %v\n%v", i, err, x)
		if i > 0 {
			assert.Equal(t, "(overflow)", x.Node)
		}
		e.Exit()
	}
}

// A rule without calls so far uses the counts from before it was loaded.
func TestExplainCountsCallsBeforeTheRule(t *testing.T) {
	g, _ := quiet(t, api.Config{})
	ctx := api.WithOrigin(t.Context(), "app")
	for range 3 {
		e, err := g.Entry(ctx, "orders")
		require.NoError(t, err)
		e.Exit()
	}
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "*", Origin: flow.OriginOther, Threshold: 3}}}))
	x, err := g.Explain(ctx, "orders")
	require.NoError(t, err)
	assert.Equal(t, core.Refused, x.Outcome)
	_, err = g.Entry(ctx, "orders")
	assert.ErrorIs(t, err, core.ErrBlocked)
}

func TestExplainWaits(t *testing.T) {
	g, _ := quiet(t, api.Config{})
	require.NoError(t, g.LoadRules(api.RuleSet{
		Flow:      []flow.Rule{{ID: "slow", Resource: "orders", Threshold: 10, Behavior: flow.Throttle}},
		Isolation: []isolation.Rule{{ID: "few", Resource: "orders", Threshold: 1, MaxQueue: 1, MaxWait: time.Second}},
	}))
	e, err := g.Entry(t.Context(), "orders")
	require.NoError(t, err)
	x, err := g.Explain(t.Context(), "orders")
	require.NoError(t, err)
	assert.Equal(t, core.Waits, x.Outcome)
	assert.Equal(t, "few", x.Rules[x.By].ID, "nobody knows for how long")
	assert.Zero(t, x.Runs)
	e.Exit()
	x, err = g.Explain(t.Context(), "orders")
	require.NoError(t, err)
	assert.Equal(t, 100*time.Millisecond, x.Runs.Sub(x.At))
	assert.Contains(t, x.String(), "waits 100ms for flow slow\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x, err = g.Explain(ctx, "orders")
	require.NoError(t, err)
	assert.Equal(t, core.Refused, x.Outcome)
	assert.True(t, x.GivesUp)
	assert.Contains(t, x.String(), "refused: its context ends before flow slow admits it\n")

	require.NoError(t, g.Drain(t.Context()))
	x, err = g.Explain(t.Context(), "orders")
	require.NoError(t, err)
	assert.Equal(t, core.Refused, x.Outcome)
	assert.True(t, x.Draining)
	assert.Contains(t, x.String(), "refused: the server is draining, and the call would wait for flow slow\n")
	x, err = g.Explain(t.Context(), "carts")
	require.NoError(t, err)
	assert.Equal(t, core.Passes, x.Outcome, "it need not wait")
}

func TestExplainInvalid(t *testing.T) {
	g, _ := quiet(t, api.Config{})
	_, err := g.Explain(t.Context(), "")
	require.ErrorIs(t, err, api.ErrInvalid)
	_, err = g.Explain(t.Context(), "orders", api.Units(1<<30))
	require.ErrorIs(t, err, api.ErrInvalid)
	var none context.Context // as Entry takes it
	x, err := g.Explain(none, "orders")
	require.NoError(t, err)
	assert.Contains(t, x.String(), "passes\nno rule applies\n")
}

// ownSlot is a program's own slot, which refuses every call.
type ownSlot struct{ slots.AskOnly }

func (ownSlot) Name() string { return "tenants" }

type explainedSlot struct{ ownSlot }

func (explainedSlot) Explain(slots.Call) []core.Judgement {
	return []core.Judgement{{Outcome: core.Refused, Why: "tenant is\nsuspended"}}
}

func TestExplainSlotsOfOnesOwn(t *testing.T) {
	refuse := ownSlot{func(c slots.Call) slots.Verdict { return c.Refuse("suspended") }}
	for _, slot := range []slots.Slot{refuse, explainedSlot{refuse}} {
		g, _ := quiet(t, api.Config{Chain: slots.Default().With(slot, slots.Before("flow"))})
		x, err := g.Explain(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, x.Rules, 1)
		assert.Equal(t, "tenants", x.Rules[0].ID)
		if _, ok := slot.(explainedSlot); ok {
			assert.Equal(t, core.Refused, x.Outcome)
			assert.Contains(t, x.String(), `tenant is\nsuspended`)
		} else {
			assert.Equal(t, core.Unknown, x.Outcome)
		}
	}
}

// Regardless of the characters in names, no line is wider than a terminal, and none is broken.
func TestExplainText(t *testing.T) {
	g, _ := quiet(t, api.Config{})
	long := strings.Repeat("世\n\x1b[31m", 100)
	require.NoError(t, g.LoadRules(api.RuleSet{
		Flow:    []flow.Rule{{ID: long, Resource: long, Threshold: 1, Mode: api.Shadow}, {ID: "2", Resource: long, Threshold: 1}, {ID: "3", Resource: "*", Threshold: 1}},
		Hotspot: []hotspot.Rule{{ID: long, Resource: long, Param: "user", Threshold: 1}},
	}))
	x, err := g.Explain(api.WithOrigin(api.WithContext(t.Context(), long), long), long, api.Param("user", long))
	require.NoError(t, err)
	for line := range strings.Lines(x.String()) {
		line = strings.TrimSuffix(line, "\n")
		assert.LessOrEqual(t, shown.Columns([]byte(line)), 80)
		assert.NotContains(t, line, "\x1b")
	}
	var b strings.Builder
	n, err := x.WriteTo(&b)
	require.NoError(t, err)
	assert.Equal(t, int64(b.Len()), n)
	data, err := json.Marshal(x)
	require.NoError(t, err)
	var back api.Explanation
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, x.Outcome, back.Outcome)
	assert.Equal(t, x.Rules[0].Measures, back.Rules[0].Measures)
}

// Explain may run while calls arrive and rules change.
func TestExplainUnderConcurrency(t *testing.T) {
	g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	books.Keep(t, g.Engine())
	defer g.Close()
	set := func(threshold float64) api.RuleSet {
		return api.RuleSet{
			Flow:      []flow.Rule{{ID: "a", Resource: "*", Threshold: threshold}, {ID: "b", Resource: "o.*", Match: api.MatchRegex, Threshold: threshold, Behavior: flow.WarmUp}},
			Hotspot:   []hotspot.Rule{{Resource: "*", Param: "user", Threshold: threshold, MaxValues: 2}},
			Breaker:   []breaker.Rule{{Resource: "*", Threshold: 0.5}},
			Isolation: []isolation.Rule{{Resource: "*", Threshold: int(threshold)}},
		}
	}
	require.NoError(t, g.LoadRules(set(100)))
	var done sync.WaitGroup
	for w := range 4 {
		done.Go(func() {
			for i := range 300 {
				name := fmt.Sprint("o", i%7)
				if w == 0 && i%30 == 0 {
					assert.NoError(t, g.LoadRules(set(float64(50+i))))
				}
				if w < 2 {
					if e, err := g.Entry(t.Context(), name, api.Param("user", i%5)); err == nil {
						e.Exit()
					}
					continue
				}
				x, err := g.Explain(t.Context(), name, api.Param("user", i%5))
				assert.NoError(t, err)
				assert.NotEmpty(t, x.Rules)
			}
		})
	}
	done.Wait()
}
