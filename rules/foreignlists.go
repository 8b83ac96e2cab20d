package rules

import (
	"slices"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/sentinel"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules/gateway"
	"github.com/penstock-go/penstock/system"
)

// dashboard lists the keys that Sentinel's dashboard adds to the rules it stores, and that Sentinel's
// libraries don't know.
var dashboard = []string{"app", "ip", "port", "gmtCreate", "gmtModified"}

// systemList is the list that Java may replace with a single rule.
const systemList = "system"

// systemTelling are the thresholds of a SystemRule of Java.
var systemTelling = func() (keys []string) {
	for _, f := range sentinel.JavaSystemFields {
		keys = append(keys, f.Name)
	}
	return keys
}()

// foreignLists has one row for each kind of list of the other dialects. The first name is the one
// that messages use; names are in the form that listName returns.
var foreignLists = map[Dialect][]foreignList{
	SentinelJava: {
		rulesFrom[sentinel.JavaFlow, flow.Rule]{
			called:  []string{"flow"},
			telling: []string{"count"},
			ignored: dashboard,
			unset:   sentinel.JavaFlowUnset,
			fields: map[string]string{
				"threshold": "count", "origin": "limitApp", "metric": "grade", "relation": "strategy", "ref": "refResource",
				"behavior": "controlBehavior", "maxWait": "maxQueueingTimeMs", "warmUpPeriod": "warmUpPeriodSec", "match": "regex",
				"cluster": "clusterMode", "interval": "clusterConfig", "buckets": "clusterConfig",
			},
		},
		rulesFrom[sentinel.JavaBreaker, breaker.Rule]{
			called:  []string{"degrade", "circuitbreaker"},
			telling: []string{"timeWindow"},
			ignored: append([]string{"rtSlowRequestAmount", "passCount"}, dashboard...),
			unset:   sentinel.JavaBreakerUnset,
			fields: map[string]string{
				"slowRT": "count", "strategy": "grade", "minCalls": "minRequestAmount", "interval": "statIntervalMs",
				"recovery": "timeWindow", "probeTimeout": "timeWindow", "match": "regex",
			},
			field: func(r breaker.Rule, native string) string {
				switch {
				case native != "threshold":
					return ""
				case r.Strategy == breaker.SlowRatio:
					return "slowRatioThreshold"
				}
				return "count"
			},
		},
		rulesFrom[sentinel.JavaHotspot, hotspot.Rule]{
			called:  []string{"paramflow", "param", "hotparam", "hotspot"},
			telling: []string{"paramIdx"},
			ignored: dashboard,
			unset:   sentinel.JavaHotspotUnset,
			fields: map[string]string{
				"threshold": "count", "index": "paramIdx", "metric": "grade", "behavior": "controlBehavior", "burst": "burstCount",
				"interval": "durationInSec", "maxWait": "maxQueueingTimeMs", "exceptions": "paramFlowItemList", "match": "regex",
				"cluster": "clusterMode",
			},
		},
		rulesFrom[sentinel.JavaSystem, system.Rule]{
			called:  []string{systemList},
			telling: systemTelling,
			ignored: append([]string{"resource", "limitApp", "regex"}, dashboard...),
			unset:   sentinel.JavaSystemUnset,
			field: func(r system.Rule, native string) string {
				i := slices.IndexFunc(sentinel.JavaSystemFields, func(f sentinel.JavaSystemField) bool { return f.Metric == r.Metric })
				if native == "id" || i < 0 {
					return ""
				}
				return sentinel.JavaSystemFields[i].Name
			},
		},
		rulesFrom[sentinel.JavaAuthority, authority.Rule]{
			called:    []string{"authority", "auth"},
			telling:   []string{"limitApp"},
			ignored:   dashboard,
			fields:    map[string]string{"origins": "limitApp", "list": "strategy", "match": "regex"},
			onlyFirst: true,
		},
		rulesFrom[sentinel.JavaGateway, gateway.Rule]{
			called:  []string{"gwflow", "gatewayflow", "gateway", "gw"},
			telling: []string{"resourceMode", "intervalSec", "burst", "maxQueueingTimeoutMs", "paramItem"},
			ignored: append([]string{"clusterConfig"}, dashboard...),
			unset:   sentinel.JavaGatewayUnset,
			fields: map[string]string{
				"threshold": "count", "route": "resource", "group": "resource", "metric": "grade", "interval": "intervalSec",
				"behavior": "controlBehavior", "maxWait": "maxQueueingTimeoutMs",
				"param": "paramItem", "name": "paramItem", "value": "paramItem", "valueMatch": "paramItem",
			},
			instead: map[string]string{"intervalSec": "interval"},
		},
		rulesFrom[sentinel.JavaAPI, gateway.Group]{
			called:  []string{"gwapigroup", "gatewayapi", "gwapi", "apidefinition"},
			telling: []string{"apiName", "predicateItems"},
			ignored: dashboard,
			fields:  map[string]string{"id": "apiName", "paths": "predicateItems"},
			keyed:   true,
		},
	},
	SentinelGo: {
		rulesFrom[sentinel.GoFlow, flow.Rule]{
			called: []string{"flow"},
			telling: []string{
				"tokenCalculateStrategy", "controlBehavior", "relationStrategy", "statIntervalInMs", "warmUpPeriodSec", "warmUpColdFactor", "lowMemUsageThreshold",
			},
			fields: map[string]string{
				"relation": "relationStrategy", "ref": "refResource", "behavior": "controlBehavior", "maxWait": "maxQueueingTimeMs",
				"warmUpPeriod": "warmUpPeriodSec", "coldFactor": "warmUpColdFactor", "interval": "statIntervalInMs", "buckets": "statIntervalInMs",
				"memoryThreshold": "highMemUsageThreshold", "lowMemory": "memLowWaterMarkBytes", "highMemory": "memHighWaterMarkBytes", "match": "regex",
			},
			field: func(r flow.Rule, native string) string {
				if native == "threshold" && r.MemoryThreshold != 0 {
					return "lowMemUsageThreshold"
				}
				return ""
			},
		},
		rulesFrom[sentinel.GoBreaker, breaker.Rule]{
			called:  []string{"circuitbreaker", "degrade"},
			telling: []string{"retryTimeoutMs", "statIntervalMs", "maxAllowedRtMs", "minRequestAmount", "probeNum"},
			fields: map[string]string{
				"slowRT": "maxAllowedRtMs", "minCalls": "minRequestAmount", "interval": "statIntervalMs",
				"buckets": "statSlidingWindowBucketCount", "recovery": "retryTimeoutMs", "probeTimeout": "retryTimeoutMs", "probes": "probeNum",
			},
		},
		rulesFrom[sentinel.GoHotspot, hotspot.Rule]{
			called:  []string{"hotspot", "hotspotparam", "hotspotparamflow", "hotparam", "paramflow"},
			telling: []string{"paramIndex", "paramKey", "burstCount", "durationInSec", "paramsMaxCapacity", "specificItems"},
			fields: map[string]string{
				"index": "paramIndex", "param": "paramKey", "metric": "metricType", "behavior": "controlBehavior", "burst": "burstCount",
				"interval": "durationInSec", "maxWait": "maxQueueingTimeMs", "exceptions": "specificItems", "maxValues": "paramsMaxCapacity",
			},
		},
		rulesFrom[sentinel.GoSystem, system.Rule]{
			called:  []string{"system"},
			telling: []string{"triggerCount"},
			fields:  map[string]string{"metric": "metricType", "threshold": "triggerCount", "maxRT": "triggerCount"},
		},
		rulesFrom[sentinel.GoIsolation, isolation.Rule]{
			called:  []string{"isolation"},
			telling: []string{"metricType"},
		},
	},
}
