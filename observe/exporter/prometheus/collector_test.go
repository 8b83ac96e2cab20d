package penstockprometheus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/observe/exporter/internal/series"
	penstockprometheus "github.com/penstock-go/penstock/observe/exporter/prometheus"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// newGuard returns a Guard with some counts of every kind, and its collector.
func newGuard(t testing.TB, config penstockprometheus.Config, rules api.RuleSet) (*api.Guard, *penstockprometheus.Collector, *api.ManualClock) {
	t.Helper()
	clock := api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
	clock.SetSleep(api.SleepAdvance)
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(rules))
	return g, penstockprometheus.NewCollector(g, config), clock
}

func call(t testing.TB, g *api.Guard, clock *api.ManualClock, resource string, n int, err error, opts ...api.Option) {
	t.Helper()
	for range n {
		_ = g.Do(context.Background(), resource, func(context.Context) error {
			clock.Advance(2 * time.Millisecond)
			return err
		}, opts...)
	}
}

func busy(t testing.TB, config penstockprometheus.Config) (*api.Guard, *penstockprometheus.Collector) {
	t.Helper()
	g, c, clock := newGuard(t, config, api.RuleSet{
		Flow: []flow.Rule{{ID: "few", Resource: "GET /orders", Threshold: 3}, {ID: "watch", Resource: "GET /orders", Threshold: 1, Mode: api.Shadow},
			{ID: "room", Resource: "GET /orders", Unit: "bytes", Threshold: 1000}},
		Isolation: []isolation.Rule{{ID: "at-once", Resource: "GET /orders", Threshold: 100}},
		Hotspot:   []hotspot.Rule{{ID: "each", Resource: "GET /orders", Param: "user", Threshold: 1000}},
		Breaker:   []breaker.Rule{{ID: "trip", Resource: "GET /carts", Strategy: breaker.ErrorCount, Threshold: 2, MinCalls: 1}},
	})
	call(t, g, clock, "GET /orders", 4, nil, api.Inbound(), api.Cost("bytes", 100))
	_ = g.Do(context.Background(), "GET /orders", func(context.Context) error { return nil }, api.Inbound(), api.Cost("bytes", 5000))
	call(t, g, clock, "GET /carts", 4, errors.New("x"))
	return g, c
}

const text = `
# HELP penstock_circuit_breaker_state 1 for the current state of a breaker, 0 for the others.
# TYPE penstock_circuit_breaker_state gauge
penstock_circuit_breaker_state{resource="GET /carts",rule="trip",state="closed"} 0
penstock_circuit_breaker_state{resource="GET /carts",rule="trip",state="forcedClosed"} 0
penstock_circuit_breaker_state{resource="GET /carts",rule="trip",state="forcedOpen"} 0
penstock_circuit_breaker_state{resource="GET /carts",rule="trip",state="halfOpen"} 0
penstock_circuit_breaker_state{resource="GET /carts",rule="trip",state="open"} 1
penstock_circuit_breaker_state{resource="GET /carts",rule="trip",state="recovering"} 0
# HELP penstock_circuit_breaker_transitions_total State changes of breakers.
# TYPE penstock_circuit_breaker_transitions_total counter
penstock_circuit_breaker_transitions_total{from="closed",resource="GET /carts",rule="trip",to="open"} 1
# HELP penstock_entries_total Units that asked for a resource, by result: pass or block.
# TYPE penstock_entries_total counter
penstock_entries_total{resource="GET /carts",result="block"} 2
penstock_entries_total{resource="GET /carts",result="pass"} 2
penstock_entries_total{resource="GET /orders",result="block"} 2
penstock_entries_total{resource="GET /orders",result="pass"} 3
# HELP penstock_entry_duration_seconds Response times of completed calls.
# TYPE penstock_entry_duration_seconds summary
penstock_entry_duration_seconds_sum{resource="GET /carts"} 0.004
penstock_entry_duration_seconds_count{resource="GET /carts"} 2
penstock_entry_duration_seconds_sum{resource="GET /orders"} 0.006
penstock_entry_duration_seconds_count{resource="GET /orders"} 3
# HELP penstock_errors_total Units that completed with an error.
# TYPE penstock_errors_total counter
penstock_errors_total{resource="GET /carts"} 2
penstock_errors_total{resource="GET /orders"} 0
# HELP penstock_inbound_entries_total Units of inbound calls, of all resources together, by result: pass or block.
# TYPE penstock_inbound_entries_total counter
penstock_inbound_entries_total{result="block"} 2
penstock_inbound_entries_total{result="pass"} 3
# HELP penstock_inflight Calls that entered and have not exited.
# TYPE penstock_inflight gauge
penstock_inflight{resource="GET /carts"} 0
penstock_inflight{resource="GET /orders"} 0
# HELP penstock_rule_refusals_total Calls that a rule has refused since it was loaded.
# TYPE penstock_rule_refusals_total counter
penstock_rule_refusals_total{rule="at-once",type="isolation"} 0
penstock_rule_refusals_total{rule="each",type="hotspot"} 0
penstock_rule_refusals_total{rule="few",type="flow"} 2
penstock_rule_refusals_total{rule="room",type="flow"} 0
penstock_rule_refusals_total{rule="trip",type="breaker"} 2
penstock_rule_refusals_total{rule="watch",type="flow"} 0
# HELP penstock_rule_shadow_refusals_total Calls that a rule in shadow mode would have refused.
# TYPE penstock_rule_shadow_refusals_total counter
penstock_rule_shadow_refusals_total{rule="at-once",type="isolation"} 0
penstock_rule_shadow_refusals_total{rule="each",type="hotspot"} 0
penstock_rule_shadow_refusals_total{rule="few",type="flow"} 0
penstock_rule_shadow_refusals_total{rule="room",type="flow"} 0
penstock_rule_shadow_refusals_total{rule="trip",type="breaker"} 0
penstock_rule_shadow_refusals_total{rule="watch",type="flow"} 2
# HELP penstock_rule_threshold Threshold of a flow, isolation or hotspot rule.
# TYPE penstock_rule_threshold gauge
penstock_rule_threshold{resource="GET /orders",rule="at-once",type="isolation"} 100
penstock_rule_threshold{resource="GET /orders",rule="each",type="hotspot"} 1000
penstock_rule_threshold{resource="GET /orders",rule="few",type="flow"} 3
penstock_rule_threshold{resource="GET /orders",rule="room",type="flow"} 1000
penstock_rule_threshold{resource="GET /orders",rule="watch",type="flow"} 1
# HELP penstock_uncosted_calls_total Calls that have ended, and named no cost in a unit that a rule counts.
# TYPE penstock_uncosted_calls_total counter
penstock_uncosted_calls_total{resource="GET /orders",unit="bytes"} 0
# HELP penstock_units_total Units such as tokens, by result: reserved, refunded, overdrawn, forgiven or refused.
# TYPE penstock_units_total counter
penstock_units_total{resource="GET /orders",result="forgiven",unit="bytes"} 0
penstock_units_total{resource="GET /orders",result="overdrawn",unit="bytes"} 0
penstock_units_total{resource="GET /orders",result="refunded",unit="bytes"} 0
penstock_units_total{resource="GET /orders",result="refused",unit="bytes"} 5100
penstock_units_total{resource="GET /orders",result="reserved",unit="bytes"} 300
`

var helpOf = regexp.MustCompile(`(?m)^# HELP (\S+)`)

func TestCollect(t *testing.T) {
	_, c := busy(t, penstockprometheus.Config{})
	var names []string
	for _, m := range helpOf.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(text), names...))
	c.Close()
	c.Close()
}

// Names of resources, rules and sources that would share a label fail no scrape and are not merged.
func TestNamesThatWereOneLabel(t *testing.T) {
	long := strings.Repeat("a", 200)
	names := []string{"__other__", "\xff", "\xfe", long}
	for _, name := range names {
		names = append(names, series.Label(name))
	}
	set := api.RuleSet{}
	ruled := 0
	for _, name := range names {
		if !utf8.ValidString(name) {
			continue // no rule has it
		}
		ruled++
		set.Flow = append(set.Flow, flow.Rule{ID: name, Resource: name, Threshold: 1})
		set.Breaker = append(set.Breaker, breaker.Rule{ID: name, Resource: name, Strategy: breaker.ErrorCount, Threshold: 1, MinCalls: 1})
	}
	g, err := api.New(api.Config{Clock: api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	err = g.LoadRules(set)
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte("flow: []"), 0o600))
	require.NoError(t, g.WatchRules(t.Context(), dir))
	require.NoError(t, g.WatchRules(t.Context(), file)) // the same name as the one in the directory
	c := penstockprometheus.NewCollector(g, penstockprometheus.Config{})
	for _, name := range append(names, "small") {
		_ = g.Do(t.Context(), name, func(context.Context) error { return errors.New("x") })
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	series := map[string]int{}
	for _, f := range families {
		series[f.GetName()] = len(f.GetMetric())
	}
	assert.Equal(t, 2*(len(names)+1), series["penstock_entries_total"])
	assert.Equal(t, 2*ruled, series["penstock_rule_refusals_total"])
	assert.Equal(t, 6*ruled, series["penstock_circuit_breaker_state"])
	assert.Equal(t, ruled, series["penstock_circuit_breaker_transitions_total"])

	// No single resource gets the label of all others.
	few := prometheus.NewPedanticRegistry()
	few.MustRegister(penstockprometheus.NewCollector(g, penstockprometheus.Config{MaxResources: 1}))
	_, err = few.Gather()
	require.NoError(t, err)
}

// Names and help texts follow Prometheus' conventions, and a pedantic registry accepts them.
func TestLint(t *testing.T) {
	_, c := busy(t, penstockprometheus.Config{ConstLabels: prometheus.Labels{"zone": "a"}})
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	assert.Empty(t, problems)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	_, err = registry.Gather()
	require.NoError(t, err)
}

// sums adds up a metric over its series, by resource.
func sums(t testing.TB, c prometheus.Collector, name string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	all := make(map[string]float64)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "resource" {
					all[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return all
}

// Ten thousand names make only the maximum number of series, and the sum includes all calls.
func TestSeriesAreCapped(t *testing.T) {
	g, c, clock := newGuard(t, penstockprometheus.Config{MaxResources: 10}, api.RuleSet{
		Flow: []flow.Rule{{Resource: "*", Unit: "bytes", Threshold: 1e9}},
	})
	names := []string{"penstock_entries_total", "penstock_units_total"}
	last, total := make(map[string]float64), 0
	for round := range 4 {
		for i := range 2000 {
			call(t, g, clock, fmt.Sprint("r", round*1000+i), 1, nil, api.Cost("bytes", 1))
			total++
		}
		for _, name := range names {
			all := sums(t, c, name)
			require.Len(t, all, 11)
			sum := 0.0
			for _, n := range all {
				sum += n
			}
			assert.EqualValues(t, total, sum)
			assert.GreaterOrEqual(t, all["__other__"], last[name], "a counter never falls")
			last[name] = all["__other__"]
		}
	}
	clock.Advance(3 * time.Minute)
	require.Positive(t, g.Nodes().Evict(clock.Now()))
	call(t, g, clock, "new", 1, nil, api.Cost("bytes", 1))
	for _, name := range names {
		assert.Equal(t, map[string]float64{"new": 1, "__other__": last[name]}, sums(t, c, name), "there is room again, and the others' counts stay")
	}
}

// Calls that name no cost are counted, also those of resources without a label of their own.
func TestUncostedCalls(t *testing.T) {
	g, c, clock := newGuard(t, penstockprometheus.Config{MaxResources: 1}, api.RuleSet{
		Flow: []flow.Rule{{Resource: "*", Unit: "bytes", Threshold: 1e9}},
	})
	call(t, g, clock, "a", 1, nil, api.Cost("bytes", 1))
	call(t, g, clock, "a", 3, nil)
	for n := range 2 {
		call(t, g, clock, "b", 1, nil)
		assert.Equal(t, map[string]float64{"a": 3, "__other__": float64(n + 1)}, sums(t, c, "penstock_uncosted_calls_total"))
	}
}

// The calls of each level are counted, over all resources of a rule.
// All resources of a rule count, although stats list a hundred. known bug 296
func TestLevels(t *testing.T) {
	g, c, clock := newGuard(t, penstockprometheus.Config{}, api.RuleSet{
		Adaptive: []adaptive.Rule{{ID: "learn", Resource: "*", Shed: api.ShedLevels}},
		System:   []system.Rule{{ID: "most", Metric: system.Concurrency, Threshold: 0, Shed: api.ShedLevels, Mode: api.Shadow}},
	})
	call(t, g, clock, "a", 2, nil, api.Criticality(api.Sheddable))
	call(t, g, clock, "b", 1, nil, api.Criticality(api.Sheddable), api.Inbound())
	for i := range 110 {
		call(t, g, clock, fmt.Sprint("r", i), 1, nil, api.Criticality(api.Sheddable))
	}
	g.WithReceivedCriticality(t.Context(), "none", api.Critical)
	err := testutil.CollectAndCompare(c, strings.NewReader(`
# HELP penstock_level_calls_total Calls that a rule with a shed order has decided on, by criticality and result: admitted or refused.
# TYPE penstock_level_calls_total counter
`+levelLines("learn", "adaptive", "admitted", 113)+levelLines("learn", "adaptive", "refused", 0)+
		levelLines("most", "system", "admitted", 0)+levelLines("most", "system", "refused", 1)+`
# HELP penstock_unknown_criticalities_total Unknown words that callers have named as a criticality.
# TYPE penstock_unknown_criticalities_total counter
penstock_unknown_criticalities_total 1
`), "penstock_level_calls_total", "penstock_unknown_criticalities_total")
	assert.NoError(t, err)
}

// levelLines has the calls of a rule, all sheddable.
func levelLines(rule, kind, result string, sheddable int) (lines string) {
	for _, level := range []api.Level{api.CriticalPlus, api.Critical, api.SheddablePlus, api.Sheddable} {
		n := 0
		if level == api.Sheddable {
			n = sheddable
		}
		lines += fmt.Sprintf("penstock_level_calls_total{level=%q,result=%q,rule=%q,type=%q} %d\n", level, result, rule, kind, n)
	}
	return lines
}

// A scrape succeeds, and labels are short, under any names.
func TestHostileNames(t *testing.T) {
	g, c, clock := newGuard(t, penstockprometheus.Config{}, api.RuleSet{})
	names := []string{"\xff", "\xfe", "a\nb", `quo"te`, "\x00", strings.Repeat("x", 1000), strings.Repeat("x", 999) + "y", strings.Repeat("ü", 500), "__other__"}
	for _, name := range names {
		call(t, g, clock, name, 1, nil)
	}
	all := sums(t, c, "penstock_entries_total")
	assert.Len(t, all, len(names), "%q", slices.Collect(maps.Keys(all)))
	for label := range all {
		assert.LessOrEqual(t, len(label), 128)
	}
}

// Scrapes and calls run concurrently, and counters never decrease.
func TestConcurrentScrapes(t *testing.T) {
	g, c, _ := newGuard(t, penstockprometheus.Config{MaxResources: 3}, api.RuleSet{})
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				_ = g.Do(context.Background(), fmt.Sprint("r", (i+caller)%9), func(context.Context) error { return nil })
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			last := make(map[string]float64)
			for range 20 {
				for name, n := range sums(t, c, "penstock_entries_total") {
					assert.GreaterOrEqual(t, n, last[name], name)
					last[name] = n
				}
			}
		})
	}
	wg.Wait()
	sum := 0.0
	for _, n := range sums(t, c, "penstock_entries_total") {
		sum += n
	}
	assert.EqualValues(t, 8000, sum)
}

// Loads of files are counted by source.
func TestReloads(t *testing.T) {
	g, c, _ := newGuard(t, penstockprometheus.Config{}, api.RuleSet{})
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: []\n"), 0o600))
	require.NoError(t, g.WatchRules(t.Context(), path))
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(fmt.Sprintf(`
# HELP penstock_rules_reloads_total Loads of a source of rules, by result: success or failure.
# TYPE penstock_rules_reloads_total counter
penstock_rules_reloads_total{result="failure",source=%[1]q} 0
penstock_rules_reloads_total{result="success",source=%[1]q} 1
`, path)), "penstock_rules_reloads_total"))
	assert.Equal(t, 1, testutil.CollectAndCount(c, "penstock_rules_last_reload_success_timestamp_seconds"))
}

var metricName = regexp.MustCompile(`penstock_[a-z0-9_]+`)

// The dashboard and the alerts use existing metrics, and the dashboard has every metric of a
// resource.
func TestFilesNameMetrics(t *testing.T) {
	_, c := busy(t, penstockprometheus.Config{})
	descs := make(chan *prometheus.Desc, 100)
	c.Describe(descs)
	close(descs)
	known := make(map[string]bool)
	for d := range descs {
		name := metricName.FindString(d.String())
		known[name] = true
		if name == "penstock_entry_duration_seconds" {
			known[name+"_sum"], known[name+"_count"] = true, true
		}
	}
	dashboard, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(dashboard, &d))
	require.NotEmpty(t, d.Panels)
	ids, places := make(map[int]bool), make(map[[2]int]bool)
	var exprs []string
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID] || places[[2]int{p.GridPos.X, p.GridPos.Y}], p.Title)
		ids[p.ID], places[[2]int{p.GridPos.X, p.GridPos.Y}] = true, true
		assert.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	alerts, err := os.ReadFile("alerts.yaml")
	require.NoError(t, err)
	shown := strings.Join(exprs, "\n")
	for _, name := range metricName.FindAllString(shown+string(alerts)+string(dashboard), -1) {
		assert.True(t, known[name], "no metric is called %s", name)
	}
	for name := range known {
		if !slices.Contains([]string{"penstock_entry_duration_seconds", "penstock_system_memory_bytes", "penstock_node_overflows_total"}, name) {
			assert.Contains(t, shown, name)
		}
	}
}

func Example() {
	guard, err := api.New(api.Config{})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(penstockprometheus.NewCollector(guard, penstockprometheus.Config{}))

	_ = guard.Do(context.Background(), "GET /orders", func(context.Context) error { return nil })

	n, err := testutil.GatherAndCount(registry, "penstock_entries_total")
	if err != nil {
		panic(err)
	}
	fmt.Println(n, "series: passed and refused calls")
	// Output:
	// 2 series: passed and refused calls
}

// With percentiles, durations have quantiles, of the last minute.
func TestQuantiles(t *testing.T) {
	clock := api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
	g, err := api.New(api.Config{Clock: clock, Percentiles: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	c := penstockprometheus.NewCollector(g, penstockprometheus.Config{})
	call(t, g, clock, "orders", 10, nil)
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP penstock_entry_duration_seconds Response times of completed calls.
# TYPE penstock_entry_duration_seconds summary
penstock_entry_duration_seconds{resource="orders",quantile="0.5"} 0.00199831
penstock_entry_duration_seconds{resource="orders",quantile="0.95"} 0.00199831
penstock_entry_duration_seconds{resource="orders",quantile="0.99"} 0.00199831
penstock_entry_duration_seconds_sum{resource="orders"} 0.02
penstock_entry_duration_seconds_count{resource="orders"} 10
`), "penstock_entry_duration_seconds"))
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// fickle is a store that a test can disconnect.
type fickle struct {
	*cluster.Memory
	away bool
}

func (s *fickle) Start(ctx context.Context, batch []store.Command, done func()) {
	if !s.away {
		s.Memory.Start(ctx, batch, done)
		return
	}
	for _, c := range batch {
		c.Result().Err = errors.New("away")
	}
	done()
}

// Single values and shared limits have metrics.
func TestValuesAndSharedLimits(t *testing.T) {
	clock := api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
	clock.SetSleep(api.SleepAdvance)
	shared := &fickle{Memory: cluster.NewMemory(clock)}
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler), Cluster: cluster.Config{Store: shared, Members: 3}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(api.RuleSet{
		Flow:    []flow.Rule{{ID: "all", Resource: "orders", Threshold: 4, Cluster: cluster.Rule{Scope: cluster.Global}}},
		Hotspot: []hotspot.Rule{{ID: "each", Resource: "orders", Param: "user", Threshold: 1000, MaxValues: 2}},
	}))
	c := penstockprometheus.NewCollector(g, penstockprometheus.Config{})
	for i := range 9 {
		call(t, g, clock, "orders", 1, nil, api.Param("user", i))
	}
	gather := func() map[string]float64 {
		registry := prometheus.NewPedanticRegistry()
		require.NoError(t, registry.Register(c))
		families, err := registry.Gather()
		require.NoError(t, err)
		all := make(map[string]float64)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				all[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		return all
	}
	first := gather()
	assert.EqualValues(t, 2, first["penstock_hotspot_values"])
	assert.Positive(t, first["penstock_hotspot_value_overflows_total"])
	assert.EqualValues(t, 3, first["penstock_cluster_members"])
	assert.Positive(t, first["penstock_cluster_lease_requests_total"])
	assert.Zero(t, first["penstock_cluster_fallback"])
	assert.Equal(t, first, gather(), "a scrape changes nothing")

	shared.away = true
	clock.Advance(5 * time.Second)
	call(t, g, clock, "orders", 3, nil)
	assert.EqualValues(t, 1, gather()["penstock_cluster_fallback"])
	clock.Advance(3 * time.Minute) // the resource leaves, with its counts
	require.Positive(t, g.Nodes().Evict(clock.Now()))
	last := gather()
	for _, name := range []string{"penstock_hotspot_value_overflows_total", "penstock_cluster_lease_requests_total"} {
		assert.GreaterOrEqual(t, last[name], first[name], name)
	}

	shared.away = false
	clock.Advance(2 * time.Second) // a probe finds the store back
	require.NoError(t, g.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{
		ID: "each", Resource: "orders", Param: "user", Threshold: 1000, Cluster: cluster.Rule{Scope: cluster.Global},
	}}}))
	call(t, g, clock, "orders", 3, nil, api.Param("user", "ann"))
	assert.EqualValues(t, 3, gather()["penstock_cluster_members"], "of values that share a limit")
	assert.Positive(t, gather()["penstock_cluster_lease_requests_total"])
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// Upstream rules have metrics of their pauses, retries and throttles.
func TestUpstreams(t *testing.T) {
	g, err := api.New(api.Config{Clock: api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(api.RuleSet{Upstream: []upstream.Rule{{
		ID: "u", Resource: "orders", Obey: true, Retries: upstream.Retries{Least: 2}, Throttle: upstream.Throttle{K: 1},
	}}}))
	held, err := g.Entry(t.Context(), "orders", api.Retry())
	require.NoError(t, err)
	defer held.Exit()
	e, err := g.Entry(t.Context(), "orders")
	require.NoError(t, err)
	e.Fail(api.Overloaded(errors.New("503"), time.Minute))
	e.Exit()
	c := penstockprometheus.NewCollector(g, penstockprometheus.Config{})
	assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP penstock_upstream_missed_pauses_total Answers that an upstream rule did not obey, as it had paused too many others.
# TYPE penstock_upstream_missed_pauses_total counter
penstock_upstream_missed_pauses_total{rule="u"} 0
# HELP penstock_upstream_paused Resources or hosts that an upstream rule pauses.
# TYPE penstock_upstream_paused gauge
penstock_upstream_paused{rule="u"} 1
# HELP penstock_upstream_refuse_probability Probability with which the throttle of an upstream rule refuses a call.
# TYPE penstock_upstream_refuse_probability gauge
penstock_upstream_refuse_probability{resource="orders",rule="u"} 0.5
# HELP penstock_upstream_retries Retries in flight.
# TYPE penstock_upstream_retries gauge
penstock_upstream_retries{resource="orders",rule="u"} 1
# HELP penstock_upstream_retry_budget Retries that may be in flight now.
# TYPE penstock_upstream_retry_budget gauge
penstock_upstream_retry_budget{resource="orders",rule="u"} 2
`), "penstock_upstream_paused", "penstock_upstream_missed_pauses_total", "penstock_upstream_retries", "penstock_upstream_retry_budget", "penstock_upstream_refuse_probability"))
}
