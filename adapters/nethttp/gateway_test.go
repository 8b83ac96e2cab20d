package nethttp_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/rules/gateway"
)

var shopGroup = gateway.Group{ID: "shop", Paths: []gateway.Path{{Path: "/orders"}, {Path: "/orders/*", Match: spec.MatchPrefix}}}

// gatewayGuard returns a guard on a clock that stands still.
func gatewayGuard(t *testing.T, set api.RuleSet) *api.Guard {
	t.Helper()
	g, err := api.New(api.Config{Clock: api.NewManualClock(time.Unix(1_700_000_000, 0)), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	books.Keep(t, g.Engine())
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(set))
	return g
}

func firstPart(r *http.Request) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return first
}

// serve passes a request to a handler and returns the status.
func serve(h http.Handler, path string, change ...func(*http.Request)) int {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	r.URL.Path = path
	for _, c := range change {
		c(r)
	}
	h.ServeHTTP(w, r)
	return w.Code
}

func passed(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// Before a real reverse proxy: groups limit several routes together, each value has its own limit,
// and refused requests never reach the backend.
func TestGatewayBeforeAReverseProxy(t *testing.T) {
	g := gatewayGuard(t, api.RuleSet{
		Groups: []gateway.Group{shopGroup},
		Gateway: []gateway.Rule{
			{ID: "tenants", Group: "shop", Param: gateway.Header, Name: "x-tenant", Threshold: 2, Interval: time.Minute},
			{ID: "shop", Group: "shop", Threshold: 3, Interval: time.Minute},
			{ID: "search", Route: "search", Param: gateway.Query, Name: "q", Value: "slow", ValueMatch: gateway.Contains, Threshold: 1, Interval: time.Minute},
		},
	})
	var mu sync.Mutex
	var served []string
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		served = append(served, r.URL.Path)
		_, _ = io.WriteString(w, "hello")
	}))
	defer backend.Close()
	target, err := url.Parse(backend.URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(nethttp.Gateway(proxy, firstPart, nethttp.On(g)))
	defer server.Close()
	get := func(path, tenant string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set("X-Tenant", tenant)
		resp, err := server.Client().Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		if resp.StatusCode == http.StatusTooManyRequests {
			assert.NotEmpty(t, resp.Header.Get("Retry-After"))
		}
		return resp.StatusCode
	}
	assert.Equal(t, 200, get("/orders", "ann"))
	assert.Equal(t, 200, get("/orders/7", "ann"))
	assert.Equal(t, 429, get("/orders//8", "ann"), "two a minute of each tenant, on all paths together")
	assert.Equal(t, 200, get("/orders", "bob"))
	assert.Equal(t, 429, get("/orders", "eve"), "three a minute in all")
	assert.Equal(t, 200, get("/search?q=slow%20one", ""))
	assert.Equal(t, 429, get("/search?q=slow%20one", ""))
	assert.Equal(t, 200, get("/search?q=very%20slow", ""), "another value")
	for range 3 {
		assert.Equal(t, 200, get("/search?q=quick", ""), "the rule doesn't look at it")
	}
	assert.Equal(t, 200, get("/elsewhere", ""))
	mu.Lock()
	defer mu.Unlock()
	assert.NotContains(t, served, "/orders//8")
	assert.Len(t, served, 9)
	names := map[string]bool{}
	for _, call := range g.Tree().Resources {
		names[call.Name] = true
	}
	assert.True(t, names["shop"] && names["orders"] && names["search"], "%v", names)
}

func TestGatewayValues(t *testing.T) {
	proxies := netip.MustParsePrefix("192.0.2.0/24")
	from := func(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }
	for name, tt := range map[string]struct {
		rule         gateway.Rule
		opts         []nethttp.Option
		same, others []func(*http.Request)
	}{
		"client": {gateway.Rule{Param: gateway.ClientIP}, nil,
			[]func(*http.Request){from("198.51.100.1:1"), with("X-Forwarded-For", "9.9.9.9")}, []func(*http.Request){from("198.51.100.2:1")}},
		"client behind a proxy": {gateway.Rule{Param: gateway.ClientIP}, []nethttp.Option{nethttp.GatewayClients(nethttp.ClientIP(proxies))},
			[]func(*http.Request){from("192.0.2.1:1"), with("X-Forwarded-For", "9.9.9.9")}, []func(*http.Request){from("192.0.2.1:1"), with("X-Forwarded-For", "8.8.8.8")}},
		"network": {gateway.Rule{Param: gateway.ClientIP}, []nethttp.Option{nethttp.GatewayClients(nethttp.ClientNetwork(64, nethttp.ClientIP()))},
			[]func(*http.Request){from("[2001:db8::1]:1")}, []func(*http.Request){from("[2001:db8:0:1::1]:1")}},
		"host": {gateway.Rule{Param: gateway.Host}, nil,
			[]func(*http.Request){func(r *http.Request) { r.Host = "a.example" }}, []func(*http.Request){func(r *http.Request) { r.Host = "b.example" }}},
		"cookie": {gateway.Rule{Param: gateway.Cookie, Name: "sid"}, nil,
			[]func(*http.Request){with("Cookie", "sid=1")}, []func(*http.Request){with("Cookie", "sid=2")}},
		"header": {gateway.Rule{Param: gateway.Header, Name: "X-A", Value: "te", ValueMatch: gateway.Prefix}, nil,
			[]func(*http.Request){with("X-A", "test")}, []func(*http.Request){with("X-A", "x")}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.rule.Route, tt.rule.Threshold, tt.rule.Interval = "orders", 1, time.Hour
			g := gatewayGuard(t, api.RuleSet{Gateway: []gateway.Rule{tt.rule}})
			h := nethttp.Gateway(http.HandlerFunc(passed), firstPart, append(tt.opts, nethttp.On(g))...)
			assert.Equal(t, 204, serve(h, "/orders", tt.same...))
			assert.Equal(t, 429, serve(h, "/orders", tt.same...))
			assert.Equal(t, 204, serve(h, "/orders", tt.others...))
			assert.Equal(t, 204, serve(h, "/elsewhere", tt.same...))
		})
	}
}

// A group's limit covers all its routes, however a client encodes the path.
func TestGatewayOfEncodedPaths(t *testing.T) {
	g := gatewayGuard(t, api.RuleSet{
		Groups:  []gateway.Group{{ID: "items", Paths: []gateway.Path{{Path: "/carts/*/items", Match: spec.MatchPath}}}},
		Gateway: []gateway.Rule{{Group: "items", Threshold: 1, Interval: time.Hour}},
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /carts/{id}/items", passed)
	h := nethttp.Gateway(mux, nil, nethttp.On(g))
	get := func(target string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		return w.Code
	}
	assert.Equal(t, 204, get("/carts/1/items"))
	for _, target := range []string{"/carts/1/items", "/carts/..%2F1/items", "/carts/1%2f2/items", "/carts/%2e%2e/items", "/carts/1;v=2/items"} {
		assert.Equal(t, 429, get(target), target)
	}
}

// All spellings of a host are one value.
func TestGatewayHosts(t *testing.T) {
	g := gatewayGuard(t, api.RuleSet{Gateway: []gateway.Rule{{Route: "orders", Param: gateway.Host, Threshold: 1, Interval: time.Hour}}})
	h := nethttp.Gateway(http.HandlerFunc(passed), firstPart, nethttp.On(g))
	for i, host := range []string{"localhost", "LOCALHOST", "localhost.", "localhost:80", "LocalHost.:443"} {
		assert.Equal(t, map[bool]int{true: 204, false: 429}[i == 0], serve(h, "/orders", func(r *http.Request) { r.Host = host }), host)
	}
	assert.Equal(t, 204, serve(h, "/orders", func(r *http.Request) { r.Host = "localhost:8080" }))
}

func TestClientNetwork(t *testing.T) {
	of := func(addr string, bits int) string {
		return nethttp.ClientNetwork(bits, func(*http.Request) string { return addr })(nil)
	}
	assert.Equal(t, "2001:db8::/64", of("2001:db8::7", 64))
	assert.Equal(t, "192.0.2.1", of("192.0.2.1", 64))
	assert.Equal(t, "nobody", of("nobody", 64))
	assert.Equal(t, "2001:db8::7", of("2001:db8::7", 200))
	assert.Empty(t, of("", 64))
}

// Groups are added and removed with the rules, and a group is a resource like any other: its
// breaker can open.
func TestGatewayReloads(t *testing.T) {
	g := gatewayGuard(t, api.RuleSet{})
	status := 204
	h := nethttp.Gateway(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }), nil, nethttp.On(g))
	assert.Equal(t, 204, serve(h, "/orders"))
	set := api.RuleSet{
		Groups:  []gateway.Group{shopGroup},
		Gateway: []gateway.Rule{{Group: "shop", Threshold: 1, Interval: time.Hour}},
		Breaker: []breaker.Rule{{Resource: "shop", Strategy: breaker.ConsecutiveErrors, Threshold: 1}},
	}
	require.NoError(t, g.LoadRules(set))
	assert.Equal(t, set.Groups, g.Rules().Groups)
	assert.Empty(t, g.Rules().Flow, "what a gateway's rules become is not in the set")
	assert.Equal(t, 204, serve(h, "/orders/7"))
	assert.Equal(t, 429, serve(h, "/orders/8"))
	set.Gateway[0].Threshold = 3
	require.NoError(t, g.LoadRules(set))
	status = 500
	assert.Equal(t, 500, serve(h, "/orders/7"), "the one before counts on")
	status = 204
	assert.Equal(t, 503, serve(h, "/orders/7"), "the group's breaker is open")
	bad := set.Clone()
	bad.Gateway[0].Group = "typo"
	require.ErrorContains(t, g.LoadRules(bad), "there is no such group")
	assert.Equal(t, 503, serve(h, "/orders/7"), "what was in force stays")
	require.NoError(t, g.LoadRules(api.RuleSet{}))
	assert.Equal(t, 204, serve(h, "/orders/7"))
}

// The rule's cap holds however many and however long the values of requests are; the values beyond
// it share limits, so they are still limited.
func TestGatewayManyValues(t *testing.T) {
	const most = 100
	values := 100_000
	if testing.Short() {
		values = 10_000
	}
	g := gatewayGuard(t, api.RuleSet{Gateway: []gateway.Rule{
		{Route: "orders", Param: gateway.Header, Name: "X-Tenant", Threshold: 1, Interval: time.Hour, MaxValues: most},
	}})
	h := nethttp.Gateway(http.HandlerFunc(passed), firstPart, nethttp.On(g))
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	let := 0
	flood := func(n int, value func(i int) string) {
		for i := range n {
			if serve(h, "/orders", with("X-Tenant", value(i))) == 204 {
				let++
			}
		}
	}
	long := strings.Repeat("x", 8_000)
	flood(1000, func(i int) string { return fmt.Sprint("v", i) })
	before := heap()
	flood(values, func(i int) string { return fmt.Sprint("w", i) })
	flood(1000, func(i int) string { return fmt.Sprint(i, long) })
	assert.Less(t, heap(), before+2<<20)
	assert.LessOrEqual(t, let, 2*most+100)
	assert.GreaterOrEqual(t, let, most)
	hotspots := g.Tree().Rules[0].Details.(hotspot.Stats)
	assert.LessOrEqual(t, hotspots.Values, most)
}

// While rules change, each request uses one table, and none is lost.
func TestGatewayUnderReloads(t *testing.T) {
	g := gatewayGuard(t, api.RuleSet{})
	h := nethttp.Gateway(http.HandlerFunc(passed), firstPart, nethttp.On(g))
	var done sync.WaitGroup
	done.Go(func() {
		for i := range 50 {
			set := api.RuleSet{Groups: []gateway.Group{shopGroup}, Gateway: []gateway.Rule{{Group: "shop", Param: gateway.ClientIP, Threshold: float64(1000 + i)}}}
			if i%3 == 0 {
				set = api.RuleSet{}
			}
			assert.NoError(t, g.LoadRules(set))
		}
	})
	for range 4 {
		done.Go(func() {
			for range 200 {
				assert.Contains(t, []int{204, 429}, serve(h, "/orders/7"))
			}
		})
	}
	done.Wait()
}
