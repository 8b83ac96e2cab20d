package api_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
)

// The rules in docs/rules.md do what the page says: one limit per user over all routes, and at most
// 200 calls in flight in the whole process.
func TestTogetherAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/rules.md")
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)## One limit for many resources.*?```yaml\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, example)
	set, err := api.ParseRules("rules.yaml", example[1])
	require.NoError(t, err)
	clock := api.NewManualClock(time.Unix(1_800_000_000, 0))
	g := newGuardOn(t, clock, set)
	refused := func(err error, rule string) {
		t.Helper()
		b, ok := errors.AsType[*api.BlockError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, rule, b.Rule)
	}
	enter := func(name, user string) (api.Admitted, error) {
		return g.Entry(t.Context(), name, api.Inbound(), api.Param("user", user))
	}

	routes := []string{"GET /api/orders", "GET /api/carts", "GET /api/users/7"}
	var inside []api.Admitted
	for i := range 10 {
		e, err := enter(routes[i%3], "ann")
		require.NoError(t, err)
		inside = append(inside, e)
	}
	_, err = enter(routes[0], "ann")
	refused(err, "per user")
	e, err := enter("GET /about", "ann")
	require.NoError(t, err)
	inside = append(inside, e)
	for len(inside) < 200 {
		e, err := g.Entry(t.Context(), routes[len(inside)%3], api.Inbound())
		require.NoError(t, err)
		inside = append(inside, e)
	}
	_, err = enter(routes[1], "bob")
	refused(err, "in flight")
	for _, free := range []func() (api.Admitted, error){
		func() (api.Admitted, error) { return g.Entry(t.Context(), "GET /health", api.Inbound()) },
		func() (api.Admitted, error) { return g.Entry(t.Context(), "sql") },
		func() (api.Admitted, error) { return g.Entry(inside[0].Context(), "GET /api/orders", api.Inbound()) },
	} {
		e, err := free()
		require.NoError(t, err)
		e.Exit()
	}
	inside[0].Exit()
	e, err = enter(routes[1], "bob")
	require.NoError(t, err)
	e.Exit()
}

// The tree, its rules, the refusals and Explain have the rule once, under its pattern.
func TestTogetherIsShownOnce(t *testing.T) {
	g := newGuard(t, api.Config{},
		flow.Rule{ID: "own", Resource: "GET /a", Threshold: 100},
		flow.Rule{ID: "all", Resource: "GET /*", Match: spec.MatchPrefix, Together: true, Behavior: flow.TokenBucket, Threshold: 1, Interval: time.Hour, Burst: 1})
	for _, name := range []string{"GET /a", "GET /b", "GET /c"} {
		e, err := g.Entry(t.Context(), name)
		e.Exit()
		assert.Equal(t, name == "GET /c", errors.Is(err, api.ErrBlocked), name)
		if b, ok := errors.AsType[*api.BlockError](err); ok {
			assert.Equal(t, "GET /*", b.Resource)
			limit, known := b.Limit()
			assert.True(t, known && limit == 1)
			_, known = b.RetryAfter()
			assert.True(t, known)
		}
	}
	tree := g.Tree()
	var all []core.RuleStats
	for _, r := range tree.Rules {
		if r.ID == "all" {
			all = append(all, r)
		}
	}
	require.Len(t, all, 1)
	assert.True(t, all[0].Asked)
	assert.EqualValues(t, 1, all[0].Refused)
	assert.Equal(t, flow.Buckets{Buckets: []flow.BucketStats{{Resource: "GET /*", Tokens: all[0].Details.(flow.Buckets).Buckets[0].Tokens, Size: 2}}}, all[0].Details)
	var names []string
	for _, n := range tree.Resources {
		names = append(names, n.Name)
	}
	assert.Equal(t, []string{"GET /a", "GET /b", "GET /c"}, names)

	x, err := g.Explain(t.Context(), "GET /a")
	require.NoError(t, err)
	require.Len(t, x.Rules, 2)
	assert.Equal(t, core.Refused, x.Outcome)
	for _, r := range x.Rules {
		if r.ID == "all" {
			assert.Equal(t, "its prefix matches the name, and it counts all its names together", r.Reason)
		}
	}
}

// Explain says why a rule doesn't count a call.
func TestTogetherExplained(t *testing.T) {
	set := api.RuleSet{
		Flow:      []flow.Rule{{ID: "flow", Resource: "*", Together: true, Threshold: 5}},
		Hotspot:   []hotspot.Rule{{ID: "hotspot", Resource: "*", Together: true, Threshold: 5, Param: "user"}},
		Isolation: []isolation.Rule{{ID: "isolation", Resource: "*", Together: true, Threshold: 5}},
	}
	g := newGuardOn(t, api.NewManualClock(time.Unix(1_800_000_000, 0)), set)
	outer, err := g.Entry(t.Context(), "a", api.Inbound(), api.Param("user", 1))
	require.NoError(t, err)
	why := func(ctx context.Context, opts ...api.Option) (all []string) {
		x, err := g.Explain(ctx, "b", append(opts, api.Param("user", 1))...)
		require.NoError(t, err)
		require.Len(t, x.Rules, 3)
		for _, r := range x.Rules {
			assert.Equal(t, r.Why == "", r.Outcome == core.Passes)
			all = append(all, r.Why)
		}
		return all
	}
	three := func(s string) []string { return []string{s, s, s} }
	assert.Equal(t, three("applies only to inbound calls"), why(t.Context()))
	assert.Equal(t, three("the call is nested in one that the rule has counted"), why(outer.Context(), api.Inbound()))
	assert.Equal(t, three(""), why(t.Context(), api.Inbound()))
	ctx := outer.Context()
	outer.Exit()
	assert.Equal(t, three(""), why(ctx, api.Inbound()))
}

// A call that waits for a permit of the whole process gets it when a call of another resource exits,
// and when the rule admits more, counts each name by itself, or is gone. A nested call needs none.
func TestTogetherQueues(t *testing.T) {
	rule := isolation.Rule{ID: "all", Resource: "*", Together: true, Threshold: 1, MaxQueue: 5, MaxWait: time.Minute}
	for name, release := range map[string]func(g *api.Guard, outer api.Admitted) error{
		"exit": func(_ *api.Guard, outer api.Admitted) error { outer.Exit(); return nil },
		"more": func(g *api.Guard, _ api.Admitted) error {
			r := rule
			r.Threshold, r.Resource, r.Match = 2, "[ab]", spec.MatchRegex
			return g.LoadRules(api.RuleSet{Isolation: []isolation.Rule{r}})
		},
		"apart": func(g *api.Guard, _ api.Admitted) error {
			r := rule
			r.Together = false
			return g.LoadRules(api.RuleSet{Isolation: []isolation.Rule{r}})
		},
		"off": func(g *api.Guard, _ api.Admitted) error {
			r := rule
			r.Mode = spec.Off
			return g.LoadRules(api.RuleSet{Isolation: []isolation.Rule{r}})
		},
		"gone": func(g *api.Guard, _ api.Admitted) error { return g.LoadRules(api.RuleSet{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := api.New(api.Config{})
				require.NoError(t, err)
				defer g.Close()
				require.NoError(t, g.LoadRules(api.RuleSet{Isolation: []isolation.Rule{rule}}))
				outer, err := g.Entry(t.Context(), "a", api.Inbound())
				require.NoError(t, err)
				inner, err := g.Entry(outer.Context(), "b", api.Inbound())
				require.NoError(t, err)
				var waited atomic.Bool
				go func() {
					e, err := g.Entry(t.Context(), "b", api.Inbound())
					assert.NoError(t, err)
					waited.Store(true)
					e.Exit()
				}()
				synctest.Wait()
				assert.False(t, waited.Load())
				assert.EqualValues(t, 1, g.Engine().Waiting())
				require.NoError(t, release(g, outer))
				synctest.Wait()
				assert.True(t, waited.Load())
				inner.Exit()
				outer.Exit()
			})
		})
	}
}

// Tenants share the permits of the whole process.
func TestTogetherShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := api.New(api.Config{})
		require.NoError(t, err)
		defer g.Close()
		require.NoError(t, g.LoadRules(api.RuleSet{Isolation: []isolation.Rule{{
			ID: "all", Resource: "*", Together: true, Threshold: 1, MaxQueue: 9, MaxWait: time.Minute, Share: api.Share{By: "param tenant"},
		}}}))
		first, err := g.Entry(t.Context(), "a", api.Inbound(), api.Param("tenant", "big"))
		require.NoError(t, err)
		var mu sync.Mutex
		var order []string
		for i, tenant := range []string{"big", "big", "big", "small"} {
			go func() {
				e, err := g.Entry(t.Context(), []string{"a", "b"}[i%2], api.Inbound(), api.Param("tenant", tenant))
				assert.NoError(t, err)
				mu.Lock()
				order = append(order, tenant)
				mu.Unlock()
				e.Exit()
			}()
			synctest.Wait()
		}
		x, err := g.Explain(t.Context(), "b", api.Inbound(), api.Param("tenant", "small"))
		require.NoError(t, err)
		require.Len(t, x.Rules, 1)
		assert.Equal(t, "2nd of 2 in its share", x.Rules[0].Why)
		first.Exit()
		synctest.Wait()
		assert.Equal(t, []string{"big", "small", "big", "big"}, order)
	})
}

// A running call asks for more under a rule that counts it; a nested call, which the rule doesn't
// count, asks for nothing there; and what it used is settled once. A call that the rule counts only
// once it asks for more includes calls nested in it from then on.
func TestTogetherMore(t *testing.T) {
	g := newGuard(t, api.Config{}, flow.Rule{ID: "all", Resource: ".*", Match: spec.MatchRegex, Together: true, Unit: "tokens", Threshold: 100, Interval: time.Hour, Buckets: 1})
	outer, err := g.Entry(t.Context(), "a", api.Cost("tokens", 60))
	require.NoError(t, err)
	inner, err := g.Entry(outer.Context(), "b", api.Cost("tokens", 50))
	require.NoError(t, err)
	require.NoError(t, outer.More(t.Context(), "tokens", 40))
	require.ErrorIs(t, outer.More(t.Context(), "tokens", 1), api.ErrBlocked)
	require.NoError(t, inner.More(t.Context(), "tokens", 50))
	inner.Settle("tokens", 90)
	inner.Exit()
	outer.Settle("tokens", 30)
	outer.Exit()
	_, err = g.Entry(t.Context(), "b", api.Cost("tokens", 71))
	require.ErrorIs(t, err, api.ErrBlocked)
	e, err := g.Entry(t.Context(), "b", api.Cost("tokens", 60))
	require.NoError(t, err)
	e.Exit()

	late, err := g.Entry(t.Context(), "a")
	require.NoError(t, err)
	require.NoError(t, late.More(t.Context(), "tokens", 10))
	in, err := g.Entry(late.Context(), "b", api.Cost("tokens", 50))
	require.NoError(t, err)
	in.Exit()
	late.Exit()
}

// Under many goroutines that call several routes, some nested, while rules are reloaded, the outer
// calls never exceed the limit in flight, nor in any real interval.
func TestTogetherHoldsUnderRaces(t *testing.T) {
	const limit, rate, interval = 8, 50, 20 * time.Millisecond
	set := func(i int) api.RuleSet {
		return api.RuleSet{
			Flow: []flow.Rule{{
				ID: "rate", Resource: []string{"r/*", "r*"}[i%2], Match: spec.MatchPrefix, Together: true, Threshold: rate, Interval: interval, Buckets: 5,
			}},
			Isolation: []isolation.Rule{{ID: "flight", Resource: "*", Exclude: []string{"x", "y"}[:1+i%2], Together: true, Threshold: limit}},
		}
	}
	g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(set(0)))
	calls := 2000
	if testing.Short() {
		calls = 400
	}
	var left, inFlight, over atomic.Int64
	left.Store(int64(calls))
	var mu sync.Mutex
	var admitted [][2]int64 // before and after the decision
	names := []string{"r/1", "r/2", "r/3", "r/4"}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			var mine [][2]int64
			for left.Load() > 0 {
				before := g.Now()
				e, err := g.Entry(context.Background(), names[rnd.IntN(4)], api.Inbound())
				if err != nil {
					continue
				}
				if n := left.Add(-1); n%40 == 0 {
					assert.NoError(t, g.LoadRules(set(int(n/40))))
				}
				mine = append(mine, [2]int64{before, g.Now()})
				if inFlight.Add(1) > limit {
					over.Add(1)
				}
				for range rnd.IntN(3) {
					in, err := g.Entry(e.Context(), names[rnd.IntN(4)], api.Inbound())
					assert.NoError(t, err)
					in.Exit()
				}
				inFlight.Add(-1)
				e.Exit()
			}
			mu.Lock()
			admitted = append(admitted, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	assert.Zero(t, over.Load())
	require.Greater(t, len(admitted), rate)
	// Each was decided between its two instants: no interval may surely include more than the limit.
	slices.SortFunc(admitted, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	for i, first := range admitted {
		n := 0
		for _, x := range admitted[i:] {
			if x[0] >= first[0]+int64(interval) {
				break
			}
			if x[1] < first[0]+int64(interval) {
				n++
			}
		}
		require.LessOrEqual(t, n, rate)
	}
}

// Two processes of a cluster share the limit of a rule over different routes, and a nested call
// fetches nothing.
func TestTogetherInACluster(t *testing.T) {
	clock := api.NewManualClock(time.Unix(1_800_000_000, 0))
	store := cluster.NewMemory(clock)
	shared := cluster.Rule{Scope: cluster.Global}
	set := api.RuleSet{
		Flow:      []flow.Rule{{ID: "flow", Resource: "f/*", Match: spec.MatchPrefix, Together: true, Threshold: 6, Cluster: shared}},
		Isolation: []isolation.Rule{{ID: "isolation", Resource: "i/*", Match: spec.MatchPrefix, Together: true, Threshold: 6, Cluster: shared}},
		Hotspot:   []hotspot.Rule{{ID: "hotspot", Resource: "h/*", Match: spec.MatchPrefix, Together: true, Param: "user", Threshold: 6, Cluster: shared}},
	}
	var members []*api.Guard
	for i := range 2 {
		if i == 1 { // as while the patterns are being changed
			set = set.Clone()
			set.Flow[0].Resource, set.Isolation[0].Resource, set.Hotspot[0].Resource = "f*", "i*", "h*"
		}
		g, err := api.New(api.Config{Clock: clock, Cluster: cluster.Config{Store: store}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, g.Close()) })
		require.NoError(t, g.LoadRules(set))
		members = append(members, g)
	}
	for _, family := range []string{"f/", "i/", "h/"} {
		admitted := 0
		var entries []api.Admitted
		for i := range 40 {
			e, err := members[i%2].Entry(t.Context(), family+string(rune('a'+i%5)), api.Param("user", "ann"))
			if err == nil {
				entries = append(entries, e)
				admitted++
				in, err := members[i%2].Entry(e.Context(), family+"z", api.Param("user", "ann"))
				require.NoError(t, err)
				in.Exit()
			}
		}
		assert.Equal(t, 6, admitted, family)
		for _, e := range entries {
			e.Exit()
		}
	}
}

// A rule that counts all its names together applies besides the nearest rules of each name, whatever
// the two match, and displaces none of them; and it counts names beyond the cap.
func TestTogetherDisplacesNone(t *testing.T) {
	apart := []flow.Rule{
		{ID: "name", Resource: "a/b/1", Threshold: 100},
		{ID: "path", Resource: "a/*/2", Match: spec.MatchPath, Threshold: 100},
		{ID: "prefix", Resource: "a/*", Match: spec.MatchPrefix, Threshold: 100},
		{ID: "rest", Resource: "*", Threshold: 100},
	}
	nearest := map[string]string{"a/b/1": "name", "a/b/2": "path", "a/b/3": "prefix", "b": "rest"}
	for _, together := range []flow.Rule{
		{Resource: "*"}, {Resource: "a/*", Match: spec.MatchPrefix}, {Resource: "a/*/2", Match: spec.MatchPath}, {Resource: ".*", Match: spec.MatchRegex},
	} {
		together.ID, together.Together, together.Threshold = "all", true, 2
		g := newGuard(t, api.Config{Caps: api.Caps{Resources: 2}}, append([]flow.Rule{together}, apart...)...)
		matched := 0
		for _, name := range []string{"a/b/1", "a/b/2", "a/b/3", "b"} {
			x, err := g.Explain(t.Context(), name, api.Inbound())
			require.NoError(t, err)
			var ids []string
			for _, r := range x.Rules {
				ids = append(ids, r.ID)
			}
			assert.Contains(t, ids, nearest[name], together.Resource)
			assert.Len(t, slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "all" }), 1)
			if slices.Contains(ids, "all") {
				matched++
			}
		}
		admitted := 0
		for _, name := range []string{"a/b/1", "a/b/2", "a/b/3", "b"} {
			e, err := g.Entry(t.Context(), name, api.Inbound())
			if err == nil {
				admitted++
			}
			e.Exit()
		}
		assert.Equal(t, 4-max(0, matched-2), admitted, together.Resource)
		assert.GreaterOrEqual(t, matched, 1)
	}
}
