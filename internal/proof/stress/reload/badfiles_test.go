package reload

import (
	"strings"
	"unicode/utf16"

	"github.com/penstock-go/penstock/rules"
)

// badFile is an invalid rule file, and the expected error: the line and the column, and how it
// begins.
type badFile struct {
	name, data string
	at         string // "0:0" is the whole file
	says       string
}

// rule returns a file with one rule, which has these fields in addition to the resource.
func rule(fields string) string { return "flow:\n  - {resource: orders, " + fields + "}\n" }

// two returns a file of two rules.
func two(a, b string) string { return "flow:\n  - {" + a + "}\n  - {" + b + "}\n" }

func utf16Text(s string) string {
	var b strings.Builder
	b.WriteString("\xff\xfe")
	for _, u := range utf16.Encode([]rune(s)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

const good = "flow:\n  - {resource: orders, threshold: 1}\n"

var badFiles = []badFile{
	// Nothing at all.
	{name: "empty", data: "", at: "1:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "comments", data: "# flow:\n#  - none yet\n", at: "1:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "a family without value", data: "flow:\n", at: "1:6", says: "flow: has no value: write `flow: []` for no rules"},
	{name: "zeros", data: strings.Repeat("\x00", 512), at: "1:1", says: "the control character U+0000 is not allowed"},

	// Not text.
	{name: "UTF-16", data: utf16Text(good), at: "1:1", says: "is not UTF-8 text: the byte 0xff"},
	{name: "compressed", data: "\x1f\x8b\x08\x00\x00\x00", at: "1:2", says: "is not UTF-8 text: the byte 0x8b"},
	{name: "cut within a character", data: "flow: [] # \xe2\x82", at: "1:12", says: "is not UTF-8 text: the byte 0xe2"},

	// Too much.
	{name: "huge", data: strings.Repeat("#\n", rules.MaxFileSize), at: "0:0", says: "the maximum is"},
	{name: "too many rules", data: "flow: [" + strings.Repeat("{}, ", rules.MaxRules+1) + "]\n", at: "1:7", says: "flow: brings the file to 10001 rules, the maximum is"},
	{name: "too many lines", data: strings.Repeat("\n", 200_000) + "flow: []\n", at: "0:0", says: "lines, commas"},

	// Not YAML.
	{name: "an open bracket", data: "flow: [\n  {resource: orders, threshold: 1}\n", at: "2:3", says: "is not YAML: did not find expected ',' or"},
	{name: "a tab for spaces", data: "flow:\n\t- {resource: orders, threshold: 1}\n", at: "2:1", says: "is not YAML: a tab, where YAML allows only spaces"},
	{name: "an unfilled template", data: "flow: {{ .Values.rules }}\n", at: "1:7", says: "flow: must be a list of rules, not a mapping"},
	{name: "marks of a merge", data: "flow:\n<<<<<<< HEAD\n  - {resource: orders, threshold: 1}\n=======\n", at: "2:1", says: "is not YAML: could not find expected ':'"},
	{name: "a web page", data: "<!DOCTYPE html>\n<html><body>502 Bad Gateway</body></html>\n", at: "1:1", says: "must be a mapping of rule families, as in"},

	// YAML that rule files have no use for.
	{name: "two documents", data: good + "---\n" + good, at: "3:1", says: "a second document: a rule file has one"},
	{name: "an anchor", data: "flow:\n  - &a {resource: orders, threshold: 1}\n", at: "2:5", says: "the anchor &a: anchors are not supported, remove"},
	{name: "a laugh", data: "a: &a [x, x]\nb: &b [*a, *a]\nflow: [*b, *b]\n", at: "1:4", says: "the anchor &a: anchors are not supported, remove"},

	// Not JSON.
	{name: "JSON, cut short", data: "{\"flow\": [\n{\"resource\": \"orders\",", at: "2:1", says: "is not YAML: did not find expected node"},
	{name: "JSON, a key twice", data: `{"flow": [], "flow": []}`, at: "1:14", says: "flow: is set twice, first at 1:2"},

	// The wrong shape.
	{name: "a family that is a mapping", data: "flow: {resource: orders, threshold: 1}\n", at: "1:7", says: "flow: this is one rule: put it in [ ]"},
	{name: "a rule that is nothing", data: "flow:\n  -\n", at: "2:4", says: "flow[0]: must be a mapping, as in `{resource: GET"},
	{name: "an unknown family next to a known one", data: good + "hot: []\n", at: "3:1", says: "hot: unknown family"},
	{name: "a rule file of Sentinel", data: `[{"resource": "a", "limitApp": "default", "grade": 1, "count": 20, "clusterMode": true}]`, at: "1:2", says: "[0].clusterConfig: needs flowId"},
	{name: "a rule file of sentinel-golang", data: `[{"resource": "a", "tokenCalculateStrategy": 9, "controlBehavior": 0, "threshold": 20}]`, at: "1:46", says: "[0].tokenCalculateStrategy: is 9: use a number from 0 to 2"},

	// Fields.
	{name: "a field of Sentinel", data: rule("threshold: 1, limitApp: default"), at: "2:38", says: "limitApp is a key of sentinel-java, and threshold at 2:24 one of native or sentinel-go"},
	{name: "no threshold", data: "flow:\n  - {resource: orders}\n", at: "2:5", says: "flow[0].threshold: is required: write 0 if you mean 0"},

	// Numbers.
	{name: "threshold, not a number", data: rule("threshold: .nan"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not .nan"},
	{name: "buckets that don't divide the interval", data: rule("threshold: 1, interval: 100ns, buckets: 3"), at: "2:48", says: "flow[0].interval: is 100ns: use a duration from 10ms to"},
	{name: "a throttle that is too fast", data: rule("threshold: 1e12, behavior: throttle"), at: "2:35", says: "flow[0].threshold: is 1e+12 per second: a throttle admits at"},

	// Durations.
	{name: "interval without a unit", data: rule("threshold: 1, interval: 500"), at: "2:48", says: "flow[0].interval: must be a duration with its unit, as in"},

	// Choices.
	{name: "an unknown behavior", data: rule("threshold: 1, behavior: drop"), at: "2:48", says: `flow[0].behavior: unknown behavior "drop": use reject,`},

	// Rules that can't have their stated effect.
	{name: "a queue for another resource", data: rule("threshold: 1, behavior: throttle, relation: associated, ref: carts"), at: "2:48", says: "flow[0].behavior: throttle does not go with relation"},
	{name: "a pattern that is none", data: "flow:\n  - {resource: 'or(', regex: true, threshold: 1}\n", at: "2:16", says: "flow[0].resource: is not a valid regular expression"},
	{name: "a rule twice, one with its defaults", data: two("resource: orders, threshold: 1", "resource: orders, threshold: 1, interval: 1s, mode: enforce"), at: "3:5", says: "flow[1]: is the same rule as flow[0] at 2:5: remove"},
	{name: "an ID twice", data: two("id: r, resource: orders, threshold: 1", "id: r, resource: carts, threshold: 1"), at: "3:10", says: `flow[1].id: "r" is already the id of flow[0] at 2:5`},
	{name: "a good rule and a bad one", data: two("resource: orders, threshold: 1", "resource: carts, threshold: -1"), at: "3:34", says: "flow[1].threshold: is -1: use a finite number from 0 to 1e+15"},
}
