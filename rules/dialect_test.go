package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/system"
)

// Twenty rules read the same in all dialects, and print as the text that an author would have written.
func TestTwentyRulesInThreeDialects(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "dialects", "native.yaml"))
	require.NoError(t, err)
	want, err := ParseWith("native.yaml", text, ParseOptions{})
	require.NoError(t, err)
	require.Equal(t, Native, want.Dialect)
	require.Equal(t, 20, want.Set.Len())
	for file, dialect := range map[string]Dialect{"java.json": SentinelJava, "go.json": SentinelGo} {
		got, err := LoadWith(filepath.Join("testdata", "dialects", file), ParseOptions{})
		require.NoError(t, err, file)
		assert.Equal(t, want.Set, got.Set, file)
		assert.Equal(t, dialect, got.Dialect, file)
		assert.Empty(t, got.Warnings, file)
		written, err := got.Set.YAML()
		require.NoError(t, err, file)
		assert.Equal(t, string(text), string(written), file)
		requireLoads(t, got.Set)
		requireReadsBack(t, got.Set)
	}
}

// ring returns the rule with the window that both Sentinels have.
func ring(r flow.Rule) flow.Rule {
	r.Buckets, r.Window = 2, flow.Ring
	return r
}

func limits(all ...flow.Rule) Set { return Set{Flow: all} }

// The test reads files as their authors write them: nameless lists, objects with various names, the
// dashboard's storage format, the output of serializers, and files with omissions.
func TestFilesOfSentinel(t *testing.T) {
	a := ring(flow.Rule{Resource: "a", Threshold: 20})
	for name, c := range map[string]struct {
		data    string
		dialect Dialect
		want    Set
	}{
		"a list of flow rules of Java": {
			`[{"resource": "a", "limitApp": "default", "grade": 1, "count": 20, "strategy": 0, "controlBehavior": 0, "clusterMode": false}]`,
			SentinelJava, limits(a)},
		"as little as Java needs": {`[{"resource": "a", "count": 20}]`, SentinelJava, limits(a)},
		"from the dashboard": {
			`[{"app": "shop", "ip": "10.0.0.7", "port": 8719, "id": 17, "gmtCreate": 1571278123000, "gmtModified": 1571278123000, "resource": "a", "limitApp": "default",
			   "grade": 1, "count": 20.0, "strategy": 0, "refResource": "", "controlBehavior": 0, "warmUpPeriodSec": null, "maxQueueingTimeMs": null,
			   "clusterMode": false, "clusterConfig": {"thresholdType": 0, "fallbackToLocalWhenFail": true, "strategy": 0, "sampleCount": 10, "windowIntervalMs": 1000}}]`,
			SentinelJava, limits(ring(flow.Rule{ID: "17", Resource: "a", Threshold: 20}))},
		"callers": {
			`[{"resource": "a", "limitApp": "mobile", "count": 5}, {"resource": "a", "limitApp": "other", "count": 2}]`,
			SentinelJava, limits(ring(flow.Rule{Resource: "a", Origin: "mobile", Threshold: 5}), ring(flow.Rule{Resource: "a", Origin: "other", Threshold: 2}))},
		"1 warms up in Java": {
			`[{"resource": "a", "count": 20, "controlBehavior": 1}]`,
			SentinelJava, limits(ring(flow.Rule{Resource: "a", Threshold: 20, Behavior: flow.WarmUp, WarmUpPeriod: 10 * time.Second, ColdFactor: 3}))},
		"1 throttles in Go": {
			`[{"resource": "a", "threshold": 20, "controlBehavior": 1, "tokenCalculateStrategy": 0}]`,
			SentinelGo, limits(flow.Rule{Resource: "a", Threshold: 20, Behavior: flow.Throttle, MaxWait: 1})},
		"calls in flight don't warm up": {
			`[{"resource": "a", "count": 20, "grade": 0, "controlBehavior": 3, "limitApp": ""}]`,
			SentinelJava, limits(flow.Rule{Resource: "a", Threshold: 20, Metric: flow.Concurrency})},
		"chain": {
			`{"flow-rules": [{"resource": "a", "count": 20, "strategy": 2, "refResource": "sentinel_default_context"}]}`,
			SentinelJava, limits(ring(flow.Rule{Resource: "a", Threshold: 20, Relation: flow.Chain, Ref: "sentinel_default_context"}))},
		"YAML":     {"flow:\n  - resource: a\n    count: 20\n    grade: 1\n", SentinelJava, limits(a)},
		"declared": {`{"dialect": "sentinel-java", "flow": [{"resource": "a", "count": 20}]}`, SentinelJava, limits(a)},
		"declared, and it would be another": {
			`{"flow": [{"resource": "a", "threshold": 20}], "dialect": "sentinel-go"}`, SentinelGo, limits(a)},
		"declared and empty":  {`{"dialect": "sentinel-java", "flow": []}`, SentinelJava, Set{}},
		"native and declared": {"dialect: native\nflow: [{resource: a, threshold: 20}]", Native, limits(flow.Rule{Resource: "a", Threshold: 20})},
		"breakers of Java": {
			`[{"resource": "a", "limitApp": "default", "count": 9, "timeWindow": 10, "grade": 2, "rtSlowRequestAmount": 5}]`,
			SentinelJava, Set{Breaker: []breaker.Rule{{Resource: "a", Strategy: breaker.ErrorCount, Threshold: 10, MinCalls: 5, Interval: time.Second, Buckets: 1, Recovery: 10 * time.Second, ProbeTimeout: time.Minute}}}},
		"breakers of Go": {
			`[{"resource": "a", "strategy": 1, "retryTimeoutMs": 3000, "minRequestAmount": 0, "statIntervalMs": 5000, "statSlidingWindowBucketCount": 10, "threshold": 0.4, "probeNum": 3}]`,
			SentinelGo, Set{Breaker: []breaker.Rule{{Resource: "a", Threshold: 0.4, MinCalls: 1, Interval: 5 * time.Second, Buckets: 10, Recovery: 3 * time.Second, Probes: 3, ProbeTimeout: time.Minute}}}},
		"values of Java": {
			`[{"resource": "a", "grade": 1, "paramIdx": 0, "count": 2, "paramFlowItemList": [{"object": 7, "count": 3, "classType": "int"}, {"object": "7", "count": 4, "classType": "java.lang.String"}, {"object": "0.5", "count": 5, "classType": "double"}]}]`,
			SentinelJava, Set{Hotspot: []hotspot.Rule{{Resource: "a", Index: hotspot.At(0), Threshold: 2, Window: hotspot.Refill, Exceptions: []hotspot.Exception{
				{Value: hotspot.ValueOf(7), Threshold: 3}, {Value: hotspot.ValueOf("7"), Threshold: 4}, {Value: hotspot.ValueOf(0.5), Threshold: 5}}}}}},
		"attachments of Go": {
			`{"hotSpotParamRules": [{"resource": "a", "metricType": 1, "paramKey": "user", "threshold": 2, "durationInSec": 10, "paramsMaxCapacity": 500}]}`,
			SentinelGo, Set{Hotspot: []hotspot.Rule{{Resource: "a", Param: "user", Threshold: 2, Interval: 10 * time.Second, Window: hotspot.Refill, MaxValues: 500}}}},
		"one system rule of Java": {
			`{"highestSystemLoad": 3, "qps": -1, "avgRt": 20, "maxThread": 10}`,
			SentinelJava, Set{System: []system.Rule{
				{Metric: system.Concurrency, Threshold: 10}, {Metric: system.RT, MaxRT: 20 * time.Millisecond, Buckets: 2},
				{Metric: system.Load, Threshold: 3, Strategy: system.BBR}}}},
		"one under a name": {
			`{"system": {"qps": 20}, "flow": [{"resource": "a", "count": 20}]}`,
			SentinelJava, Set{System: []system.Rule{{Metric: system.QPS, Threshold: 20, Buckets: 2}}, Flow: []flow.Rule{a}}},
		"system rules of Go": {
			`[{"metricType": 4, "triggerCount": 0.8}, {"metricType": 2, "triggerCount": 10, "strategy": 0}, {"metricType": 1, "triggerCount": 50}]`,
			SentinelGo, Set{System: []system.Rule{
				{Metric: system.CPU, Threshold: 0.8, Strategy: system.Gate}, {Metric: system.Concurrency, Threshold: 10}, {Metric: system.RT, MaxRT: 50 * time.Millisecond, Buckets: 2}}}},
		"callers of Java": {
			`[{"resource": "a", "limitApp": "b, c,b", "strategy": 0}, {"resource": "d", "limitApp": "b", "strategy": 1}]`,
			SentinelJava, Set{Authority: []authority.Rule{
				{Resource: "a", Origins: []string{"b", "c"}, AllowAnonymous: true}, {Resource: "d", List: authority.Deny, Origins: []string{"b"}}}}},
		"isolation of Go": {
			`[{"resource": "a", "metricType": 0, "threshold": 20}]`, SentinelGo, Set{Isolation: []isolation.Rule{{Resource: "a", Threshold: 20}}}},
		"as Go calls its fields": {
			`[{"Resource": "a", "MetricType": 0, "Threshold": 20}, {"ID": "b", "Resource": "b", "metricType": 0, "Threshold": 20}]`,
			SentinelGo, Set{Isolation: []isolation.Rule{{Resource: "a", Threshold: 20}, {ID: "b", Resource: "b", Threshold: 20}}}},
		"of an old Java": {
			`[{"resource": "a", "count": 9, "grade": 2, "passCount": 0, "timeWindow": 60}]`,
			SentinelJava, Set{Breaker: []breaker.Rule{{Resource: "a", Strategy: breaker.ErrorCount, Threshold: 10, MinCalls: 5, Interval: time.Second, Buckets: 1, Recovery: time.Minute}}}},
		"by memory": {
			`[{"resource": "a", "tokenCalculateStrategy": 2, "controlBehavior": 0, "lowMemUsageThreshold": 1000, "highMemUsageThreshold": 100, "memLowWaterMarkBytes": 1024, "memHighWaterMarkBytes": 2048}]`,
			SentinelGo, limits(ring(flow.Rule{Resource: "a", Threshold: 1000, MemoryThreshold: 100, LowMemory: flow.Bytes(1024), HighMemory: flow.Bytes(2048)}))},
		"five seconds of Go": {
			`[{"resource": "a", "threshold": 20, "statIntervalInMs": 5000}, {"resource": "b", "threshold": 20, "statIntervalInMs": 60000}]`,
			SentinelGo, limits(flow.Rule{Resource: "a", Threshold: 20, Interval: 5 * time.Second, Buckets: 10, Window: flow.Ring},
				flow.Rule{Resource: "b", Threshold: 20, Interval: time.Minute, Buckets: 1, Window: flow.Ring})},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseWith("r", []byte(c.data), ParseOptions{})
			require.NoError(t, err)
			require.Equal(t, c.want, got.Set)
			require.Equal(t, c.dialect, got.Dialect)
			require.Empty(t, got.Warnings)
			requireLoads(t, got.Set)
			requireReadsBack(t, got.Set)
		})
	}
}

// The error for an unreadable file has the reason and the position, in the words of its author.
func TestFilesOfSentinelThatAreRefused(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		// These files don't determine a dialect.
		{`[{"resource": "a", "threshold": 1}]`, "r:1:1: must be a mapping of rule families, as in `flow: []`, not a list; if it is one of sentinel-go, name its dialect and family, as in `{\"dialect\": \"sentinel-go\", \"flow\": []}`; see docs/sentinel.md"},
		{`[{"resource": "a", "grade": 1, "strategy": 0}]`, "r:1:1: doesn't show the family of its rules: set it (--family), or name the list, as in `{dialect: sentinel-java, flow: []}`, with one of flow, degrade, paramflow, system, authority, gwflow, gwapigroup"},
		{`[{"resource": "a", "count": 1, "paramIdx": 0}, {"resource": "a", "count": 1, "timeWindow": 1}]`, "r:1:1: doesn't show the family of its rules, since degrade rules have timeWindow, and paramflow rules paramIdx: set it (--family), or name the list, as in `{dialect: sentinel-java, flow: []}`, with one of flow, degrade, paramflow, system, authority, gwflow, gwapigroup"},
		{`{"flowRules": [{"resource": "a"}]}`, "r:1:2: flowRules: unknown field; if the file is one of sentinel-java or sentinel-go, say which, as in `dialect: sentinel-go`; see docs/sentinel.md"},
		{`{"dialect": "java", "flow": []}`, "r:1:13: dialect: unknown dialect \"java\": use detect, native, sentinel-java, sentinel-go"},
		{`{"dialect": 1, "flow": []}`, "r:1:13: dialect: must be a string, not 1: if it is meant as a string, write \"1\""},
		{`{"dialect": "sentinel-go"}`, "r:1:1: holds no rules: write `flow: []` to remove every rule"},

		// These files mix two dialects.
		{`[{"resource": "a", "count": 1}, {"resource": "a", "statIntervalInMs": 1000, "threshold": 1}]`, "r:1:51: statIntervalInMs is a key of sentinel-go, and count at 1:20 one of sentinel-java: a file has one dialect: name it at the top, as in `dialect: native`; see docs/sentinel.md"},
		{"flow:\n- {resource: a, threshold: 1, limitApp: b}\n", "r:2:31: limitApp is a key of sentinel-java, and threshold at 2:17 one of native or sentinel-go: a file has one dialect: name it at the top, as in `dialect: native`; see docs/sentinel.md"},
		{`{"flow": [{"resource": "a", "count": 1}], "isolation": []}`, "r:1:43: isolation is a key of native or sentinel-go, and count at 1:29 one of sentinel-java: a file has one dialect: name it at the top, as in `dialect: native`; see docs/sentinel.md"},
		{`{"dialect": "sentinel-go", "flow": [{"resource": "a", "threshold": 1, "limitApp": "b"}]}`, "r:1:71: flow[0].limitApp: unknown field"},

		// These rules can't be expressed here.
		{`[{"resource": "a", "count": 1, "clusterMode": true, "clusterConfig": {"flowId": 0}}]`, "r:1:70: [0].clusterConfig: needs flowId, a number of at least 1, which identifies the rule on all members: Sentinel drops a rule without one"},
		{`[{"resource": "a", "count": 1, "clusterMode": true, "clusterConfig": {"flowId": 1, "thresholdType": 2}}]`, "r:1:70: [0].clusterConfig: has thresholdType 2: use 0 for a threshold per member, or 1 for a global one"},
		{`[{"resource": "a", "count": 1, "clusterMode": true, "controlBehavior": 1, "clusterConfig": {"flowId": 1}}]`, "r:1:47: [0].clusterMode: has no meaning for behavior warmUp: each process warms up on its own; remove it, or set behavior to reject, throttle or tokenBucket"},
		{`[{"resource": "a", "count": 1, "strategy": 1, "refResource": "b", "controlBehavior": 2}]`, "r:1:86: [0].controlBehavior: throttle does not go with relation associated, which counts another resource's traffic: use reject or warmUp"},
		{`[{"resource": "a(?=b)", "regex": true, "count": 1}]`, "r:1:15: [0].resource: is not a valid regular expression: invalid or unsupported Perl syntax: \"(?=\""},
		{`[{"resource": "*", "count": 1}]`, "r:1:15: [0].resource: is \"*\", which is a plain name in Sentinel and means every resource here: name the resource"},
		{`[{"highestCpuUsage": 1}]`, "r:1:22: [0].highestCpuUsage: is 1: use a share above 0 and below 1, as in 0.8; CPU use is never above 1"},
		{`[{"resource": "a", "count": 1}, {"resource": "a", "count": 1}]`, "r:1:33: [1]: is the same rule as [0] at 1:2: remove one"},

		// Sentinel drops these rules silently, or with a line in its log.
		{`[{"count": 1}]`, "r:1:2: [0].resource: is required: Sentinel drops a rule without one"},
		{`[{"resource": "a", "count": -1}]`, "r:1:29: [0].count: is -1: use 0 or more"},
		{`[{"resource": "a", "count": 1, "grade": 2}]`, "r:1:41: [0].grade: is 2: use 1 for calls per second, or 0 for calls in flight"},
		{`[{"resource": "a", "count": 1, "strategy": 1}]`, "r:1:2: [0].refResource: is required by strategy 1"},
		{`[{"resource": "a", "count": 1, "controlBehavior": 4}]`, "r:1:51: [0].controlBehavior: is 4: use a number from 0 to 3"},
		{`[{"resource": "a", "count": 1, "controlBehavior": 2, "maxQueueingTimeMs": 0}]`, "r:1:75: [0].maxQueueingTimeMs: is 0: use 1 millisecond or more"},
		{`[{"qps": -1, "avgRt": -1}]`, "r:1:10: [0].qps: or another threshold is required: without one the rule limits nothing, and as the last rule it turns all system rules off in Sentinel; remove the rule"},
		{`[{"resource": "a", "timeWindow": 0, "count": 1, "minRequestAmount": 0}]`, "r:1:34: [0].timeWindow: is 0: use 1 second or more"},
		{`[{"resource": "a", "timeWindow": 1, "count": 1.5, "grade": 1}]`, "r:1:46: [0].count: is 1.5: use a share of the calls, from 0 to 1"},
		{`[{"resource": "a", "metricType": 1, "paramIndex": 0, "threshold": 1}]`, "r:1:2: [0].durationInSec: is 0: use 1 second or more"},
		{`[{"resource": "a", "metricType": 0, "paramIndex": 0, "threshold": 1, "specificItems": [{"valKind": 0, "valStr": "x", "threshold": 1}]}]`, "r:1:87: [0].specificItems: number 0: \"x\" is not of valKind 0"},

		// Reading is as strict as for native files.
		{`[{"resource": "a", "count": "1"}]`, "r:1:29: [0].count: must be a number like 100 or 0.5, not the string \"1\""},
		{`[{"resource": "a", "count": 1e999}]`, "r:1:29: [0].count: must be a number like 100 or 0.5, not 1e999"},
		{`[{"resource": "a", "count": 1, "grade": 1.5}]`, "r:1:41: [0].grade: must be a whole number, not 1.5"},
		{`[{"resource": "a", "count": 1, "count": 1}]`, "r:1:32: [0].count: is set twice, first at 1:20"},
		{`[{"resource": "a", "count": 1, "limitapp": "b"}]`, "r:1:32: [0].limitapp: unknown field (did you mean \"limitApp\"?)"},
		{`[{"resource": "a", "grade": 1, "controlBehavior": 0, "limitApp": "b", "strategy": 0, "count": null}]`, "r:1:2: [0].count: is required: write 0 if you mean 0"},
		{`[{"resource": "a", "controlBehavior": 0, "Threshold": 1, "threshold": 1}]`, "r:1:58: [0].threshold: is set twice, with a small and with a capital letter: keep one"},
		{`{"flow": [{"resource": "a", "count": 1}], "flowRules": []}`, "r:1:43: flowRules: appears twice, first as flow at 1:2: keep one"},
		{`{"flow": [{"resource": "a", "count": 1}], "degrades": null}`, "r:1:55: degrades: has no value: write `degrades: []` for no rules"},
		{`{"flow": [{"resource": "a", "count": 1}], "degrad": []}`, "r:1:43: degrad: unknown family (did you mean \"degrade\"?): use flow, degrade, paramflow, system, authority, gwflow or gwapigroup"},
	} {
		p, err := ParseWith("r", []byte(c.data), ParseOptions{})
		assert.EqualError(t, err, c.want, "%s", c.data)
		assert.Zero(t, p, "%s", c.data)
	}
}

// All errors of a file are reported together, in the file's own words.
func TestFilesOfSentinelTellAllErrors(t *testing.T) {
	_, err := Parse("flow.json", []byte(`[
  {"resource": "a", "count": "x"},
  {"resource": "b", "count": 1, "controlBehavior": 9},
  {"resource": "c", "count": 1, "clusterMode": true},
  {"resource": "d", "cout": 1, "limitApp": "default"},
  {"resource": "e", "count": 1e30}
]`))
	assert.EqualError(t, err, strings.Join([]string{
		`flow.json:2:30: [0].count: must be a number like 100 or 0.5, not the string "x"`,
		`flow.json:3:52: [1].controlBehavior: is 9: use a number from 0 to 3`,
		`flow.json:4:3: [2].clusterConfig: needs flowId, a number of at least 1, which identifies the rule on all members: Sentinel drops a rule without one`,
		`flow.json:5:21: [3].cout: unknown field (did you mean "count"?)`,
		`flow.json:6:30: [4].count: is 1e+30: use a finite number from 0 to 1e+15`,
	}, "\n"))
	first, ok := errors.AsType[*FileError](err)
	require.True(t, ok)
	assert.Equal(t, "[0].count", first.Path)
}

// The caller's dialect overrides the detected one, but not the one that the file declares.
func TestOptions(t *testing.T) {
	rule := limits(ring(flow.Rule{Resource: "a", Threshold: 1}))
	for _, c := range []struct {
		data string
		opts ParseOptions
		want Set
		err  string
	}{
		{`[]`, ParseOptions{Dialect: SentinelJava, Family: "flow"}, Set{}, ""},
		{`[{"resource": "a", "threshold": 1}]`, ParseOptions{Dialect: SentinelGo, Family: "flow"}, rule, ""},
		{`[{"resource": "a", "threshold": 1}]`, ParseOptions{Dialect: SentinelGo, Family: "isolation"}, Set{Isolation: []isolation.Rule{{Resource: "a", Threshold: 1}}}, ""},
		{`[{"resource": "a", "grade": 1, "count": 1}]`, ParseOptions{Family: "flowRules"}, rule, ""},
		{`[{"resource": "a", "grade": 1, "count": 1}]`, ParseOptions{Family: "isolation"}, Set{},
			`r:1:1: is to be read as "isolation", which is not a family of sentinel-java: use flow, degrade, paramflow, system, authority, gwflow, gwapigroup`},
		{`{"flow": [{"resource": "a", "threshold": 1}]}`, ParseOptions{Dialect: SentinelGo}, rule, ""},
		{`{"flow": [{"resource": "a", "threshold": 1}]}`, ParseOptions{Dialect: SentinelGo, Family: "system"}, rule, ""},
		{`{"dialect": "sentinel-go", "flow": [{"resource": "a", "threshold": 1}]}`, ParseOptions{Dialect: SentinelJava}, Set{},
			"r:1:13: dialect: is sentinel-go, but the file is to be read as sentinel-java"},
		{`{"flow": [{"resource": "a", "count": 1}]}`, ParseOptions{Dialect: Native}, Set{}, `r:1:29: flow[0].count: unknown field`},
		{`[{}]`, ParseOptions{Dialect: Native}, Set{}, "r:1:1: must be a mapping of rule families, as in `flow: []`, not a list"},
		{`"flow"`, ParseOptions{Dialect: SentinelGo}, Set{}, "r:1:1: must be a list of rules, or an object of such lists, not the string \"flow\""},
		{`flow: []`, ParseOptions{Dialect: 9}, Set{}, "unknown dialect(9)"},
	} {
		p, err := ParseWith("r", []byte(c.data), c.opts)
		if c.err != "" {
			assert.EqualError(t, err, c.err, "%s %v", c.data, c.opts)
		} else {
			assert.NoError(t, err, "%s %v", c.data, c.opts)
		}
		assert.Equal(t, c.want, p.Set, "%s %v", c.data, c.opts)
	}
}

// Losses in a rule are reported by name and position, and the rule is still loaded.
func TestWarnings(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{`[{"resource": "a", "grade": 1, "count": 1.0, "timeWindow": 10}]`,
			"r:1:41: [0].count: is 1, and Sentinel opens only above it, so never: the rule is read as `mode: off`; write a smaller ratio (never-opens)"},
		{`[{"resource": "a", "limitApp": "b,c", "count": 1}]`,
			"r:1:32: [0].limitApp: is read as one caller's name, as in Sentinel, which splits at commas only in authority rules: write a rule for each caller (one-caller)"},
		{`[{"resource": "a", "limitApp": "b", "grade": 2, "count": 1, "timeWindow": 10}]`,
			"r:1:32: [0].limitApp: is ignored: the rule is for all callers, as in Sentinel, which ignores it in rules of this kind (no-callers)"},
		{`[{"resource": "a", "paramIdx": 0, "count": 1.5}]`, "r:1:44: [0].count: has a fraction, which is dropped, as in Sentinel (whole-numbers)"},
		{`[{"resource": "a", "paramIdx": 0, "count": 1, "controlBehavior": 1}]`,
			"r:1:66: [0].controlBehavior: is read as 0, reject, as in Sentinel: hotspot rules know only 0 and 2, throttle (no-warm-up)"},
		{`[{"resource": "a", "limitApp": "b", "strategy": 0}, {"resource": "a", "limitApp": "c", "strategy": 1}]`,
			"r:1:66: [1].resource: has an earlier rule, the only one that Sentinel applies; here both apply (second-rule)"},
		{`[{"id": 3, "resource": "a", "count": 1}, {"id": 3, "resource": "b", "count": 1}]`,
			"r:1:49: [1].id: is also the id of another rule; Sentinel ignores it, and this rule is loaded without one (same-id)"},
		{`[{"resource": "a", "controlBehavior": 1, "threshold": 0.5, "statIntervalInMs": 1000}]`,
			"r:1:55: [0].threshold: is less than one call per interval: here calls pass at that rate; Sentinel rejects all of them (slow-throttle)"},
		{`[{"resource": "a", "tokenCalculateStrategy": 1, "threshold": 5, "statIntervalInMs": 5000, "warmUpPeriodSec": 10}]`,
			"r:1:85: [0].statIntervalInMs: applies to the whole warm-up here; Sentinel warms up by calls per second, and compares the result with calls per interval (warm-up-interval)"},
		{`[{"resource": "a", "strategy": 2, "retryTimeoutMs": 1, "statIntervalMs": 1000, "statSlidingWindowBucketCount": 3, "threshold": 1}]`,
			"r:1:112: [0].statSlidingWindowBucketCount: is read as 1, as in Sentinel, since it does not divide statIntervalMs (one-bucket)"},
	} {
		p, err := ParseWith("r", []byte(c.data), ParseOptions{})
		require.NoError(t, err, c.data)
		if assert.Len(t, p.Warnings, 1, c.data) {
			assert.Equal(t, c.want, p.Warnings[0].String())
		}
		requireLoads(t, p.Set)
		requireReadsBack(t, p.Set)
	}
}

func TestSoManyWarnings(t *testing.T) {
	var rules []map[string]any
	for range 100 {
		rules = append(rules, map[string]any{"id": 1, "resource": "a", "count": len(rules) + 1})
	}
	data, err := json.Marshal(rules)
	require.NoError(t, err)
	p, err := ParseWith("r", data, ParseOptions{})
	require.NoError(t, err)
	require.Len(t, p.Warnings, 21)
	assert.Equal(t, "r: there are more: these are the first 20 warnings (more)", p.Warnings[20].String())

	var log bytes.Buffer
	p.Warnings[1].Problem = strings.Repeat("x", 10_000)
	p.Warn(slog.New(slog.NewTextHandler(&log, nil)))
	assert.Equal(t, 11, strings.Count(log.String(), "\n"))
	assert.Contains(t, log.String(), "warnings=11\n")
	for line := range strings.Lines(log.String()) {
		assert.Less(t, len(line), 1_000)
	}
}

// A threshold that Java's rule can't reach makes a rule that is off, rather than a rule that refuses.
func TestNeverOpens(t *testing.T) {
	p, err := ParseWith("r", []byte(`[{"resource": "a", "grade": 1, "count": 1, "timeWindow": 10}]`), ParseOptions{})
	require.NoError(t, err)
	assert.Equal(t, spec.Off, p.Set.Breaker[0].Mode)
}

func TestDialectNames(t *testing.T) {
	for d := range dialects {
		text, err := d.MarshalText()
		require.NoError(t, err)
		var again Dialect
		require.NoError(t, again.UnmarshalText(text))
		assert.Equal(t, d, again)
		assert.Equal(t, string(text), d.String())
	}
}

// The warnings about a file's rules go to the caller that loads it and to the log, once for each load.
func TestWarningsOfAWatchedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "degrade.json")
	require.NoError(t, os.WriteFile(path, []byte(`[{"resource": "a", "grade": 1, "count": 1, "timeWindow": 10}]`), 0o600))
	var log bytes.Buffer
	var reloads []Reload
	w, err := Watch(t.Context(), path, func(Set) error { return nil }, WatchConfig{
		OnReload: func(r Reload) { reloads = append(reloads, r) },
		Logger:   slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	w.Close()
	require.Len(t, reloads, 1)
	require.Len(t, reloads[0].Warnings, 1)
	assert.Equal(t, "never-opens", reloads[0].Warnings[0].Name)
	assert.Equal(t, path, reloads[0].Warnings[0].File)
	assert.Equal(t, 1, strings.Count(log.String(), "(never-opens)"), log.String())
}

// Rules with clusterMode become rules that a cluster shares, under an id that all members derive
// alike.
func TestClusterModeOfSentinel(t *testing.T) {
	set, err := Parse("r.json", []byte(`{"flow": [
  {"id": 3, "resource": "a", "count": 100, "clusterMode": true, "clusterConfig": {"flowId": 7, "thresholdType": 1, "sampleCount": 5, "windowIntervalMs": 2000, "strategy": 0}},
  {"resource": "b", "count": 5, "clusterMode": true, "clusterConfig": {"flowId": 8, "fallbackToLocalWhenFail": false}},
  {"resource": "c", "count": 5, "clusterMode": false, "clusterConfig": {"flowId": 9}}
], "paramFlow": [{"resource": "d", "paramIdx": 0, "count": 5, "clusterMode": true, "clusterConfig": {"flowId": 10, "thresholdType": 1}}]}`))
	require.NoError(t, err)
	assert.Equal(t, []flow.Rule{
		{ID: "flowId-7", Resource: "a", Threshold: 200, Interval: 2 * time.Second, Buckets: 5, Window: flow.Ring, Cluster: cluster.Rule{Scope: cluster.Global}},
		{ID: "flowId-8", Resource: "b", Threshold: 5, Buckets: 10, Window: flow.Ring, Cluster: cluster.Rule{Scope: cluster.PerMember, OnFailure: cluster.Open}},
		{Resource: "c", Threshold: 5, Buckets: 2, Window: flow.Ring},
	}, set.Flow)
	assert.Equal(t, "flowId-10", set.Hotspot[0].ID)
	assert.Equal(t, cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Open}, set.Hotspot[0].Cluster)
}
