package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/system"
)

// full has a non-default value in every field.
var full = flow.Rule{
	ID:           "orders",
	Resource:     "GET /orders.*",
	Match:        spec.MatchRegex,
	Threshold:    12.5,
	Interval:     1500 * time.Millisecond,
	Metric:       flow.QPS,
	Origin:       "app-a",
	Relation:     flow.Chain,
	Ref:          "http",
	Behavior:     flow.WarmUpThrottle,
	WarmUpPeriod: 30 * time.Second,
	ColdFactor:   4,
	MaxWait:      250 * time.Millisecond,
	Mode:         spec.Shadow,
}

const fullYAML = `
flow:
  - id: orders
    resource: GET /orders.*
    match: regex
    threshold: 12.5
    interval: 1500ms
    metric: qps
    origin: app-a
    relation: chain
    ref: http
    behavior: warmUpThrottle
    warmUpPeriod: 30s
    coldFactor: 4
    maxWait: 250ms
    strict: true
    mode: shadow
`

const fullJSON = `{
	"flow": [
		{
			"id": "orders", "resource": "GET /orders.*", "match": "regex", "threshold": 1.25e1,
			"interval": "1.5s", "metric": "qps", "origin": "app-a",
			"relation": "chain", "ref": "http", "behavior": "warmUpThrottle",
			"warmUpPeriod": "30s", "coldFactor": 4, "maxWait": "250ms",
			"strict": true, "mode": "shadow"
		}
	]
}`

func TestParse(t *testing.T) {
	one := func(r flow.Rule) Set { return Set{Flow: []flow.Rule{r}} }
	a := one(flow.Rule{Resource: "a", Threshold: 1})
	for _, c := range []struct {
		name, data string
		want       Set
	}{
		{"r.yaml", fullYAML, one(full)},
		{"r.json", fullJSON, one(full)},
		{"r.yaml", fullJSON, one(full)},
		{"", fullJSON, one(full)},
		{"empty list", "flow: []", Set{}},
		{"empty list.json", `{"flow":[]}`, Set{}},
		{"comments", "# hi\nflow: # there\n  # a rule\n  - resource: a # named a\n    threshold: 1\n", a},
		{"marker", "---\nflow: [{resource: a, threshold: 1}]\n...\n", a},
		{"byte order mark", "\uFEFFflow: [{resource: a, threshold: 1}]", a},
		{"byte order mark.json", "\uFEFF{\"flow\": [{\"resource\": \"a\", \"threshold\": 1}]}", a},
		{"lines end in CR LF", "flow:\r\n  - resource: a\r\n    threshold: 1\r\n", a},
		{"lines end in CR", "flow:\r  - resource: a\r    threshold: 1\r", a},
		{"tabs in a list", "flow: [\n\t{resource: a,\n\tthreshold: 1}\n]", a},
		{"quotes", `flow: [{"resource": 'a', threshold: 1}]`, a},
		{"zero", "flow: [{resource: a, threshold: 0}]", one(flow.Rule{Resource: "a"})},
		{"minus zero", "flow: [{resource: a, threshold: -0}]", one(flow.Rule{Resource: "a"})},
		{"zero threshold", "flow: [{resource: a, threshold: 0}]", one(flow.Rule{Resource: "a"})},
		{"exponent", "flow: [{resource: a, threshold: 1e3}]", one(flow.Rule{Resource: "a", Threshold: 1000})},
		{"largest", "flow: [{resource: a, threshold: 1e15}]", one(flow.Rule{Resource: "a", Threshold: 1e15})},
		{"empty text", `flow: [{id: "", resource: a, threshold: 1}]`, a},
		{"a number in quotes", `flow: [{resource: "12", threshold: 1}]`, one(flow.Rule{Resource: "12", Threshold: 1})},
		{"compound duration", "flow: [{resource: a, threshold: 0, interval: 1m30s}]", one(flow.Rule{Resource: "a", Interval: 90 * time.Second})},
		{"an alias", "flow: [{resource: a.*, regex: true, threshold: 0}]", one(flow.Rule{Resource: "a.*", Match: spec.MatchRegex})},
		{"an alias that says no", "flow: [{resource: a.*, regex: false, threshold: 0}]", one(flow.Rule{Resource: "a.*"})},
		{"a match that is said", "flow: [{resource: a.*, match: exact, threshold: 0}]", one(flow.Rule{Resource: "a.*"})},
		{"off", "flow: [{resource: a, threshold: 0, mode: off}]", one(flow.Rule{Resource: "a", Mode: spec.Off})},
		{"yes is text", "flow: [{resource: yes, threshold: 0}]", one(flow.Rule{Resource: "yes"})},
		{"escapes", `flow: [{resource: "\U0001F600\n\x7F", threshold: 0}]`, one(flow.Rule{Resource: "😀\n\x7F"})},
		{"surrogates.json", `{"flow": [{"resource": "\ud83d\ude00\n\/\u007f", "threshold": 0}]}`, one(flow.Rule{Resource: "😀\n/\x7F"})},
		{"colon on the next line.json", "{\"flow\"\n:\t[]}", Set{}},
		{"differ in a threshold", "flow: [{resource: a, threshold: 1}, {resource: a, threshold: 2}]",
			Set{Flow: []flow.Rule{{Resource: "a", Threshold: 1}, {Resource: "a", Threshold: 2}}}},
		{"an id that another would get", "flow: [{resource: a, threshold: 1}, {id: 'flow:a', resource: a, threshold: 2}]",
			Set{Flow: []flow.Rule{{Resource: "a", Threshold: 1}, {ID: "flow:a", Resource: "a", Threshold: 2}}}},
		{"callers", "authority: [{resource: a, origins: [b, 'c d']}]",
			Set{Authority: []authority.Rule{{Resource: "a", Origins: []string{"b", "c d"}}}}},
		{"callers.json", `{"authority": [{"resource": "a", "list": "deny", "origins": ["b"]}]}`,
			Set{Authority: []authority.Rule{{Resource: "a", List: authority.Deny, Origins: []string{"b"}}}}},
		{"Sentinel's words for lists", "authority: [{resource: a, list: white, origins: [b]}, {resource: a, list: black, origins: [c]}]",
			Set{Authority: []authority.Rule{{Resource: "a", Origins: []string{"b"}}, {Resource: "a", List: authority.Deny, Origins: []string{"c"}}}}},
		{"a response time has no threshold", "system: [{metric: rt, maxRT: 50ms}]",
			Set{System: []system.Rule{{Metric: system.RT, MaxRT: 50 * time.Millisecond}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.name, []byte(c.data))
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}
