package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules/gateway"
)

// Files that people have, in forms that only look wrong, are read.
func TestFilesAsPeopleHaveThem(t *testing.T) {
	a := ring(flow.Rule{Resource: "a", Threshold: 20})
	native := limits(flow.Rule{Resource: "a", Threshold: 20, Buckets: 10})
	for _, c := range []struct {
		name, data string
		opts       ParseOptions
		dialect    Dialect
		want       Set
		warnings   []string
	}{
		// A list without rules is a file without rules.
		{name: "r.json", data: `[]`, dialect: Native},
		{name: "r.yaml", data: "# nothing yet\n[]\n", dialect: Native},
		{name: "r.json", data: `[]`, opts: ParseOptions{Dialect: Native}, dialect: Native},
		{name: "r.json", data: `[]`, opts: ParseOptions{Dialect: SentinelJava}, dialect: SentinelJava},
		{name: "r.json", data: `[]`, opts: ParseOptions{Dialect: SentinelGo}, dialect: SentinelGo},
		{name: "r.json", data: `{"flowRules": []}`, dialect: SentinelJava},
		{name: "r.json", data: `{"degrade": [], "flow": []}`, dialect: SentinelJava},
		{name: "r.json", data: `{"isolationRules": []}`, dialect: SentinelGo},

		// Whole numbers with a fraction of 0, or an exponent.
		{name: "r.yaml", data: "flow: [{resource: a, threshold: 20, buckets: 10.0}]", dialect: Native, want: native},
		{name: "r.json", data: `{"flow": [{"resource": "a", "threshold": 2e1, "buckets": 1.0e1}]}`, dialect: Native, want: native},
		{name: "r.json", data: `[{"id": 3.0, "resource": "a", "count": 20.0, "grade": 1.0, "strategy": 0.0, "controlBehavior": -0.0}]`, dialect: SentinelJava,
			want: limits(ring(flow.Rule{ID: "3", Resource: "a", Threshold: 20}))},
		{name: "r.json", data: `[{"resource": "a", "count": 2, "paramIdx": 0.0, "paramFlowItemList": [{"object": 7.0, "classType": "int", "count": 3.0}]}]`, dialect: SentinelJava,
			want: Set{Hotspot: []hotspot.Rule{{Resource: "a", Index: hotspot.At(0), Threshold: 2, Window: hotspot.Refill, Exceptions: []hotspot.Exception{{Value: hotspot.ValueOf(7), Threshold: 3}}}}}},
		{name: "r.json", data: `[{"resource": "a", "metricType": 0.0, "threshold": 20.0}]`, dialect: SentinelGo,
			want: Set{Isolation: []isolation.Rule{{Resource: "a", Threshold: 20}}}},

		// A dashboard wraps each rule in an object.
		{name: "r.json", data: `[{"id": 5, "app": "shop", "ip": "10.0.0.7", "port": 8719, "gmtCreate": null, "rule": {"resource": "a", "limitApp": "default", "grade": 1, "count": 20.0}}]`,
			dialect: SentinelJava, want: limits(ring(flow.Rule{ID: "5", Resource: "a", Threshold: 20}))},
		{name: "r.json", data: `{"authority": [{"id": 5, "app": "shop", "rule": {"resource": "a", "limitApp": "b", "strategy": 1}}]}`, dialect: SentinelJava,
			want: Set{Authority: []authority.Rule{{ID: "5", Resource: "a", List: authority.Deny, Origins: []string{"b"}}}}},
		{name: "r.json", dialect: SentinelJava, // with the fields that the object has in addition to the rule
			data: `[{"app": "shop", "resource": "a", "count": 2.0, "paramIdx": 0, "paramFlowItemList": [], "rule": {"resource": "a", "count": 2, "paramIdx": 0, "paramFlowItemList": []}}]`,
			want: Set{Hotspot: []hotspot.Rule{{Resource: "a", Index: hotspot.At(0), Threshold: 2, Window: hotspot.Refill}}}},
		{name: "r.json", data: `[{"id": "x", "rule": {"resource": "a", "strategy": 2, "threshold": 5, "retryTimeoutMs": 3000, "statIntervalMs": 1000}}]`, dialect: SentinelGo,
			want: Set{Breaker: []breaker.Rule{{ID: "x", Resource: "a", Strategy: breaker.ErrorCount, Threshold: 5, MinCalls: 1, Interval: time.Second, Buckets: 1, Recovery: 3 * time.Second, ProbeTimeout: time.Minute}}}},

		// A gateway rule in the dashboard's form, rather than the form that its clients read.
		{name: "r.json", data: `[{"id": 1, "resource": "search", "resourceMode": 0, "grade": 1, "count": 20, "interval": 2, "intervalUnit": 1, "burst": 0}]`, dialect: SentinelJava,
			want:     Set{Gateway: []gateway.Rule{{ID: "1", Route: "search", Threshold: 20, Interval: 2 * time.Minute}}},
			warnings: []string{"r.json:1:90: [0].interval: is a field of the dashboard, with intervalUnit, and is read as 120 s; Sentinel's clients read only intervalSec, with 1 s as the default: write intervalSec (dashboard-interval)"}},
		{name: "r.json", data: `{"gwFlow": [{"resource": "search", "count": 20, "interval": 30}]}`, dialect: SentinelJava,
			want:     Set{Gateway: []gateway.Rule{{Route: "search", Threshold: 20, Interval: 30 * time.Second}}},
			warnings: []string{"r.json:1:61: gwFlow[0].interval: is a field of the dashboard, with intervalUnit, and is read as 30 s; Sentinel's clients read only intervalSec, with 1 s as the default: write intervalSec (dashboard-interval)"}},
		{name: "r.json", data: `{"gwFlow": [{"resource": "search", "count": 20, "intervalSec": 60, "interval": 1, "intervalUnit": 1}]}`, dialect: SentinelJava,
			want: Set{Gateway: []gateway.Rule{{Route: "search", Threshold: 20, Interval: time.Minute}}}},

		// Settings that Sentinel ignores.
		{name: "r.json", data: `[{"apiName": "shop", "predicateItems": [{"pattern": "/a"}, {"items": [{"pattern": "/b"}]}]}]`, dialect: SentinelJava,
			want:     Set{Groups: []gateway.Group{{ID: "shop", Paths: []gateway.Path{{Path: "/a"}}}}},
			warnings: []string{"r.json:1:40: [0].predicateItems: number 1 is a nested group, which Sentinel ignores, so its paths are left out here too: list them in predicateItems (group-in-a-group)"}},
		{name: "r.json", data: `[{"@type": "com.example.ApiDefinition", "apiName": "shop", "predicateItems": [{"@type": "com.example.ApiPathPredicateItem", "pattern": "/a"}]}]`, dialect: SentinelJava,
			want:     Set{Groups: []gateway.Group{{ID: "shop", Paths: []gateway.Path{{Path: "/a"}}}}},
			warnings: []string{"r.json:1:3: [0].@type: was written by a serializer, and Sentinel ignores it: remove it here and elsewhere in the file (serializer)"}},
		{name: "r.json", data: `[{"@type": "com.example.FlowRule", "resource": "a", "count": 20}]`, dialect: SentinelJava, want: limits(a),
			warnings: []string{"r.json:1:3: [0].@type: was written by a serializer, and Sentinel ignores it: remove it here and elsewhere in the file (serializer)"}},

		{name: "r.yaml", data: "%YAML 1.2\n---\nflow: [{resource: a, threshold: 20, buckets: 10}]\n", dialect: Native, want: native},
		{name: "r.yaml", data: "# ours\n%YAML 1.2\n---\n- {resource: a, count: 20}\n", dialect: SentinelJava, want: limits(a)},
	} {
		got, err := ParseWith(c.name, []byte(c.data), c.opts)
		if !assert.NoError(t, err, c.data) {
			continue
		}
		assert.Equal(t, c.want, got.Set, c.data)
		assert.Equal(t, c.dialect, got.Dialect, c.data)
		var warnings []string
		for _, w := range got.Warnings {
			warnings = append(warnings, w.String())
		}
		assert.Equal(t, c.warnings, warnings, c.data)
		requireReadsBack(t, got.Set)
	}
}

// For files that people have but that can't be read, the error identifies the kind of file and tells
// the user what to do.
func TestFilesAsPeopleHaveThemThatAreRefused(t *testing.T) {
	const comment = "JSON has no comments: remove it, or write the file as YAML, with # before comments and a name that ends in .yaml"
	for _, c := range []struct{ name, data, want string }{
		// JSON as people write it.
		{"r.json", "[\n  // a limit\n  {\"resource\": \"a\", \"count\": 1}\n]", "r.json:2:3: is not JSON: a comment: " + comment},
		{"stdin", "[\n  // a limit\n  {\"resource\": \"a\", \"count\": 1}\n]", "stdin:2:3: is not JSON: a comment: " + comment},
		{"stdin", "{ // limits\n  \"flow\": []}", "stdin:1:3: is not JSON: a comment: " + comment},
		{"r.json", "{\"flow\": [] /* none */}", "r.json:1:13: is not JSON: a comment: " + comment},
		{"r.json", "# none\n{\"flow\": []}", "r.json:1:1: is not JSON: a comment: " + comment},
		{"r.json", "// none\n{\"flow\": []}", "r.json:1:1: is not JSON: a comment: " + comment},
		{"stdin", "// none\n{\"flow\": []}", "stdin:1:1: is not JSON: a comment: " + comment},
		{"r.json", `{"flow": []} // none`, "r.json:1:14: is not JSON: a comment: " + comment},
		{"r.json", "[{'resource': 'a', 'count': 1}]", `r.json:1:3: is not JSON: JSON has no single quotes: write "..."`},
		{"r.json", `[{"resource": 'a'}]`, `r.json:1:15: is not JSON: JSON has no single quotes: write "..."`},
		{"r.json", `[{"resource": "a", "count": 1,}]`, "r.json:1:31: is not JSON: a comma before the closing bracket: remove it"},
		{"r.json", `[{"resource": "a"},]`, "r.json:1:20: is not JSON: a comma before the closing bracket: remove it"},
		{"r.json", `{flow: []}`, `r.json:1:2: is not JSON: a key without quotes: write "..."`},

		// Wrapped rules.
		{"r.json", `[{"app": "shop", "rule": {"resource": "a", "cuont": 1, "count": 2}}]`, `r.json:1:44: [0].rule.cuont: unknown field (did you mean "count"?)`},
		{"r.json", `[{"app": "shop", "count": 3, "rule": {"resource": "a", "count": 2}}]`, "r.json:1:56: [0].rule.count: is set twice, first at 1:18, with another value: keep one"},
		{"r.json", `[{"ap": "shop", "rule": {"resource": "a", "count": 2}}]`, `r.json:1:3: [0].ap: unknown field (did you mean "app"?)`},
		{"r.yaml", "flow:\n  - rule: {resource: a, threshold: 1}\n", "r.yaml:2:5: flow[0].rule: unknown field: only files from Sentinel's dashboard have rules in it; replace it with its keys"},

		{"r.json", `[{"resource": "a", "resourceMode": 0, "count": 1, "intervalUnit": 1}]`, "r.json:1:67: [0].intervalUnit: needs interval, which is missing: write intervalSec"},
		{"r.json", `[{"resource": "a", "resourceMode": 0, "count": 1, "interval": 1, "intervalUnit": 4}]`, "r.json:1:82: [0].intervalUnit: is 4: use a number from 0 to 3"},
		{"r.json", `[{"apiName": "shop", "predicateItems": [{"items": [{"pattern": "/b"}]}]}]`, "r.json:1:40: [0].predicateItems: has only nested groups, which Sentinel ignores: list the paths themselves"},

		// One foreign key does not hide the family.
		{"r.json", `[{"resource": "a", "paramIdx": 0, "count": 1, "warmUpPeriodSec": 10}]`, "r.json:1:47: [0].warmUpPeriodSec: unknown field: flow rules have it, and these are paramflow rules, since they have paramIdx"},
		{"r.json", `[{"resource": "a", "timeWindow": 10, "count": 1, "controlBehavior": 0}]`, "r.json:1:50: [0].controlBehavior: unknown field: flow, paramflow or gwflow rules have it, and these are degrade rules, since they have timeWindow"},
		{"r.json", `[{"resource": "a", "paramIndex": 0, "threshold": 1, "durationInSec": 1, "metricType": 1, "statIntervalInMs": 1000}]`, "r.json:1:90: [0].statIntervalInMs: unknown field: flow rules have it, and these are hotspot rules, since they have paramIndex"},

		// A single object.
		{"r.json", `{"resource": "a", "count": 1}`, "r.json:1:1: this is one rule: put it in [ ], as a list of rules"},
		{"r.json", `{"rule": {"resource": "a", "count": 1}}`, "r.json:1:1: this is one rule: put it in [ ], as a list of rules"},
		{"r.json", `{"apiName": "a", "predicateItems": []}`, "r.json:1:1: this is one rule: put it in [ ], as a list of rules"},
		{"r.json", `{"resource": "a", "threshold": 1, "statIntervalInMs": 1000}`, "r.json:1:1: this is one rule: put it in [ ], as a list of rules"},
		{"r.yaml", "resource: a\nthreshold: 1\n", "r.yaml:1:1: this is one rule: put it in a list under its family, as in `flow: [{...}]`"},
		{"r.yaml", "metric: qps\nthreshold: 1\n", "r.yaml:1:1: this is one rule: put it in a list under its family, as in `flow: [{...}]`"},
		{"r.yaml", "flow:\n  resource: a\n  threshold: 1\n", "r.yaml:2:3: flow: this is one rule: put it in [ ], as a list of rules"},
		{"r.json", `{"flow": {"resource": "a", "count": 1}}`, "r.json:1:10: flow: this is one rule: put it in [ ], as a list of rules"},

		// Files that contain rules somewhere.
		{"r.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rules}\ndata:\n  rules.yaml: |\n    flow: []\n",
			"r.yaml:5:3: data: this is a Kubernetes ConfigMap: its rules are the text under data, here rules.yaml: write that text to a separate file, or mount the ConfigMap and name the mounted file"},
		{"r.yaml", "kind: ConfigMap\napiVersion: v1\n", "r.yaml:1:1: kind: this is a Kubernetes ConfigMap, and its data is missing: rules are the text under data"},
		{"r.yaml", "apiVersion: sentinel.example/v1\nkind: FlowRules\nmetadata: {name: rules}\nspec:\n  rules: []\n",
			"r.yaml:4:1: spec: this is a Kubernetes object, FlowRules: a rule file has only its rules, here under spec: write them to a separate file"},
		{"r.yaml", "apiVersion: dapr.io/v1alpha1\nkind: Component\nspec:\n  type: middleware.http.sentinel\n  metadata:\n    - name: flowRules\n      value: >-\n        []\n",
			"r.yaml:6:7: spec.metadata: this is a Dapr component: its rules are the text of values in spec.metadata, here flowRules: write that text to a separate file"},
		{"sentinel.yml", "version: v1\nsentinel:\n  app: {name: shop}\n  log: {dir: /tmp}\n", "sentinel.yml:2:1: sentinel: this configures sentinel-golang, and has no rules: they are in the files that the program's data sources read"},
		{"r.yaml", "spring:\n  cloud:\n    sentinel:\n      datasource:\n        ds1: {file: {file: 'classpath: flow.json', rule-type: flow}}\n",
			"r.yaml:4:7: spring.cloud.sentinel.datasource: this configures Spring, and has no rules: they are in the places that its datasources name, here ds1"},
		{"r.json", `{"success": true, "code": 0, "data": [{"resource": "a", "count": 1}]}`, "r.json:1:30: data: this is a response from Sentinel's dashboard: the rules are the list under data: write that list to a separate file"},
		{"r.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  rules.yaml: |\n    flow: []\n---\napiVersion: v1\nkind: Service\n",
			"r.yaml:4:3: data: this is a Kubernetes ConfigMap: its rules are the text under data, here rules.yaml: write that text to a separate file, or mount the ConfigMap and name the mounted file"},

		{"r.yaml", "%YAML 3.0\n---\nflow: []\n", "r.yaml:1:1: is YAML 3.0, which is not supported: remove this line, or write %YAML 1.2"},

		// An unknown family lists the families.
		{"r.yaml", "limits: []\n", "r.yaml:1:1: limits: unknown family: use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster"},
		{"r.yaml", "flos: []\n", "r.yaml:1:1: flos: unknown family (did you mean \"flow\"?): use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster"},
		{"r.json", `{"dialect": "sentinel-go", "limits": []}`, "r.json:1:28: limits: unknown family: use flow, circuitbreaker, hotspot, system or isolation"},
		{"r.json", `{"dialect": "sentinel-java", "isolation": []}`, "r.json:1:30: isolation: unknown family: use flow, degrade, paramflow, system, authority, gwflow or gwapigroup"},
	} {
		_, err := ParseWith(c.name, []byte(c.data), ParseOptions{})
		assert.EqualError(t, err, c.want, c.data)
	}
}

// A list of rules of several families can't be read, and the error names the family of each key.
func TestAListOfTwoFamilies(t *testing.T) {
	_, err := Parse("r.json", []byte(`[{"resource": "a", "count": 1, "paramIdx": 0}, {"resource": "a", "count": 1, "timeWindow": 1}]`))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "r.json:1:1: doesn't show the family of its rules, since degrade rules have timeWindow, and paramflow rules paramIdx: ")
}
