package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/rules/gateway"
)

// The test reads gateway rules as Sentinel's dashboard stores them and as people write them.
func TestGatewayRulesOfSentinel(t *testing.T) {
	shop := gateway.Group{ID: "shop", Paths: []gateway.Path{
		{Path: "/orders"}, {Path: "/carts"}, {Path: "/carts/*", Match: spec.MatchPrefix},
		{Path: "/users/*/orders", Match: spec.MatchPath}, {Path: "/v[0-9]+", Match: spec.MatchRegex},
	}}
	const shopText = `{"apiName": "shop", "predicateItems": [{"pattern": "/orders"}, {"pattern": "/carts/**", "matchStrategy": 1},
		{"pattern": "/users/*/orders", "matchStrategy": 1}, {"pattern": "/v[0-9]+", "matchStrategy": 2}]}`
	for name, c := range map[string]struct {
		data string
		want Set
	}{
		"API groups": {`[` + shopText + `]`, Set{Groups: []gateway.Group{shop}}},
		"all paths": {`[{"apiName": "all", "predicateItems": [{"pattern": "/**", "matchStrategy": 1}]}]`,
			Set{Groups: []gateway.Group{{ID: "all", Paths: []gateway.Path{{Path: "/*", Match: spec.MatchPrefix}}}}}},
		"from the dashboard": {
			`[{"id": 3, "app": "gw", "ip": "10.0.0.7", "port": 8720, "gmtCreate": 1571278123000, "resource": "search", "resourceMode": 0, "grade": 1,
			   "count": 20.0, "intervalSec": 1, "controlBehavior": 0, "burst": 0, "maxQueueingTimeoutMs": 500,
			   "paramItem": {"parseStrategy": 0, "fieldName": null, "pattern": null, "matchStrategy": 0}}]`,
			Set{Gateway: []gateway.Rule{{ID: "3", Route: "search", Threshold: 20, Window: hotspot.Refill, Param: gateway.ClientIP}}}},
		"as little as it needs": {`{"gw-flow": [{"resource": "search", "count": 20}]}`, Set{Gateway: []gateway.Rule{{Route: "search", Threshold: 20}}}},
		"a group, values and bursts": {
			`{"gw-api-group": [` + shopText + `], "gw-flow": [
				{"resource": "shop", "resourceMode": 1, "count": 5, "intervalSec": 60, "burst": 3,
				 "paramItem": {"parseStrategy": 2, "fieldName": "X-Tenant", "pattern": "acme", "matchStrategy": 3, "index": 1}},
				{"resource": "shop", "resourceMode": 1, "count": 10, "burst": 5},
				{"resource": "shop", "resourceMode": 1, "count": 0, "burst": 5, "paramItem": {"parseStrategy": 1}},
				{"resource": "search", "count": 10, "controlBehavior": 2, "burst": 5, "maxQueueingTimeoutMs": 600},
				{"resource": "search", "grade": 0, "count": 2, "intervalSec": 9, "burst": 4,
				 "paramItem": {"parseStrategy": 3, "fieldName": "q", "pattern": "[a-z]+", "matchStrategy": 2}},
				{"resource": "search", "count": 3, "paramItem": {"parseStrategy": 4, "fieldName": "session"}}]}`,
			Set{Groups: []gateway.Group{shop}, Gateway: []gateway.Rule{
				{Group: "shop", Threshold: 5, Interval: time.Minute, Window: hotspot.Refill, Burst: 3, Param: gateway.Header, Name: "x-tenant", Value: "acme", ValueMatch: gateway.Contains},
				{Group: "shop", Threshold: 10, Behavior: hotspot.TokenBucket, Burst: 14},
				{Group: "shop", Threshold: 0, Window: hotspot.Refill, Burst: 5, Param: gateway.Host},
				{Route: "search", Threshold: 10, Behavior: hotspot.Throttle, MaxWait: 600 * time.Millisecond},
				{Route: "search", Threshold: 2, Metric: hotspot.Concurrency, Param: gateway.Query, Name: "q", Value: "[a-z]+", ValueMatch: gateway.Regex},
				{Route: "search", Threshold: 3, Window: hotspot.Refill, Param: gateway.Cookie, Name: "session"},
			}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseWith("r", []byte(c.data), ParseOptions{})
			require.NoError(t, err)
			assert.Equal(t, SentinelJava, got.Dialect)
			assert.Empty(t, got.Warnings)
			var want Set
			for _, g := range c.want.Groups {
				g, err := g.Normalized()
				require.NoError(t, err)
				want.Groups = append(want.Groups, g)
			}
			for _, r := range c.want.Gateway {
				r, err := r.Normalized()
				require.NoError(t, err)
				want.Gateway = append(want.Gateway, r)
			}
			assert.Equal(t, normalizedGateway(t, want), normalizedGateway(t, got.Set))
			requireReadsBack(t, got.Set)
		})
	}
}

// normalizedGateway returns the gateway rules with defaults filled in.
func normalizedGateway(t *testing.T, s Set) Set {
	t.Helper()
	var all []gateway.Rule
	for _, r := range s.Gateway {
		r, err := r.Normalized()
		require.NoError(t, err)
		all = append(all, r)
	}
	return Set{Groups: s.Groups, Gateway: all}
}

// A burst without a parameter is the amount that Java's bucket admits at once.
func TestBurstOfAGatewayRuleOfSentinel(t *testing.T) {
	got, err := ParseWith("r", []byte(`{"gateway": [{"resource": "search", "count": 4, "intervalSec": 2, "burst": 3}]}`), ParseOptions{Dialect: SentinelJava})
	require.NoError(t, err)
	requireLoads(t, got.Set)
	assert.Equal(t, 6, got.Set.Gateway[0].Burst, "seven at once: one that is due, and six more")
	assert.Equal(t, 2*time.Second, got.Set.Gateway[0].Interval)
}

func TestGatewayRulesOfSentinelThatAreRefused(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{`[{"resourceMode": 0, "count": 1}]`, "r:1:2: [0].resource: is required: Sentinel drops a rule without one"},
		{`[{"resource": "a", "resourceMode": 2, "count": 1}]`, "r:1:36: [0].resourceMode: is 2: use 0 for a route, or 1 for an API group"},
		{`[{"resource": "a", "intervalSec": 0, "count": 1}]`, "r:1:35: [0].intervalSec: is 0: use 1 second or more"},
		{`[{"resource": "a", "burst": -1, "count": 1}]`, "r:1:29: [0].burst: is -1: use 0 or more"},
		{`[{"resource": "a", "count": 1, "paramItem": {"parseStrategy": 2}}]`, "r:1:45: [0].paramItem: needs fieldName: say which header, query parameter or cookie"},
		{`[{"resource": "a", "count": 1, "paramItem": {"parseStrategy": 7}}]`, "r:1:45: [0].paramItem: is 7: use a number from 0 to 4"},
		{`[{"resource": "a", "count": 1, "paramItem": {"parse": 7}}]`, "r:1:46: [0].paramItem.parse: unknown field"},
		{`[{"resource": "a", "count": 1, "paramItem": 7}]`, "r:1:45: [0].paramItem: must be a mapping"},
		{`[{"resource": "a", "count": 1, "paramItem": {"pattern": "(", "matchStrategy": 2}}]`, "r:1:45: [0].paramItem: "},
		{`[{"resource": "a", "resourceMode": 0, "count": 1, "clusterMode": true}]`, "r:1:66: [0].clusterMode: is true, but a cluster can't share gateway rules: write false for a limit of this process alone"},
		{`[{"resource": "*", "resourceMode": 0, "count": 1}]`, "r:1:15: [0].resource: is \"*\""},
		{`[{"apiName": "", "predicateItems": [{"pattern": "/a"}]}]`, "r:1:14: [0].apiName: is required: Sentinel drops a definition without one"},
		{`[{"apiName": "a", "predicateItems": []}]`, "r:1:37: [0].predicateItems: is empty: Sentinel drops a definition without paths"},
		{`[{"apiName": "a", "predicateItems": [{"pattern": "/a/**/b", "matchStrategy": 1}]}]`, "r:1:37: [0].predicateItems: number 0: "},
		{`[{"apiName": "a", "predicateItems": [{"pattern": "/a", "matchStrategy": 3}]}]`, "r:1:37: [0].predicateItems: number 0: "},
		{`[{"apiName": "a", "predicateItems": [{"pattern": "a"}]}]`, "r:1:37: [0].predicateItems: has \"a\": a path begins with a slash"},
		{`[{"apiName": "a", "predicateItems": [{"pattern": "/a"}]}, {"apiName": "a", "predicateItems": [{"pattern": "/b"}]}]`, "r:1:71: [1].apiName: \"a\" is already the id of [0] at 1:2"},
	} {
		_, err := ParseWith("r", []byte(c.data), ParseOptions{})
		require.Error(t, err, c.data)
		assert.Contains(t, err.Error(), c.want, c.data)
	}
}

// A different meaning of a value's pattern is reported.
func TestPrefixOfAValueOfSentinel(t *testing.T) {
	got, err := ParseWith("r", []byte(`[{"resource": "a", "count": 1, "paramItem": {"pattern": "x", "matchStrategy": 1}}]`), ParseOptions{})
	require.NoError(t, err)
	require.Len(t, got.Warnings, 1)
	assert.Equal(t, "prefix-of-a-value", got.Warnings[0].Name)
	assert.Equal(t, gateway.Prefix, got.Set.Gateway[0].ValueMatch)
}
