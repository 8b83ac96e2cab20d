package gateway_test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/rules/gateway"
)

func TestMain(m *testing.M) { books.Main(m) }

func table(t *testing.T, groups []gateway.Group, rules ...gateway.Rule) *gateway.Table {
	t.Helper()
	for i := range groups {
		var err error
		groups[i], err = groups[i].Normalized()
		require.NoError(t, err)
	}
	for i := range rules {
		var err error
		rules[i], err = rules[i].Normalized()
		require.NoError(t, err)
	}
	made, err := gateway.NewTable(groups, rules)
	require.NoError(t, err)
	return made
}

func TestGroupsOfAPath(t *testing.T) {
	made := table(t, []gateway.Group{
		{ID: "shop", Paths: []gateway.Path{{Path: "/orders"}, {Path: "/orders/*", Match: spec.MatchPrefix}}},
		{ID: "carts", Paths: []gateway.Path{{Path: "/carts/*/items", Match: spec.MatchPath}}},
		{ID: "numbers", Paths: []gateway.Path{{Path: `/[a-z]+/\d+`, Match: spec.MatchRegex}}},
		{ID: "all", Paths: []gateway.Path{{Path: "/*", Match: spec.MatchPrefix}}},
		{ID: "root", Paths: []gateway.Path{{Path: "/"}}},
	})
	long := strings.Repeat("x", 2000)
	for path, want := range map[string]string{
		"/orders":               "shop all",
		"/orders/":              "shop all",
		"/orders/7":             "shop numbers all",
		"//orders//7":           "shop numbers all",
		"/x/../orders/./7":      "shop numbers all",
		"/../../orders":         "shop all",
		"/ordersx":              "all",
		"/Orders":               "all",
		"/carts/7/items":        "carts all",
		"/carts/7/items/":       "carts all",
		"/carts/7/8/items":      "all",
		"/":                     "all root",
		"":                      "all root",
		"/" + long:              "numbers all",
		"/orders/" + long:       "shop numbers all",
		"/carts/" + long + "/x": "numbers all",
		"*":                     "all",
	} {
		assert.Equal(t, want, strings.Join(made.Groups(path), " "), "%.40q", path)
	}
	var none *gateway.Table
	assert.Empty(t, none.Groups("/orders"))
	assert.Empty(t, none.Values("orders"))
}

// A path belongs to the groups of every reading by routers or by a server behind them.
func TestGroupsOfEncodedPaths(t *testing.T) {
	made := table(t, []gateway.Group{
		{ID: "carts", Paths: []gateway.Path{{Path: "/carts/*/items", Match: spec.MatchPath}}},
		{ID: "items", Paths: []gateway.Path{{Path: "/items"}, {Path: "/1/items"}}},
		{ID: "slash", Paths: []gateway.Path{{Path: "/a%2Fb"}}},
		{ID: "admin", Paths: []gateway.Path{{Path: "/admin/*", Match: spec.MatchPrefix}}},
		{ID: "numbers", Paths: []gateway.Path{{Path: `/n/[^/]+`, Match: spec.MatchRegex}}},
	})
	for target, want := range map[string]string{
		"/carts/1/items":              "carts",
		"/carts/..%2F1/items":         "carts items",
		"/carts/..%2f1/items/":        "carts items",
		"/carts/1%2f2/items":          "carts",
		"/carts/%2F/items":            "carts",
		"/carts/%2e%2e/items":         "carts items",
		"/carts/%2E%2E%2Fitems":       "carts items",
		"/carts/x/%2e%2e/1/items":     "carts",
		"/carts/x%2F..%2F1/items":     "carts",
		"/carts/../1/items":           "items",
		"/carts/../items":             "carts items",
		"/carts/./items":              "carts",
		"/%63arts/1/items":            "carts",
		"/carts%2F1%2Fitems":          "carts",
		"/carts/a%20b/items":          "carts",
		"/carts/%E2%82%AC/items":      "carts",
		"/a%2Fb":                      "slash",
		"/a%2fb/":                     "slash",
		"/a/b":                        "",
		"/x%2F..%2Fadmin%2Fy":         "admin",
		"/x/..%2Fadmin/y":             "admin",
		"/admin%2Fy":                  "admin",
		"/n/1%2F2":                    "numbers",
		"/n/%2e%2e/n/1":               "numbers",
		"/n/1;v=2":                    "numbers",
		"/carts/1;v=2/items":          "carts",
		"/carts/1/items;v=2":          "",
		"/carts;v=2/1/items":          "",
		"http://x.test/carts/1/items": "carts",
	} {
		u, err := url.ParseRequestURI(target)
		require.NoError(t, err)
		assert.Equal(t, want, strings.Join(made.GroupsOf(u), " "), target)
	}
	var none *gateway.Table
	assert.Empty(t, none.GroupsOf(&url.URL{Path: "/a"}))
	assert.Equal(t, []string{"items"}, made.GroupsOf(&url.URL{Path: "/items", RawPath: "/carts/1/items"}), "a RawPath that isn't the path's")
}

// If a mux serves a path by a route, the path is in the group of that route's paths, even if it serves
// the decoded path.
func FuzzGroupsCoverRoutes(f *testing.F) {
	for _, target := range []string{"/carts/..%2F1/items", "/carts/1%2f2/items", "/carts/%2e%2e/items", "/carts//1/items", "/carts/%252F/items", "/x/../carts/1/items"} {
		f.Add(target)
	}
	group, err := gateway.Group{ID: "carts", Paths: []gateway.Path{{Path: "/carts/*/items", Match: spec.MatchPath}}}.Normalized()
	require.NoError(f, err)
	made, err := gateway.NewTable([]gateway.Group{group}, nil)
	require.NoError(f, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /carts/{id}/items", func(http.ResponseWriter, *http.Request) {})
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		in := len(made.GroupsOf(u)) > 0
		if _, pattern := mux.Handler(&http.Request{Method: http.MethodGet, URL: u}); pattern != "" {
			assert.True(t, in, "%s is served by %s", target, pattern)
		}
		decoded := &url.URL{Path: u.Path}
		if _, pattern := mux.Handler(&http.Request{Method: http.MethodGet, URL: decoded}); pattern != "" {
			assert.True(t, in, "%s is served by %s when it is decoded", target, pattern)
		}
	})
}

func TestRuleBecomes(t *testing.T) {
	flows, hotspots := gateway.Compiled([]gateway.Rule{
		{ID: "a", Route: "r", Threshold: 5, Interval: time.Minute, Behavior: hotspot.Throttle, MaxWait: time.Second, Mode: spec.Shadow},
		{ID: "b", Group: "g", Threshold: 5, Metric: hotspot.Concurrency},
		{ID: "c", Group: "g", Threshold: 5, Behavior: hotspot.TokenBucket, Burst: 7},
		{ID: "d", Route: "r", Param: gateway.ClientIP, Threshold: 5, Burst: 2, MaxValues: 9},
		{ID: "f", Route: "r", Param: gateway.Cookie, Name: "a", Threshold: 5, Missing: hotspot.MissingShared},
		{ID: "e", Route: "r", Param: gateway.Header, Name: "x-a", Value: "b", ValueMatch: gateway.Prefix, Threshold: 5, Metric: hotspot.Concurrency},
	})
	assert.Equal(t, []flow.Rule{
		{ID: "a", Resource: "r", Threshold: 5, Interval: time.Minute, Behavior: flow.Throttle, MaxWait: time.Second, Mode: spec.Shadow},
		{ID: "b", Resource: "g", Threshold: 5, Metric: flow.Concurrency},
		{ID: "c", Resource: "g", Threshold: 5, Behavior: flow.TokenBucket, Burst: 7},
	}, flows)
	assert.Equal(t, []hotspot.Rule{
		{ID: "d", Resource: "r", Param: "gateway clientIP", Threshold: 5, Burst: 2, MaxValues: 9},
		{ID: "f", Resource: "r", Param: "gateway cookie a", Threshold: 5, Missing: hotspot.MissingShared},
		{ID: "e", Resource: "r", Param: "gateway header x-a prefix b", Threshold: 5, Metric: hotspot.Concurrency},
	}, hotspots)
}

// Each field is compared.
func TestEveryFieldCounts(t *testing.T) {
	trial.EveryFieldCounts(t, gateway.Rule{ID: "a", Route: "r", Threshold: 1})
	trial.EveryFieldCounts(t, gateway.Group{ID: "a", Paths: []gateway.Path{{Path: "/"}}}, []gateway.Path{{Path: "/b"}})
}

func TestMadeIDs(t *testing.T) {
	ids := make(map[string]gateway.Rule)
	for _, r := range []gateway.Rule{
		{Route: "a"}, {Group: "a"}, {Route: "a", Param: gateway.ClientIP}, {Route: "a", Param: gateway.Header, Name: "X"},
		{Route: "a", Param: gateway.Query, Name: "X"}, {Route: "a", Param: gateway.Header, Name: "X", Value: "v"},
		{Route: "a", Param: gateway.Header, Name: "X", Value: "v", ValueMatch: gateway.Contains},
	} {
		r.Threshold = 1
		norm, err := r.Normalized()
		require.NoError(t, err)
		assert.NotContains(t, ids, norm.ID)
		ids[norm.ID] = norm
		changed := norm
		changed.Threshold, changed.ID = 2, ""
		changed, err = changed.Normalized()
		require.NoError(t, err)
		assert.Equal(t, norm.ID, changed.ID, "an edited threshold is the same rule")
	}
	assert.Contains(t, ids, "gateway:route=a:header x")
}

func TestRuleRefuses(t *testing.T) {
	for _, tt := range []struct {
		rule  gateway.Rule
		field string
	}{
		{gateway.Rule{}, "route"},
		{gateway.Rule{Route: "a", Group: "b"}, "group"},
		{gateway.Rule{Route: "*"}, "route"},
		{gateway.Rule{Route: strings.Repeat("a", 2000)}, "route"},
		{gateway.Rule{Route: "a", Param: 99}, "param"},
		{gateway.Rule{Route: "a", Param: gateway.Header}, "name"},
		{gateway.Rule{Route: "a", Param: gateway.Host, Name: "x"}, "name"},
		{gateway.Rule{Route: "a", Name: "x"}, "name"},
		{gateway.Rule{Route: "a", Value: "x"}, "value"},
		{gateway.Rule{Route: "a", Param: gateway.Host, ValueMatch: gateway.Prefix}, "valueMatch"},
		{gateway.Rule{Route: "a", Param: gateway.Host, Value: "(", ValueMatch: gateway.Regex}, "value"},
		{gateway.Rule{Route: "a", Param: gateway.Host, Value: "x", ValueMatch: 99}, "valueMatch"},
		{gateway.Rule{Route: "a", MaxValues: 5}, "maxValues"},
		{gateway.Rule{Route: "a", Missing: hotspot.MissingRefuse}, "missing"},
		{gateway.Rule{Route: "a", Param: gateway.Host, Missing: 99}, "missing"},
		{gateway.Rule{Route: "a", Param: gateway.Host, Value: "x", Missing: hotspot.MissingShared}, "missing"},
		{gateway.Rule{Route: "a", Burst: 5}, "burst"},
		{gateway.Rule{Route: "a", Threshold: math.NaN()}, "threshold"},
		{gateway.Rule{Route: "a", Threshold: -1}, "threshold"},
		{gateway.Rule{Route: "a", Param: gateway.Host, Threshold: math.Inf(1)}, "threshold"},
		{gateway.Rule{Route: "a", Behavior: 99}, "behavior"},
		{gateway.Rule{Route: "a", Metric: 99}, "metric"},
		{gateway.Rule{Route: "a", Param: gateway.Host, Behavior: 99}, "behavior"},
		{gateway.Rule{Route: "a", MaxWait: time.Second}, "maxWait"},
		{gateway.Rule{Route: "a", Metric: hotspot.Concurrency, Interval: time.Second}, "interval"},
		{gateway.Rule{Route: "a", Mode: 99}, "mode"},
	} {
		_, err := tt.rule.Normalized()
		require.Error(t, err, "%+v", tt.rule)
		assert.True(t, strings.HasPrefix(err.Error(), tt.field+": "), "%+v: %v", tt.rule, err)
	}
	for _, tt := range []struct {
		group gateway.Group
		field string
	}{
		{gateway.Group{Paths: []gateway.Path{{Path: "/"}}}, "id"},
		{gateway.Group{ID: "a"}, "paths"},
		{gateway.Group{ID: "a", Paths: make([]gateway.Path, 1001)}, "paths"},
		{gateway.Group{ID: "a", Paths: []gateway.Path{{Path: "a"}}}, "paths"},
		{gateway.Group{ID: "a", Paths: []gateway.Path{{Path: "/a", Match: spec.MatchPrefix}}}, "paths"},
		{gateway.Group{ID: "a", Paths: []gateway.Path{{Path: "(", Match: spec.MatchRegex}}}, "paths"},
	} {
		_, err := tt.group.Normalized()
		require.Error(t, err, "%+v", tt.group)
		assert.True(t, strings.HasPrefix(err.Error(), tt.field+": "), "%+v: %v", tt.group, err)
	}
}

func TestTableRefuses(t *testing.T) {
	_, err := gateway.NewTable(nil, []gateway.Rule{{ID: "a", Group: "shop", Threshold: 1}})
	require.EqualError(t, err, `gateway[0].group: is "shop", and there is no such group: add it to groups`)
	var groups []gateway.Group
	for i := range 10 {
		groups = append(groups, gateway.Group{ID: fmt.Sprint(i), Paths: []gateway.Path{{Path: "/a{999}b{999}c{999}d{999}e{999}f{999}", Match: spec.MatchRegex}}})
	}
	_, err = gateway.NewTable(groups, nil)
	require.ErrorContains(t, err, "brings the regular expressions to")
}

func TestValues(t *testing.T) {
	rule := func(value string, match gateway.ValueMatch) gateway.Rule {
		return gateway.Rule{Route: "r", Param: gateway.Header, Name: "X-Tenant", Value: value, ValueMatch: match, Threshold: 1}
	}
	made := table(t, nil, rule("", gateway.Exact), rule("a.c", gateway.Exact), rule("a.", gateway.Prefix), rule("a.c", gateway.Regex), rule(".c", gateway.Contains),
		gateway.Rule{ID: "twin", Route: "r", Param: gateway.Header, Name: "x-tenant", Threshold: 9},
		gateway.Rule{ID: "off", Route: "r", Param: gateway.Host, Threshold: 9, Mode: spec.Off})
	values := made.Values("r")
	require.Len(t, values, 5, "each once, and none for a rule that is off")
	for value, want := range map[string][5]bool{
		"":     {},
		"a.c":  {true, true, true, true, true},
		"abc":  {true, false, false, true, false},
		"a.cd": {true, false, true, false, true},
		"x":    {true},
	} {
		for i := range values {
			assert.Equal(t, want[i], values[i].Takes(value), "%q by %s", value, values[i].Attachment)
		}
	}
	assert.Empty(t, made.Values("other"))
}

// Hosts have one spelling in calls, regardless of their spelling in rules.
func TestValuesOfHosts(t *testing.T) {
	rule := func(value string, match gateway.ValueMatch) gateway.Rule {
		return gateway.Rule{Route: "r", Param: gateway.Host, Value: value, ValueMatch: match, Threshold: 1}
	}
	values := table(t, nil, rule("API.Example.com.:443", gateway.Exact), rule("API.", gateway.Prefix), rule("Example", gateway.Contains), rule("api.example.com:8080", gateway.Exact)).Values("r")
	for i, want := range []bool{true, true, true, false} {
		assert.Equal(t, want, values[i].Takes("api.example.com"), values[i].Attachment)
	}
}
