package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/gateway"
	"github.com/penstock-go/penstock/system"
)

func TestResourcesAreListedByTraffic(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{Flow: []flow.Rule{{ID: "few", Resource: "orders", Threshold: 2}}})
	l.call(1, "quiet")
	l.call(5, "orders")
	l.clock.Advance(time.Second)
	l.call(1, "orders")
	l.call(3, "Search")
	var got resourcesReply
	l.get("/api/resources", &got)
	require.Len(t, got.Resources, 3)
	orders := got.Resources[0]
	assert.Equal(t, "orders", orders.Name)
	assert.Equal(t, 3, got.Total)
	assert.Equal(t, begin.Unix()+1, got.EndUnix)
	assert.Equal(t, []int64{2, 0}, orders.History.Pass[58:])
	assert.Equal(t, []int64{3, 1}, orders.History.Block[58:])
	assert.EqualValues(t, 2, orders.LastSecond.Pass)
	assert.EqualValues(t, 4, orders.Minute.Block)
	assert.Equal(t, "Search", got.Resources[1].Name)
	assert.Equal(t, "quiet", got.Resources[2].Name)

	l.get("/api/resources?q=SEAR", &got)
	assert.Equal(t, 1, got.Total)
	l.get("/api/resources?limit=1&offset=1", &got)
	assert.Equal(t, 3, got.Total)
	assert.Equal(t, "Search", got.Resources[0].Name)
	l.get("/api/resources?offset=9", &got)
	assert.Empty(t, got.Resources)
	assert.Equal(t, http.StatusBadRequest, l.do(request("GET", "/api/resources?limit=-1", "")).Code)
}

func TestAResourceWithAllThereIsOfIt(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{
		Flow: []flow.Rule{
			{ID: "all", Resource: "orders", Threshold: 20, Interval: 2 * time.Second},
			{ID: "acme", Resource: "orders", Origin: "acme", Threshold: 4},
			{ID: "try", Resource: "orders", Threshold: 1, Mode: spec.Shadow},
		},
		Isolation: []isolation.Rule{{ID: "four", Resource: "orders", Threshold: 4}},
		Hotspot:   []hotspot.Rule{{ID: "users", Resource: "orders", Param: "user", Threshold: 100}},
	})
	acme := engine.WithOrigin(engine.WithContext(t.Context(), "web"), "acme")
	require.Equal(t, 2, l.callFrom(acme, 6, "orders", engine.Param("user", "ann")))
	l.call(1, "orders", engine.Param("user", "<b>"))
	e, err := l.guard.Entry(t.Context(), "orders")
	require.NoError(t, err)
	defer e.Exit()

	var got resource
	var raw struct{ Rules []struct{ ID, Kind string } }
	l.get("/api/resources/orders", &raw)
	w := l.do(request("GET", "/api/resource?name=orders", ""))
	require.Equal(t, 200, w.Code)
	var generic map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &generic))
	answer, err := l.console.resource("orders")
	require.NoError(t, err)
	got = *answer
	assert.EqualValues(t, 1, got.InFlight)
	assert.EqualValues(t, 6, got.Lifetime.Pass)
	assert.EqualValues(t, 2, got.History.Block[59])
	require.NotNil(t, got.Limit)
	assert.InDelta(t, 10, *got.Limit, 1e-9, "20 in 2 s")
	require.Len(t, got.Origins, 1)
	assert.Equal(t, "acme", got.Origins[0].Name)
	assert.Equal(t, []hotValue{
		{"users", `"ann"`, 4, 0, 0, engine.MeasureUnits("units in 1s", 4, 100), new(0.04)},
		{"users", `"<b>"`, 1, 0, 0, engine.MeasureUnits("units in 1s", 1, 100), new(0.01)},
	}, got.HotValues)
	full := map[string]float64{}
	for _, r := range got.Rules {
		if r.Full != nil {
			full[r.ID] = *r.Full
		}
	}
	assert.Equal(t, map[string]float64{"all": 0.3, "acme": 1, "try": 1, "four": 0.25}, full)
	require.Len(t, got.Refusals, 1)
	assert.Equal(t, refusal{
		First: begin, Last: begin, Count: 2, Kind: core.KindFlow, Rule: "acme", Context: "web", Origin: "acme",
		Reason: `flow rule "acme" blocked "orders"`,
	}, got.Refusals[0])

	assert.Equal(t, http.StatusNotFound, l.do(request("GET", "/api/resource?name=none", "")).Code)
	assert.Equal(t, http.StatusNotFound, l.do(request("GET", "/api/resources/none", "")).Code)
}

// Units that calls cost have counts, and fill their rules, but say nothing about calls per second.
func TestUnitsOfAResource(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{Flow: []flow.Rule{
		{ID: "room", Resource: "chat", Unit: "tokens", Threshold: 1000},
		{ID: "bucket", Resource: "chat", Unit: "units", Threshold: 1000, Behavior: flow.TokenBucket, Burst: 10},
	}})
	l.call(3, "chat", engine.Cost("tokens", 100), engine.Cost("units", 1))
	one, err := l.console.resource("chat")
	require.NoError(t, err)
	require.Len(t, one.Units, 2)
	assert.Equal(t, core.UnitCounts{Reserved: 300}, one.Units[0].Minute)
	assert.InDelta(t, 0.3, *one.Rules[0].Full, 1e-9)
	assert.Nil(t, one.Limit)
	l = newLab(t, Config{}, api.RuleSet{})
	l.call(1, "chat", engine.Cost("tokens", 100))
	assert.NotContains(t, l.do(request("GET", "/api/resource?name=chat", "")).Body.String(), `"units"`)
}

// With percentiles on, they are shown next to the mean of the minute; otherwise they are absent.
func TestPercentilesStandBesideTheMean(t *testing.T) {
	for _, on := range []bool{false, true} {
		l := newLabOf(t, api.Config{Percentiles: on}, Config{}, api.RuleSet{})
		for i := range 100 {
			e, err := l.guard.Entry(t.Context(), "orders")
			require.NoError(t, err)
			took := time.Millisecond
			if i%10 == 0 {
				took = 100 * time.Millisecond
			}
			l.clock.Advance(took)
			e.Exit()
		}
		var list struct {
			Percentiles bool
			Resources   []struct{ Minute map[string]float64 }
		}
		var one struct{ Minute, LastSecond, Lifetime map[string]float64 }
		l.get("/api/resources", &list)
		l.get("/api/resource?name=orders", &one)
		assert.Equal(t, on, list.Percentiles)
		for _, minute := range []map[string]float64{list.Resources[0].Minute, one.Minute} {
			if !on {
				assert.NotContains(t, minute, "p50Ms")
				continue
			}
			assert.InEpsilon(t, 1, minute["p50Ms"], 0.031)
			assert.InEpsilon(t, 100, minute["p95Ms"], 0.031)
			assert.InEpsilon(t, 100, minute["p99Ms"], 0.031)
		}
		assert.NotContains(t, one.LastSecond, "p50Ms")
		assert.NotContains(t, one.Lifetime, "p50Ms")
	}
}

// A resource is found under any name.
func TestNamesThatArePaths(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{})
	for _, name := range []string{"GET /orders/{id}", "a//b", "..", "a?b#c", "<script>alert(1)</script>", "日本\u2028\x00\n", "%2e"} {
		l.call(1, name)
		var got struct{ Name string }
		l.get("/api/resource?name="+url.QueryEscape(name), &got)
		assert.Equal(t, name, got.Name)
		if name != ".." {
			l.get("/api/resources/"+url.PathEscape(name), &got)
			assert.Equal(t, name, got.Name)
		}
	}
	w := l.do(request("GET", "/api/resources", ""))
	assert.NotContains(t, w.Body.String(), "<script>", "JSON is safe to embed")
}

func TestRulesAndHowFullTheyAre(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{Flow: []flow.Rule{
		{ID: "any", Resource: "o.*", Match: spec.MatchRegex, Threshold: 10},
		{ID: "try", Resource: "orders", Threshold: 1, Mode: spec.Shadow},
		{ID: "closed", Resource: "closed", Threshold: 0},
		{ID: "off", Resource: "orders", Threshold: 1, Mode: spec.Off},
	}})
	l.call(5, "orders")
	l.call(2, "other")
	var raw struct {
		Writable bool
		Rules    []struct {
			ID            string
			ShadowBlocked int64
			Full          *float64
			Rule          struct{ Threshold float64 }
			Measures      []struct {
				Resource        string
				Measured, Limit float64
			}
		}
		Sources []struct{ Source string }
	}
	l.get("/api/rules", &raw)
	require.Len(t, raw.Rules, 4)
	assert.False(t, raw.Writable)
	assert.Equal(t, "code", raw.Sources[0].Source)
	wide := raw.Rules[0]
	assert.EqualValues(t, 10, wide.Rule.Threshold)
	require.Len(t, wide.Measures, 2)
	assert.Equal(t, "orders", wide.Measures[0].Resource, "the fullest is the first")
	assert.Equal(t, "other", wide.Measures[1].Resource)
	assert.InDelta(t, 0.5, *wide.Full, 1e-9)
	assert.EqualValues(t, 4, raw.Rules[1].ShadowBlocked)
	assert.InDelta(t, 1, *raw.Rules[1].Full, 1e-9)
	assert.Nil(t, raw.Rules[2].Full, "it refuses every call and measures nothing")
	assert.Nil(t, raw.Rules[3].Full)
}

// A hotspot rule is as full as the fullest of its hottest values.
// A rule that counts resources together has one measure, under its pattern.
func TestRulesThatCountTogetherHaveOneMeasure(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{Flow: []flow.Rule{{ID: "all", Resource: "o*", Match: spec.MatchPrefix, Together: true, Threshold: 10}}})
	l.call(5, "orders")
	l.call(2, "other")
	var raw struct {
		Rules []struct {
			Resource string
			Full     *float64
			Measures []struct {
				Resource        string
				Measured, Limit float64
			}
		}
	}
	l.get("/api/rules", &raw)
	require.Len(t, raw.Rules, 1)
	require.Len(t, raw.Rules[0].Measures, 1)
	assert.Equal(t, "o*", raw.Rules[0].Measures[0].Resource)
	assert.EqualValues(t, 7, raw.Rules[0].Measures[0].Measured)
	assert.InDelta(t, 0.7, *raw.Rules[0].Full, 1e-9)
}

func TestHowFullHotspotRulesAre(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{Hotspot: []hotspot.Rule{{ID: "users", Resource: "orders", Param: "user", Threshold: 10}}})
	for user, calls := range map[string]int{"ann": 9, "bob": 3} {
		for range calls {
			e, err := l.guard.Entry(t.Context(), "orders", api.Param("user", user))
			require.NoError(t, err)
			e.Exit()
		}
	}
	var raw struct{ Rules []struct{ Full *float64 } }
	l.get("/api/rules", &raw)
	require.Len(t, raw.Rules, 1)
	require.NotNil(t, raw.Rules[0].Full)
	assert.InDelta(t, 0.9, *raw.Rules[0].Full, 1e-9)
}

// Rules of every family report that their store is unreachable.
func TestRulesWhoseStoreIsAway(t *testing.T) {
	clock := api.NewManualClock(begin)
	store := &shutStore{Memory: cluster.NewMemory(clock)}
	shared := cluster.Rule{Scope: cluster.Global}
	set := api.RuleSet{
		Flow:    []flow.Rule{{ID: "all", Resource: "orders", Threshold: 1000, Cluster: shared}, {ID: "alone", Resource: "orders", Threshold: 1000}},
		Hotspot: []hotspot.Rule{{ID: "each", Resource: "orders", Param: "user", Threshold: 1000, Cluster: shared}},
	}
	l := newLabOf(t, api.Config{Cluster: cluster.Config{Store: store}}, Config{}, api.RuleSet{})
	var list resourcesReply
	l.get("/api/resources", &list)
	require.Empty(t, list.Alerts, "no rule is shared yet")
	require.NoError(t, l.guard.LoadRules(set))
	l.clock.SetSleep(api.SleepAdvance)
	away := func() map[string]bool {
		var raw struct {
			Rules []struct {
				ID        string
				StoreAway bool
			}
		}
		l.get("/api/rules", &raw)
		all := map[string]bool{}
		for _, r := range raw.Rules {
			all[r.ID] = r.StoreAway
		}
		return all
	}
	l.call(1, "orders", api.Param("user", "ann"))
	assert.Equal(t, map[string]bool{"all": false, "alone": false, "each": false}, away())
	store.shut = true
	for range 10 {
		l.clock.Advance(2 * time.Second)
		l.call(1, "orders", api.Param("user", "ann"))
	}
	assert.Equal(t, map[string]bool{"all": true, "alone": false, "each": true}, away())
	l.get("/api/resources", &list)
	assert.Equal(t, []alert{{What: "store", State: "away", Rules: 2}}, list.Alerts)
}

// Every path that feeds the page reports failed and stale sources.
func TestSourcesThatFailAreTold(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{})
	dir := t.TempDir()
	path := filepath.Join(dir, "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: [{id: few, resource: orders, threshold: 2}]"), 0o600))
	require.NoError(t, l.guard.WatchRules(t.Context(), path))
	l.call(1, "orders")
	shown := func() []alert {
		var list resourcesReply
		l.get("/api/resources", &list)
		return list.Alerts
	}
	assert.Empty(t, shown())
	require.NoError(t, os.WriteFile(path, []byte("flow: [{id: few, resource: orders, treshold: 2}]"), 0o600))
	patience.Until(t, "the source fails", func() bool { return !l.guard.Status().OK })
	all := shown()
	require.Len(t, all, 1)
	assert.Equal(t, "source failed "+path, all[0].What+" "+all[0].State+" "+all[0].Name)
	assert.Contains(t, all[0].Error, "treshold: unknown field")
	f := newFrames(l.console)
	l.clock.Advance(2 * time.Second)
	assert.Contains(t, string(f.next()), `"alerts":[{"what":"source","state":"failed","name":"`+path+`"`)

	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, s := range map[string]rules.Status{
		"":       {OK: true, Watching: true, Confirmed: now.Add(-9 * time.Minute)},
		"stale":  {OK: true, Watching: true, Confirmed: now.Add(-11 * time.Minute)},
		"cached": {OK: true, Watching: true, Confirmed: now, Cached: now.Add(-time.Hour)},
		"failed": {LastFailure: now, LastError: errors.New("no\x1b" + strings.Repeat("x", 10_000))},
	} {
		s.Source = "\x1b" + strings.Repeat("y", 10_000)
		a, is := alertOf(s, now)
		assert.Equal(t, want != "", is, want)
		assert.Equal(t, want, a.State)
		assert.Less(t, len(a.Error), 400)
		assert.NotContains(t, a.Error, "\x1b")
		assert.Less(t, len(a.Name), 400)
		assert.NotContains(t, a.Name, "\x1b")
	}
}

// shutStore is a store that can stop responding.
type shutStore struct {
	*cluster.Memory
	shut bool
}

func (s *shutStore) Start(ctx context.Context, batch []store.Command, done func()) {
	if !s.shut {
		s.Memory.Start(ctx, batch, done)
	}
}

// Gateway rules run as rules of other families, but are shown as written.
func TestGatewayRulesAreShownAsWritten(t *testing.T) {
	l := newLab(t, Config{WriteToken: writeToken, WriteRules: true}, api.RuleSet{Gateway: []gateway.Rule{
		{ID: "all", Route: "orders", Threshold: 3}, {ID: "each", Route: "orders", Param: gateway.ClientIP, Threshold: 9},
	}})
	l.call(1, "orders")
	var got struct {
		Rules []struct {
			ID, Kind, List, Resource string
			Full                     *float64
			Rule                     struct {
				Route, Param string
				Threshold    float64
			}
		}
	}
	l.get("/api/rules", &got)
	require.Len(t, got.Rules, 2)
	for _, r := range got.Rules {
		assert.Equal(t, "gateway", r.List, r.ID)
		assert.Equal(t, "orders", r.Resource)
		assert.Equal(t, "orders", r.Rule.Route)
		assert.Equal(t, map[string]float64{"all": 3, "each": 9}[r.ID], r.Rule.Threshold)
	}
	var made change
	require.Equal(t, 200, post(l, "/api/rules/diff", `{"rules":{"gateway":[{"id":"all","route":"orders","threshold":7}]}}`, &made))
	assert.Equal(t, "+0 ~1 -0", made.Change)
	assert.Contains(t, made.Diff, "threshold 3 -> 7")
}

// everyKey is a rule file with every key of the schema.
const everyKey = `
authority: [{id: who, resource: orders, origins: [acme]}]
system: [{id: calls, metric: concurrency, threshold: 1000}]
hotspot: [{id: users, resource: orders, param: user, threshold: 100}]
flow: [{id: few, resource: orders, threshold: 10}, {id: all, resource: search, threshold: 10, cluster: {scope: global}}]
isolation: [{id: four, resource: orders, threshold: 4}]
adaptive: [{id: learns, resource: search}]
breaker: [{id: trips, resource: orders, threshold: 0.5}]
upstream: [{id: obeys, resource: orders, obey: true}]
outlier: [{id: ejects, resource: orders, threshold: 0.5}]
groups: [{id: shop, paths: [{path: /shop, match: exact}]}]
gateway: [{id: gate, route: checkout, threshold: 5}]
cluster: {namespace: shop, members: 3}
`

// A file may have mappings as well as lists. Every rule keeps its text, its limit is drawn, and it can
// be changed.
func TestEveryKeyOfARuleFileIsShown(t *testing.T) {
	var schema struct {
		Definitions struct {
			Native struct{ Properties map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal(rules.Schema(), &schema))
	keys := schema.Definitions.Native.Properties
	delete(keys, "dialect")
	require.NotEmpty(t, keys)
	for key := range keys {
		assert.Contains(t, everyKey, "\n"+key+": ")
	}
	set, err := rules.Parse("rules.yaml", []byte(everyKey))
	require.NoError(t, err)
	clock := api.NewManualClock(begin)
	l := newLabOf(t, api.Config{Cluster: cluster.Config{Store: cluster.NewMemory(clock)}}, Config{WriteToken: writeToken, WriteRules: true}, set)
	l.clock.SetSleep(api.SleepAdvance)
	var got struct {
		Rules []struct {
			ID, Kind, List string
			Rule           map[string]any
		}
	}
	l.get("/api/rules", &got)
	shown := map[string]bool{"groups": true, "cluster": true} // these limit nothing by themselves
	for _, r := range got.Rules {
		assert.NotEmpty(t, r.Rule, r.ID)
		assert.Equal(t, r.ID, r.Rule["id"])
		shown[cmp.Or(r.List, r.Kind)] = true
	}
	for key := range keys {
		assert.True(t, shown[key], key)
	}
	l.callFrom(engine.WithOrigin(t.Context(), "acme"), 1, "orders")
	var one struct{ Limit *float64 }
	l.get("/api/resources/orders", &one)
	require.NotNil(t, one.Limit)
	assert.InDelta(t, 10, *one.Limit, 1e-9)

	const edit = `{"rules":{"flow":[{"id":"few","resource":"orders","threshold":20}],"cluster":{"namespace":"shop","members":4}}`
	var made, applied struct{ Change, Diff, Proof, Error string }
	require.Equal(t, 200, post(l, "/api/rules/diff", edit+"}", &made), made.Error)
	assert.Equal(t, "+0 ~1 -0 and cluster", made.Change)
	assert.Contains(t, made.Diff, "threshold 10 -> 20")
	assert.Contains(t, made.Diff, "members 3 -> 4")
	require.Equal(t, 200, post(l, "/api/rules/apply", edit+`,"proof":"`+made.Proof+`"}`, &applied), applied.Error)
	after := l.guard.Rules()
	assert.Equal(t, []rules.Cluster{{Namespace: "shop", Members: 4}}, after.Cluster)
	assert.EqualValues(t, 20, after.Flow[0].Threshold)
	assert.Equal(t, len(set.Groups), len(after.Groups))
}

func TestExplain(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{
		Flow:    []flow.Rule{{ID: "acme", Resource: "orders", Origin: "acme", Threshold: 0}, {ID: "room", Resource: "orders", Unit: "bytes", Threshold: 100}},
		Hotspot: []hotspot.Rule{{ID: "users", Resource: "orders", Param: "user", Threshold: 0}, {ID: "first", Resource: "orders", Index: hotspot.At(0), Threshold: 0}},
	})
	outcome := func(query string) string {
		var got struct {
			Outcome string
			By      int
			Rules   []struct{ ID string }
			Text    string
		}
		l.get("/api/explain?resource=orders&"+query, &got)
		require.NotEmpty(t, got.Text)
		if got.By < 0 {
			return got.Outcome
		}
		return got.Outcome + " by " + got.Rules[got.By].ID
	}
	assert.Equal(t, "passes", outcome("origin=globex&units=3&inbound=true&prioritized=false&context=web&endpoint=a"))
	assert.Equal(t, "refused by acme", outcome("origin=acme"))
	assert.Equal(t, "refused by users", outcome("arg.user=ann"))
	assert.Equal(t, "refused by first", outcome("arg.0=7"))
	assert.Equal(t, "passes", outcome("cost.bytes=100"))
	assert.Equal(t, "refused by room", outcome("cost.bytes=101"))
	for _, bad := range []string{"", "resource=a&units=x", "resource=a&inbound=x", "resource=a&arg.100=1", "resource=a&cost.bytes=x", "resource=a&cost.=1", "resource=a&what=1"} {
		assert.Equal(t, http.StatusBadRequest, l.do(request("GET", "/api/explain?"+bad, "")).Code, bad)
	}
	_, known := l.guard.FindResource("nobody")
	l.get("/api/explain?resource=nobody", &struct{}{})
	_, now := l.guard.FindResource("nobody")
	assert.Equal(t, known, now, "to look makes nothing")
}

// Explain assumes an inbound call, like calls of server adapters, so that system rules apply.
func TestExplainAssumesAnInboundCall(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{System: []system.Rule{{ID: "none", Metric: system.Concurrency, Threshold: 0}}})
	ask := func(query string) (got struct {
		Outcome string
		Assumed []string
	}) {
		l.get("/api/explain?resource=orders"+query, &got)
		return got
	}
	x := ask("")
	assert.Equal(t, "refused", x.Outcome)
	assert.Equal(t, []string{"inbound", "one unit", "not prioritized", "no caller", "the default context", "no endpoint", "no arguments"}, x.Assumed)
	assert.Equal(t, "refused", ask("&inbound=true").Outcome)
	x = ask("&inbound=false&units=1&prioritized=false&origin=acme&context=web&endpoint=a&arg.user=ann")
	assert.Equal(t, "passes", x.Outcome)
	assert.Equal(t, []string{}, x.Assumed)
}

func TestBreakersAndWhatTheyDid(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{Breaker: []breaker.Rule{{ID: "b", Resource: "orders", MinCalls: 1, Recovery: time.Second}}})
	e, err := l.guard.Entry(t.Context(), "orders")
	require.NoError(t, err)
	e.Fail(errors.New("x"))
	e.Exit()
	var got struct {
		Breakers []breaker.Status
		Changes  []breakerChange
	}
	l.get("/api/breakers", &got)
	require.Len(t, got.Breakers, 1)
	require.Len(t, got.Changes, 1)
	assert.Equal(t, breaker.Open, got.Changes[0].To)
	const why = "share of failed calls in 10s: 1, threshold 0"
	assert.Equal(t, why, got.Changes[0].Why)
	assert.Equal(t, why, got.Breakers[0].Why)
	assert.Equal(t, breaker.Trip{At: begin, Value: 1, Calls: 1, Bad: 1}, got.Breakers[0].Trip)
	assert.Zero(t, got.Breakers[0].Calls, "which begin anew")
	var list resourcesReply
	l.get("/api/resources", &list)
	assert.Equal(t, []string{"breaker open"}, list.Resources[0].Marks)
	one, err := l.console.resource("orders")
	require.NoError(t, err)
	assert.Len(t, one.Changes, 1)
	assert.Len(t, one.Breakers, 1)

	var line timeline
	for i := range 3 * timelineLength / 2 {
		line.add(breaker.Change{Rule: fmt.Sprint(i)})
	}
	all := line.of("")
	assert.Len(t, all, timelineLength)
	assert.Equal(t, "1499", all[0].Rule)
	assert.Equal(t, "500", all[timelineLength-1].Rule)
}

func TestTheTreeIsThatOfInspect(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{})
	l.call(1, "orders")
	w := l.do(request("GET", "/api/tree", ""))
	want, err := json.Marshal(l.guard.Tree())
	require.NoError(t, err)
	assert.JSONEq(t, string(want), w.Body.String())
}

func TestFramesTellWhatHappened(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{
		Flow:    []flow.Rule{{ID: "few", Resource: "orders", Threshold: 2}},
		Breaker: []breaker.Rule{{ID: "b", Resource: "sql", MinCalls: 1}},
	})
	f := newFrames(l.console)
	assert.Nil(t, f.next(), "no second has ended")
	l.call(5, "orders")
	l.call(1, "idle")
	e, err := l.guard.Entry(t.Context(), "sql")
	require.NoError(t, err)
	e.Fail(errors.New("x"))
	e.Exit()
	l.clock.Advance(time.Second)
	require.NoError(t, l.guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{ID: "few", Resource: "orders", Threshold: 3}}}))
	assert.Equal(t, `event: frame
data: {"at":"2026-03-01T12:00:01Z","endUnix":1772366400,"waiting":0,"resources":[["idle",1,0,1,0,0,0,0],["orders",2,3,2,0,0,0,0],["sql",1,0,1,1,0,0,0]]}

event: burst
data: {"at":"2026-03-01T12:00:01Z","resource":"orders","blocked":3}

event: reload
data: {"at":"2026-03-01T12:00:01Z","revision":2,"hash":"`+l.guard.Status().Hash+`","change":"+0 ~1 -1","sources":["code"]}

event: breaker
data: {"at":"2026-03-01T12:00:00Z","rule":"b","resource":"sql","from":"closed","to":"open","value":1,"why":"share of failed calls in 10s: 1, threshold 0"}

`, sorted(string(f.next())))
	assert.Nil(t, f.next())
	l.clock.Advance(time.Second)
	assert.Contains(t, string(f.next()), `"resources":[]}`)
	l.call(9, "orders")
	l.clock.Advance(time.Second)
	assert.NotContains(t, string(f.next()), "event: burst", "it goes on")
	l.clock.Advance(6 * time.Second)
	f.next()
	l.call(9, "orders")
	l.clock.Advance(time.Second)
	assert.Contains(t, string(f.next()), "event: burst")
}

// sorted returns a frame with its rows sorted by name: resources may come in any order.
func sorted(frame string) string {
	head, rest, _ := strings.Cut(frame, `"resources":[`)
	rows, tail, _ := strings.Cut(rest, "]}")
	list := strings.Split(strings.TrimSuffix(rows, "]"), "],")
	for i := range list {
		for j := range i {
			if list[i] < list[j] {
				list[i], list[j] = list[j], list[i]
			}
		}
	}
	return head + `"resources":[` + strings.Join(list, "],") + "]]}" + tail
}

// A resource with a name that is not UTF-8 is distinguishable, and can be requested by its escaped
// name or, if no other resource has the same JSON, by the name in JSON.
func TestNamesThatAreNoText(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{Hotspot: []hotspot.Rule{{ID: "all", Resource: "*", Param: "user", Threshold: 5}}})
	names := []string{"bad\xff", "bad\xfe", "sole\xff\xff", "a b+&%é\xff", "sole"}
	f := newFrames(l.console)
	for _, name := range names {
		l.call(1, name, engine.Param("user", "ann"))
	}
	type addressed struct {
		Name, Escaped string
		HotValues     []hotValue
	}
	var all struct{ Resources []addressed }
	l.get("/api/resources", &all)
	found := make(map[string]bool)
	for _, r := range all.Resources {
		name, err := url.QueryUnescape(cmp.Or(r.Escaped, url.QueryEscape(r.Name)))
		require.NoError(t, err)
		found[name] = true
		var one addressed
		l.get("/api/resource?name="+cmp.Or(r.Escaped, url.QueryEscape(r.Name)), &one)
		assert.Equal(t, r.Name, one.Name)
		assert.Equal(t, r.Escaped, one.Escaped)
		assert.NotEmpty(t, one.HotValues, "%q", name)
	}
	for _, name := range names {
		assert.True(t, found[name], "%q", name)
	}
	var one addressed
	l.get("/api/resource?name="+url.QueryEscape("sole\ufffd\ufffd"), &one)
	assert.Equal(t, "sole%FF%FF", one.Escaped)
	for _, name := range []string{"bad\ufffd", "sole\ufffd"} {
		assert.Equal(t, http.StatusNotFound, l.do(request("GET", "/api/resource?name="+url.QueryEscape(name), "")).Code, "%q is of two, or of none", name)
	}
	l.clock.Advance(time.Second)
	rows := string(f.next())
	assert.Contains(t, rows, `,0,"bad%FF"]`)
	assert.Contains(t, rows, `,0,"a%20b%2B%26%25%C3%A9%FF"]`)
	assert.NotContains(t, rows, `,0,"sole"]`)
}
