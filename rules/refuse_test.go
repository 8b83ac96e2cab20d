package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const nothing = "r.yaml:1:1: holds no rules: write `flow: []` to remove every rule"

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		// Nothing is not the same as no rules.
		{"", nothing},
		{" \n\t\r\n ", nothing},
		{"\uFEFF", nothing},
		{"# nothing yet\n", nothing},
		{"null", nothing},
		{"~", nothing},
		{"---\n", "r.yaml:2:1: holds no rules: write `flow: []` to remove every rule"},
		{"\n\n---\n~\n", "r.yaml:4:1: holds no rules: write `flow: []` to remove every rule"},
		{"{}", nothing},
		{"flow:\n", "r.yaml:1:6: flow: has no value: write `flow: []` for no rules"},
		{"flow: ~\n", "r.yaml:1:7: flow: has no value: write `flow: []` for no rules"},

		// Wrong shapes.
		{"flow", "r.yaml:1:1: must be a mapping of rule families, as in `flow: []`, not the string \"flow\""},
		{"[1]", "r.yaml:1:1: must be a mapping of rule families, as in `flow: []`, not a list; if it is one of sentinel-java or sentinel-go, name its dialect and family, as in `{\"dialect\": \"sentinel-go\", \"flow\": []}`; see docs/sentinel.md"},
		{"- resource: a", "r.yaml:1:1: must be a mapping of rule families, as in `flow: []`, not a list; if it is one of sentinel-java or sentinel-go, name its dialect and family, as in `{\"dialect\": \"sentinel-go\", \"flow\": []}`; see docs/sentinel.md"},
		{"flow: 3", "r.yaml:1:7: flow: must be a list of rules, not 3"},
		{"flow: {resource: a}", "r.yaml:1:7: flow: this is one rule: put it in [ ], as a list of rules"},
		{"flow: {}", "r.yaml:1:7: flow: must be a list of rules, not a mapping"},
		{"flow: [a]", "r.yaml:1:8: flow[0]: must be a mapping, as in `{resource: GET /orders, threshold: 100}`, not the string \"a\""},
		{"flow:\n- {resource: a, threshold: 1}\n-\n", "r.yaml:3:2: flow[1]: must be a mapping, as in `{resource: GET /orders, threshold: 100}`, not nothing"},

		// Unknown, repeated and odd keys.
		{"flwo: []", `r.yaml:1:1: flwo: unknown family (did you mean "flow"?): use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster`},
		{"Flow: []", `r.yaml:1:1: Flow: unknown family (did you mean "flow"?): use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster`},
		{"flow: []\nvolcano: []", "r.yaml:2:1: volcano: unknown family: use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster"},
		{"flow: []\n2: []", "r.yaml:2:1: a key must be a string, not 2"},
		{"flow: []\nflow: []", "r.yaml:2:1: flow: is set twice, first at 1:1"},
		{"flow:\n  - resource: a\n    threshold: 1\n  - resource: b\n    threshold: 1\n\n    treshold: 1\n",
			`r.yaml:7:5: flow[1].treshold: unknown field (did you mean "threshold"?)`},
		{"flow: [{resource: a, Threshold: 1}]", `r.yaml:1:22: flow[0].Threshold: unknown field (did you mean "threshold"?)`},
		{"flow: [{resource: a, warmup-period: 1s}]", `r.yaml:1:22: flow[0].warmup-period: unknown field (did you mean "warmUpPeriod"?)`},
		{"isolation: [{resource: a, threshold: 1, unit: bytes, maxOverdraft: 0.5}]",
			"r.yaml:1:54: isolation[0].maxOverdraft: unknown field: a call's units are held until it exits, and what it used beyond its estimate goes then too, so it needs no bound; remove it"},
		{"breaker: [{resource: a, threshold: 1, maxOverdraft: 0.5}]", "r.yaml:1:39: breaker[0].maxOverdraft: unknown field"},
		{"flow: [{resource: a, '': 1}]", `r.yaml:1:22: flow[0].: unknown field`},
		{"flow: [{resource: a, threshold: 1, threshold: 1}]", "r.yaml:1:36: flow[0].threshold: is set twice, first at 1:22"},
		{`flow: [{resource: a, "resource": b}]`, "r.yaml:1:22: flow[0].resource: is set twice, first at 1:9"},
		{"flow: [{resource: a, [x]: 1}]", "r.yaml:1:22: flow[0]: a key must be a string, not a list"},
		{"flow: [{resource: a, ? {x: y} : 1}]", "r.yaml:1:24: flow[0]: a key must be a string, not a mapping"},

		// Text.
		{"flow: [{resource: 12}]", `r.yaml:1:19: flow[0].resource: must be a string, not 12: if it is meant as a string, write "12"`},
		{"flow: [{resource: true}]", `r.yaml:1:19: flow[0].resource: must be a string, not true: if it is meant as a string, write "true"`},
		{"flow: [{resource: 2026-01-01}]", `r.yaml:1:19: flow[0].resource: must be a string, not 2026-01-01: if it is meant as a string, write "2026-01-01"`},
		{"flow: [{resource: }]", "r.yaml:1:19: flow[0].resource: must be a string, not nothing"},
		{"flow: [{resource: [a]}]", "r.yaml:1:19: flow[0].resource: must be a string, not a list"},
		{"flow: [{resource: {a: b}}]", "r.yaml:1:19: flow[0].resource: must be a string, not a mapping"},

		// Lists of texts, and fields that only some rules must have.
		{"authority: [{resource: a, origins: b}]", `r.yaml:1:36: authority[0].origins: must be a list of strings, as in [a, b], not the string "b"`},
		{"authority: [{resource: a, origins: [b, 12]}]", `r.yaml:1:36: authority[0].origins: item 1 must be a string, not 12: if it is meant as a string, write "12"`},
		{"authority: [{resource: a, origins: [[b]]}]", `r.yaml:1:36: authority[0].origins: item 0 must be a string, not a list`},
		{"authority: [{resource: a, origins: []}]", "r.yaml:1:36: authority[0].origins: is required: an empty allow list admits no caller; to block every call, use a flow rule with threshold 0"},
		{"authority: [{resource: a, origins: [b, ' b ']}]", `r.yaml:1:36: authority[0].origins: has "b" twice: remove one`},
		{"system: [{metric: qps}]", "r.yaml:1:10: system[0].threshold: is required: write 0 if you mean 0"},
		{"system: [{threshold: 5}]", "r.yaml:1:10: system[0].metric: is required, a rule without a trigger can never act: use load, cpu, rt, concurrency or qps"},
		{"system: [{metric: rt}]", "r.yaml:1:10: system[0].maxRT: is required by metric rt: set the mean response time above which calls are refused"},
		{"system: [{metric: cpus, threshold: 5}]", `r.yaml:1:19: system[0].metric: unknown metric "cpus": use load, cpu, rt, concurrency, qps`},

		// Numbers.
		{"flow: [{resource: a, threshold: '1'}]", `r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not the string "1"`},
		{"flow: [{resource: a, threshold: many}]", `r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not the string "many"`},
		{"flow: [{resource: a, threshold: }]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not nothing"},
		{"flow: [{resource: a, threshold: true}]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not true"},
		{"flow: [{resource: a, threshold: .nan}]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not .nan"},
		{"flow: [{resource: a, threshold: NaN}]", `r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not the string "NaN"`},
		{"flow: [{resource: a, threshold: .inf}]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not .inf"},
		{"flow: [{resource: a, threshold: -.Inf}]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not -.Inf"},
		{"flow: [{resource: a, threshold: 1e999}]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not 1e999"},
		{"flow: [{resource: a, threshold: 010}]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not 010"},
		{"flow: [{resource: a, threshold: 0x10}]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not 0x10"},
		{"flow: [{resource: a, threshold: 1_000}]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not 1_000"},
		{"flow: [{resource: a, threshold: +1}]", "r.yaml:1:33: flow[0].threshold: must be a number like 100 or 0.5, not +1"},
		{"flow: [{resource: a, threshold: -1}]", "r.yaml:1:33: flow[0].threshold: is -1: use a finite number from 0 to 1e+15"},
		{"flow: [{resource: a, threshold: 1e16}]", "r.yaml:1:33: flow[0].threshold: is 1e+16: use a finite number from 0 to 1e+15"},
		{"flow: [{resource: a, buckets: 2.5}]", "r.yaml:1:31: flow[0].buckets: must be a whole number, not 2.5"},
		{"flow: [{resource: a, buckets: 1e-1}]", "r.yaml:1:31: flow[0].buckets: must be a whole number, not 1e-1"},
		{"flow: [{resource: a, buckets: 99999999999999999999}]", "r.yaml:1:31: flow[0].buckets: must be a whole number, not 99999999999999999999"},
		{"flow: [{resource: a, coldFactor: 1, behavior: warmUp}]", "r.yaml:1:34: flow[0].coldFactor: is 1: use a whole number from 2 to 1000"},

		// Durations.
		{"flow: [{resource: a, interval: 500}]", "r.yaml:1:32: flow[0].interval: must be a duration with its unit, as in 500ms or 500s"},
		{"flow: [{resource: a, interval: 0}]", "r.yaml:1:32: flow[0].interval: must be a duration with its unit, as in 0ms or 0s"},
		{"flow: [{resource: a, interval: '500'}]", "r.yaml:1:32: flow[0].interval: must be a duration with its unit, as in 500ms or 500s"},
		{"flow: [{resource: a, interval: '0'}]", "r.yaml:1:32: flow[0].interval: must be a duration with its unit, as in 0ms or 0s"},
		{"flow: [{resource: a, interval: '+0'}]", "r.yaml:1:32: flow[0].interval: must be a duration with its unit, as in +0ms or +0s"},
		{"flow: [{resource: a, interval: 1 s}]", `r.yaml:1:32: flow[0].interval: must be a duration like 500ms, 1s or 1h30m, not the string "1 s"`},
		{"flow: [{resource: a, interval: 1d}]", `r.yaml:1:32: flow[0].interval: must be a duration like 500ms, 1s or 1h30m, not the string "1d"`},
		{"flow: [{resource: a, interval: 9999999h}]", `r.yaml:1:32: flow[0].interval: must be a duration like 500ms, 1s or 1h30m, not the string "9999999h"`},
		{"flow: [{resource: a, interval: true}]", "r.yaml:1:32: flow[0].interval: must be a duration like 500ms, 1s or 1h30m, not true"},
		{"flow: [{resource: a, interval: }]", "r.yaml:1:32: flow[0].interval: must be a duration like 500ms, 1s or 1h30m, not nothing"},
		{"flow: [{resource: a, interval: -1s}]", "r.yaml:1:32: flow[0].interval: is -1s: use a duration from 10ms to 24h0m0s"},
		{"flow: [{resource: a, interval: 25h}]", "r.yaml:1:32: flow[0].interval: is 25h0m0s: use a duration from 10ms to 24h0m0s, or per: day, week or month"},
		{"flow: [{resource: a, maxWait: 25h, behavior: throttle}]", "r.yaml:1:31: flow[0].maxWait: is 25h0m0s: use a duration from 0s to 24h0m0s"},

		// True or false, and names.
		{"flow: [{resource: a, strict: yes}]", `r.yaml:1:30: flow[0].strict: must be true or false, not the string "yes"`},
		{"flow: [{resource: a, strict: True}]", "r.yaml:1:30: flow[0].strict: must be true or false, not True"},
		{"flow: [{resource: a, strict: 'true'}]", `r.yaml:1:30: flow[0].strict: must be true or false, not the string "true"`},
		{"flow: [{resource: a, strict: 1}]", "r.yaml:1:30: flow[0].strict: must be true or false, not 1"},
		{"flow: [{resource: a, metric: QPS}]", `r.yaml:1:30: flow[0].metric: unknown metric "QPS": use qps, concurrency`},
		{"flow: [{resource: a, behavior: 1}]", `r.yaml:1:32: flow[0].behavior: must be a string, not 1: if it is meant as a string, write "1"`},
		{"flow: [{resource: a, mode: }]", "r.yaml:1:28: flow[0].mode: must be a string, not nothing"},

		// An error from a family has the position of its field, or of the rule if the field is
		// missing.
		{"flow: [{threshold: 1}]", "r.yaml:1:8: flow[0].resource: is required: name the resource that the rule limits"},
		{"flow:\n  - resource: a\n    relation: chain\n", "r.yaml:2:5: flow[0].ref: is required by relation chain: name the context that the rule applies to"},
		{"flow: [{resource: a, ref: b}]", "r.yaml:1:27: flow[0].ref: has no meaning for relation direct: remove it, or set relation to associated or chain"},
		{"flow: [{resource: a, match: glob, threshold: 1}]", `r.yaml:1:29: flow[0].match: unknown match "glob": use exact, regex, prefix, path`},
		{"flow: [{resource: a, regex: maybe, threshold: 1}]", `r.yaml:1:29: flow[0].regex: must be true or false, not the string "maybe"`},
		{"flow: [{resource: a, regex: true, match: exact, threshold: 1}]",
			`r.yaml:1:35: flow[0].match: is set twice, as match and by its alias regex: keep one`},
		{"flow: [{resource: a, match: regex, regex: true, threshold: 1}]",
			`r.yaml:1:36: flow[0].match: is set twice, as match and by its alias regex: keep one`},
		{"flow: [{resource: (, regex: true}]", `r.yaml:1:19: flow[0].resource: is not a valid regular expression: missing closing ): "("`},

		// Repeated rules.
		{"flow:\n- {resource: a, threshold: 1}\n- {resource: a, threshold: 1}", "r.yaml:3:3: flow[1]: is the same rule as flow[0] at 2:3: remove one"},
		{"flow:\n- {resource: a, threshold: 1}\n- {resource: a, threshold: 1.0, interval: 1s, mode: enforce}", "r.yaml:3:3: flow[1]: is the same rule as flow[0] at 2:3: remove one"},
		{"flow:\n- {resource: a, threshold: 1}\n- {resource: a, threshold: 2}\n- {resource: a, threshold: 2}", "r.yaml:4:3: flow[2]: is the same rule as flow[1] at 3:3: remove one"},
		{"flow: [{resource: a}]", "r.yaml:1:8: flow[0].threshold: is required: write 0 if you mean 0"},
		{"flow:\n- {id: x, resource: a, threshold: 1}\n- {resource: b, threshold: 1, id: x}", `r.yaml:3:35: flow[1].id: "x" is already the id of flow[0] at 2:3`},
		{"flow:\n- {resource: a, threshold: 1}\n- {id: 'flow:a', resource: a, threshold: 2}\n- {id: 'flow:a', resource: a, threshold: 3}", `r.yaml:4:8: flow[2].id: "flow:a" is already the id of flow[1] at 3:3`},
		{"flow:\n- {id: 'flow:a', resource: a, threshold: 1}\n- {resource: a, threshold: 1}", "r.yaml:3:3: flow[1]: is the same rule as flow[0] at 2:3: remove one"},

		// Features of YAML that a rule file may not use.
		{"flow: []\n---\nflow: []\n", "r.yaml:2:1: a second document: a rule file has one"},
		{"flow: &x []\n", "r.yaml:1:7: the anchor &x: anchors are not supported, remove it"},
		{"flow: [&x {resource: a}, *x]", "r.yaml:1:8: the anchor &x: anchors are not supported, remove it\nr.yaml:1:26: the alias *x: aliases are not supported, write the value out"},
		{"flow: [{<<: {resource: a}}]", "r.yaml:1:9: the merge key <<: merge keys are not supported, write the keys out"},
		{"flow: [{resource: !!str 12}]", "r.yaml:1:19: the tag !!str: tags are not supported, remove it"},
		{"flow: !rules []", "r.yaml:1:7: the tag !rules: tags are not supported, remove it"},
		{"flow: " + strings.Repeat("[", 15) + strings.Repeat("]", 15), "r.yaml:1:8: flow[0]: must be a mapping, as in `{resource: GET /orders, threshold: 100}`, not a list"},
		{"flow: " + strings.Repeat("[", 16) + strings.Repeat("]", 16), "r.yaml:1:22: is nested deeper than 16 levels"},

		// Files that aren't YAML.
		{"flow:\n  - resource: a\n   threshold: 1\n", "r.yaml:3:4: is not YAML: did not find expected '-' indicator"},
		{"flow:\n  - resource: a\n    threshold: 1\n  resource: b\n", "r.yaml:4:3: is not YAML: did not find expected '-' indicator"},
		{"flow:\n  - resource: a: b\n", "r.yaml:2:3: is not YAML: mapping values are not allowed in this context"},
		{"flow:\n\t- resource: a\n", "r.yaml:2:1: is not YAML: a tab, where YAML allows only spaces: replace it"},
		{"flow: [\n  {resource: a\n", "r.yaml:2:3: is not YAML: did not find expected ',' or '}'"},
		{"flow:\n  - resource: \"a\n", "r.yaml:2:3: is not YAML: found unexpected end of stream"},
		{"flow: @a", "r.yaml:1:1: is not YAML: found character that cannot start any token"},
		{"flow:\n  - *x\n  - {resource: a}\n", "r.yaml:2:3: is not YAML: unknown anchor 'x' referenced"},
		{"flow: \"\\q\"", "r.yaml:1:1: is not YAML: found unknown escape character"},
		{"flow: []\n# \xff\n", "r.yaml:2:3: is not UTF-8 text: the byte 0xff"},
		{"\xff\xfef\x00l\x00", "r.yaml:1:1: is not UTF-8 text: the byte 0xff"},
		{"flow: \"ä\x01b\"", "r.yaml:1:9: the control character U+0001 is not allowed"},
		{"flow: []\uFEFF", "r.yaml:1:9: the control character U+FEFF is not allowed"},
	} {
		set, err := Parse("r.yaml", []byte(c.data))
		assert.EqualError(t, err, c.want, "%q", c.data)
		assert.Zero(t, set, "%q", c.data)
	}
}

func TestParseRefusesJSON(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{" ", "r.json:1:1: holds no rules: write `flow: []` to remove every rule"},
		{"null", "r.json:1:1: holds no rules: write `flow: []` to remove every rule"},
		{"{}", "r.json:1:1: holds no rules: write `flow: []` to remove every rule"},
		{"flow: []", "r.json:1:2: is not JSON: invalid character 'l' in literal false (expecting 'a')"},
		{"{\"flow\": [\n  {]\n}", "r.json:2:4: is not JSON: invalid character ']' looking for beginning of object key string"},
		{`{"flow": []`, "r.json:1:11: is not JSON: unexpected end of JSON input"},
		{`{"flow": []} {}`, "r.json:1:14: is not JSON: invalid character '{' after top-level value"},
		{`{"flow": [],}`, "r.json:1:13: is not JSON: a comma before the closing bracket: remove it"},
		{`{"flow": NaN}`, "r.json:1:10: is not JSON: invalid character 'N' looking for beginning of value"},
		{`{"flow": null}`, "r.json:1:10: flow: has no value: write `flow: []` for no rules"},
		{`{"flow": [], "flow": []}`, "r.json:1:14: flow: is set twice, first at 1:2"},
		{`{"flow": [], "fl\u006fw": []}`, "r.json:1:14: flow: is set twice, first at 1:2"},
		{"{\n\t\"flow\": [\n\t\t{ \"resource\": \"ä\" , \"treshold\": 1 }\n\t]\n}",
			`r.json:3:23: flow[0].treshold: unknown field (did you mean "threshold"?)`},
		{`{"flow": [{"resource": 12}]}`, `r.json:1:24: flow[0].resource: must be a string, not 12: if it is meant as a string, write "12"`},
		{`{"flow": [{"resource": "a", "interval": 500}]}`, "r.json:1:41: flow[0].interval: must be a duration with its unit, as in 500ms or 500s"},
		{`{"flow": [{"resource": "a", "strict": "true"}]}`, `r.json:1:39: flow[0].strict: must be true or false, not the string "true"`},
		{`{"flow": [{"resource": "a", "threshold": 1e999}]}`, "r.json:1:42: flow[0].threshold: must be a number like 100 or 0.5, not 1e999"},
		{`{"flow": [{"resource": "a", "threshold": {"a": 1}}]}`, "r.json:1:42: flow[0].threshold: must be a number like 100 or 0.5, not a mapping"},
		{`{"flow": ` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + "}", "r.json:1:25: is nested deeper than 16 levels"},
		{"{\"flow\": \"\xff\"}", "r.json:1:11: is not UTF-8 text: the byte 0xff"},
	} {
		set, err := Parse("r.json", []byte(c.data))
		assert.EqualError(t, err, c.want, "%q", c.data)
		assert.Zero(t, set, "%q", c.data)
	}
}
