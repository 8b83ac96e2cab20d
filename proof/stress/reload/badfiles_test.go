package reload

import (
	"strings"
	"unicode/utf16"

	"github.com/penstock-go/penstock/rules"
)

// badFile is what a rule file must not hold, and what is said of it: the line and the
// column, and how it begins.
type badFile struct {
	name, data string
	at         string // "0:0" is the whole file
	says       string
}

// rule makes a file of one rule with these fields beside the resource.
func rule(fields string) string { return "flow:\n  - {resource: orders, " + fields + "}\n" }

// two makes a file of two rules.
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
	{name: "spaces", data: "  \n\t\n  ", at: "1:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "a byte order mark", data: "\uFEFF", at: "1:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "comments", data: "# flow:\n#  - none yet\n", at: "1:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "null", data: "null\n", at: "1:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "a tilde", data: "~", at: "1:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "a document start", data: "---\n", at: "2:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "a document start and end", data: "---\n...\n", at: "2:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "an empty mapping", data: "{}\n", at: "1:1", says: "holds no rules: write `flow: []` to remove"},
	{name: "a family without value", data: "flow:\n", at: "1:6", says: "flow: has no value: write `flow: []` for no rules"},
	{name: "a family that is null", data: "flow: null\n", at: "1:7", says: "flow: has no value: write `flow: []` for no rules"},
	{name: "zeros", data: strings.Repeat("\x00", 512), at: "1:1", says: "the control character U+0000 is not allowed"},

	// Not text.
	{name: "UTF-16", data: utf16Text(good), at: "1:1", says: "is not UTF-8 text: the byte 0xff"},
	{name: "Latin-1", data: "flow: [] # caf\xe9\n", at: "1:15", says: "is not UTF-8 text: the byte 0xe9"},
	{name: "a program", data: "\x7fELF\x02\x01\x01\x00\x00", at: "1:1", says: "the control character U+007F is not allowed"},
	{name: "compressed", data: "\x1f\x8b\x08\x00\x00\x00", at: "1:2", says: "is not UTF-8 text: the byte 0x8b"},
	{name: "a control character", data: "flow: [] # \x07\n", at: "1:12", says: "the control character U+0007 is not allowed"},
	{name: "a byte order mark in the middle", data: "flow: []\n\uFEFF", at: "2:1", says: "the control character U+FEFF is not allowed"},
	{name: "cut within a character", data: "flow: [] # \xe2\x82", at: "1:12", says: "is not UTF-8 text: the byte 0xe2"},

	// Too much.
	{name: "huge", data: strings.Repeat("#\n", rules.MaxFileSize), at: "0:0", says: "the most is"},
	{name: "too many rules", data: "flow: [" + strings.Repeat("{}, ", rules.MaxRules+1) + "]\n", at: "1:7", says: "flow: brings the file to 10001 rules, the most is"},
	{name: "too deep", data: "flow: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n", at: "1:22", says: "is nested deeper than 16 levels"},
	{name: "too many lines", data: strings.Repeat("\n", 200_000) + "flow: []\n", at: "0:0", says: "lines, commas"},

	// Not YAML.
	{name: "an open bracket", data: "flow: [\n  {resource: orders, threshold: 1}\n", at: "2:3", says: "is not YAML: did not find expected ',' or"},
	{name: "an open brace", data: "flow:\n  - {resource: orders, threshold: 1\n", at: "2:3", says: "is not YAML: did not find expected ',' or"},
	{name: "an open quote", data: "flow:\n  - {resource: \"orders, threshold: 1}\n", at: "2:3", says: "is not YAML: found unexpected end of stream"},
	{name: "a bracket too many", data: "flow: []]\n", at: "1:1", says: "is not YAML: did not find expected key"},
	{name: "a brace for a bracket", data: "flow: [}\n", at: "1:1", says: "is not YAML: did not find expected node"},
	{name: "a tab for spaces", data: "flow:\n\t- {resource: orders, threshold: 1}\n", at: "2:1", says: "is not YAML: a tab, where YAML has only blanks"},
	{name: "a tab in a rule", data: "flow:\n  - resource: orders\n\tthreshold: 1\n", at: "3:1", says: "is not YAML: a tab, where YAML has only blanks"},
	{name: "indented less", data: "flow:\n   - resource: orders\n  threshold: 1\n", at: "3:3", says: "is not YAML: did not find expected key"},
	{name: "indented more", data: "flow:\n  - resource: orders\n      threshold: 1\n", at: "3:7", says: "is not YAML: mapping values are not allowed"},
	{name: "no space after the colon", data: "flow:\n  - resource:orders\n    threshold:1\n", at: "2:5", says: "flow[0]: must be a mapping, as in `{resource: GET"},
	{name: "no colon", data: "flow:\n  - resource orders\n    threshold 1\n", at: "2:5", says: "flow[0]: must be a mapping, as in `{resource: GET"},
	{name: "an unknown escape", data: "flow:\n  - {resource: \"a\\q\", threshold: 1}\n", at: "2:3", says: "is not YAML: found unknown escape character"},
	{name: "an at sign", data: "flow:\n  - {resource: @orders, threshold: 1}\n", at: "2:3", says: "is not YAML: found character that cannot"},
	{name: "a backtick", data: "flow:\n  - {resource: `orders`, threshold: 1}\n", at: "2:3", says: "is not YAML: found character that cannot"},
	{name: "an unfilled template", data: "flow: {{ .Values.rules }}\n", at: "1:7", says: "flow: must be a list of rules, not a mapping"},
	{name: "a percent sign", data: "flow:\n  - {resource: %s, threshold: 1}\n", at: "2:3", says: "is not YAML: found character that cannot"},
	{name: "marks of a merge", data: "flow:\n<<<<<<< HEAD\n  - {resource: orders, threshold: 1}\n=======\n", at: "2:1", says: "is not YAML: could not find expected ':'"},
	{name: "a diff", data: "--- a/rules.yaml\n+++ b/rules.yaml\n@@ -1 +1 @@\n", at: "1:5", says: "must be a mapping of rule families, as in"},
	{name: "a shell script", data: "#!/bin/sh\necho flow: []\nexit 1\n", at: "3:1", says: "is not YAML: could not find expected ':'"},
	{name: "a web page", data: "<!DOCTYPE html>\n<html><body>502 Bad Gateway</body></html>\n", at: "1:1", says: "must be a mapping of rule families, as in"},

	// YAML that a rule file has no use for.
	{name: "two documents", data: good + "---\n" + good, at: "3:1", says: "a second document: a rule file has one"},
	{name: "an anchor", data: "flow:\n  - &a {resource: orders, threshold: 1}\n", at: "2:5", says: "the anchor &a: anchors are not read, remove"},
	{name: "an alias", data: "flow:\n  - &a {resource: orders, threshold: 1}\n  - *a\n", at: "2:5", says: "the anchor &a: anchors are not read, remove"},
	{name: "an alias of nothing", data: "flow:\n  - *a\n", at: "2:3", says: "is not YAML: unknown anchor 'a' referenced"},
	{name: "a merge key", data: "flow:\n  - <<: {resource: orders}\n    threshold: 1\n", at: "2:5", says: "the merge key <<: merging is not read,"},
	{name: "a tag", data: "flow: !rules\n  - {resource: orders, threshold: 1}\n", at: "1:7", says: "the tag !rules: tags are not read, remove it"},
	{name: "a type tag", data: rule("threshold: !!float 1"), at: "2:35", says: "the tag !!float: tags are not read, remove"},
	{name: "binary", data: "flow:\n  - {resource: !!binary b3JkZXJz, threshold: 1}\n", at: "2:16", says: "the tag !!binary: tags are not read, remove"},
	{name: "a laugh", data: "a: &a [x, x]\nb: &b [*a, *a]\nflow: [*b, *b]\n", at: "1:4", says: "the anchor &a: anchors are not read, remove"},

	// Not JSON.
	{name: "JSON, a trailing comma in a list", data: `{"flow": [{"resource": "orders", "threshold": 1},]}` + "x", at: "1:1", says: "is not YAML: did not find expected"},
	{name: "JSON, cut short", data: "{\"flow\": [\n{\"resource\": \"orders\",", at: "2:1", says: "is not YAML: did not find expected node"},
	{name: "JSON, two values", data: `{"flow": []} {"flow": []}`, at: "1:1", says: "is not YAML: did not find expected"},
	{name: "JSON, a list", data: `[{"resource": "orders", "threshold": 1}]`, at: "1:1", says: "must be a mapping of rule families, as in"},
	{name: "JSON, a number", data: "17", at: "1:1", says: "must be a mapping of rule families, as in"},
	{name: "JSON, text", data: `"flow"`, at: "1:1", says: "must be a mapping of rule families, as in"},
	{name: "JSON, a key twice", data: `{"flow": [], "flow": []}`, at: "1:14", says: "flow: is set twice, first at 1:2"},
	{name: "JSON, a field twice", data: `{"flow": [{"resource": "a", "threshold": 1, "threshold": 2}]}`, at: "1:45", says: "flow[0].threshold: is set twice, first at 1:29"},

	// The wrong shape.
	{name: "a list at the top", data: "- {resource: orders, threshold: 1}\n", at: "1:1", says: "must be a mapping of rule families, as in"},
	{name: "text", data: "hello\n", at: "1:1", says: "must be a mapping of rule families, as in"},
	{name: "a family that is a mapping", data: "flow: {resource: orders, threshold: 1}\n", at: "1:7", says: "flow: must be a list of rules, not a mapping"},
	{name: "a family that is a number", data: "flow: 1\n", at: "1:7", says: "flow: must be a list of rules, not 1"},
	{name: "a rule that is text", data: "flow: [orders]\n", at: "1:8", says: "flow[0]: must be a mapping, as in `{resource: GET"},
	{name: "a rule that is a list", data: "flow: [[orders, 1]]\n", at: "1:8", says: "flow[0]: must be a mapping, as in `{resource: GET"},
	{name: "a rule that is nothing", data: "flow:\n  -\n", at: "2:4", says: "flow[0]: must be a mapping, as in `{resource: GET"},
	{name: "an unknown family", data: "flows: []\n", at: "1:1", says: `flows: unknown field (did you mean "flow"?)`},
	{name: "an unknown family beside a good one", data: good + "hot: []\n", at: "3:1", says: "hot: unknown field"},
	{name: "a family twice", data: good + good, at: "3:1", says: "flow: is set twice, first at 1:1"},
	{name: "a key that is a number", data: good + "1: []\n", at: "3:1", says: "a key must be text, not 1"},
	{name: "a family in capitals", data: "FLOW: []\n", at: "1:1", says: `FLOW: unknown field (did you mean "flow"?)`},
	{name: "a rule file of Sentinel", data: `[{"resource": "a", "limitApp": "default", "grade": 1, "count": 20, "clusterMode": true}]`, at: "1:2", says: "[0].clusterConfig: needs flowId"},
	{name: "a rule file of sentinel-golang", data: `[{"resource": "a", "tokenCalculateStrategy": 9, "controlBehavior": 0, "threshold": 20}]`, at: "1:46", says: "[0].tokenCalculateStrategy: is 9: use a number from 0 to 2"},

	// Fields.
	{name: "an unknown field", data: rule("threshold: 1, treshold: 2"), at: "2:38", says: `flow[0].treshold: unknown field (did you mean "threshold"?)`},
	{name: "a field in capitals", data: rule("Threshold: 1"), at: "2:24", says: `flow[0].Threshold: unknown field (did you mean "threshold"?)`},
	{name: "a field of Sentinel", data: rule("threshold: 1, limitApp: default"), at: "2:38", says: "limitApp is a key of sentinel-java, and threshold at 2:24 one of native or sentinel-go"},
	{name: "a field twice", data: rule("threshold: 1, threshold: 1"), at: "2:38", says: "flow[0].threshold: is set twice, first at 2:24"},
	{name: "no resource", data: "flow:\n  - {threshold: 1}\n", at: "2:5", says: "flow[0].resource: is required: name the resource that the"},
	{name: "an empty resource", data: "flow:\n  - {resource: '', threshold: 1}\n", at: "2:16", says: "flow[0].resource: is required: name the resource that the"},
	{name: "a resource that is a number", data: "flow:\n  - {resource: 1, threshold: 1}\n", at: "2:16", says: "flow[0].resource: must be text, not 1: if it is meant as"},
	{name: "a resource that is nothing", data: "flow:\n  - {resource: , threshold: 1}\n", at: "2:16", says: "flow[0].resource: must be text, not nothing"},
	{name: "a resource that is a list", data: "flow:\n  - {resource: [a, b], threshold: 1}\n", at: "2:16", says: "flow[0].resource: must be text, not a list"},
	{name: "no threshold", data: "flow:\n  - {resource: orders}\n", at: "2:5", says: "flow[0].threshold: is required: write 0 if you mean 0"},
	{name: "an ID that is a number", data: rule("threshold: 1, id: 7"), at: "2:42", says: "flow[0].id: must be text, not 7: if it is meant as"},

	// Numbers.
	{name: "threshold, text", data: rule("threshold: '1'"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not the"},
	{name: "threshold, a word", data: rule("threshold: lots"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not the"},
	{name: "threshold, nothing", data: rule("threshold: "), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not"},
	{name: "threshold, a list", data: rule("threshold: [1]"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not a list"},
	{name: "threshold, true", data: rule("threshold: true"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not true"},
	{name: "threshold, not a number", data: rule("threshold: .nan"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not .nan"},
	{name: "threshold, NaN", data: rule("threshold: NaN"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not the"},
	{name: "threshold, infinite", data: rule("threshold: .inf"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not .inf"},
	{name: "threshold, Infinity", data: rule("threshold: Infinity"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not the"},
	{name: "threshold, minus infinite", data: rule("threshold: -.inf"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not -.inf"},
	{name: "threshold, beyond any number", data: rule("threshold: 1e999"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not 1e999"},
	{name: "threshold, negative", data: rule("threshold: -1"), at: "2:35", says: "flow[0].threshold: is -1: use a finite number from 0 to 1e+15"},
	{name: "threshold, a little below zero", data: rule("threshold: -1e-300"), at: "2:35", says: "flow[0].threshold: is -1e-300: use a finite number from 0 to"},
	{name: "threshold, too high", data: rule("threshold: 2e15"), at: "2:35", says: "flow[0].threshold: is 2e+15: use a finite number from 0 to"},
	{name: "threshold, octal", data: rule("threshold: 010"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not 010"},
	{name: "threshold, hexadecimal", data: rule("threshold: 0x10"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not 0x10"},
	{name: "threshold, with underscores", data: rule("threshold: 1_000"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not 1_000"},
	{name: "threshold, with a unit", data: rule("threshold: 100/s"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not the"},
	{name: "threshold, with a comma", data: rule("threshold: \"1,5\""), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not the"},
	{name: "threshold, in sixties", data: rule("threshold: 1:30"), at: "2:35", says: "flow[0].threshold: must be a number like 100 or 0.5, not the"},
	{name: "buckets, negative", data: rule("threshold: 1, buckets: -1"), at: "2:47", says: "flow[0].buckets: -1 buckets: use 1 to 1440"},
	{name: "buckets, too many", data: rule("threshold: 1, buckets: 100000000"), at: "2:47", says: "flow[0].buckets: 100000000 buckets: use 1 to 1440"},
	{name: "buckets, a fraction", data: rule("threshold: 1, buckets: 2.5"), at: "2:47", says: "flow[0].buckets: must be a whole number, not 2.5"},
	{name: "buckets that don't divide the interval", data: rule("threshold: 1, interval: 100ns, buckets: 3"), at: "2:48", says: "flow[0].interval: is 100ns: use a duration from 10ms to"},
	{name: "buckets, beyond any number", data: rule("threshold: 1, buckets: 9223372036854775808"), at: "2:47", says: "flow[0].buckets: must be a whole number, not"},
	{name: "cold factor, one", data: rule("threshold: 1, behavior: warmUp, coldFactor: 1"), at: "2:68", says: "flow[0].coldFactor: is 1: use a whole number from 2 to 1000"},
	{name: "cold factor, negative", data: rule("threshold: 1, behavior: warmUp, coldFactor: -3"), at: "2:68", says: "flow[0].coldFactor: is -3: use a whole number from 2 to 1000"},
	{name: "cold factor, huge", data: rule("threshold: 1, behavior: warmUp, coldFactor: 1001"), at: "2:68", says: "flow[0].coldFactor: is 1001: use a whole number from 2 to 1000"},
	{name: "a throttle that is too fast", data: rule("threshold: 1e12, behavior: throttle"), at: "2:35", says: "flow[0].threshold: is 1e+12 a second: a throttle spaces at"},

	// Durations.
	{name: "interval without a unit", data: rule("threshold: 1, interval: 500"), at: "2:48", says: "flow[0].interval: must be a duration with its unit, as in"},
	{name: "interval, text without a unit", data: rule("threshold: 1, interval: '500'"), at: "2:48", says: "flow[0].interval: must be a duration with its unit, as in"},
	{name: "interval in days", data: rule("threshold: 1, interval: 1d"), at: "2:48", says: "flow[0].interval: must be a duration like 500ms, 1s or 1h30m,"},
	{name: "interval with a space", data: rule("threshold: 1, interval: 1 s"), at: "2:48", says: "flow[0].interval: must be a duration like 500ms, 1s or 1h30m,"},
	{name: "interval in words", data: rule("threshold: 1, interval: a second"), at: "2:48", says: "flow[0].interval: must be a duration like 500ms, 1s or 1h30m,"},
	{name: "interval, negative", data: rule("threshold: 1, interval: -1s"), at: "2:48", says: "flow[0].interval: is -1s: use a duration from 10ms to 24h0m0s"},
	{name: "interval, too short", data: rule("threshold: 1, interval: 1ms"), at: "2:48", says: "flow[0].interval: is 1ms: use a duration from 10ms to 24h0m0s"},
	{name: "interval, too long", data: rule("threshold: 1, interval: 25h"), at: "2:48", says: "flow[0].interval: is 25h0m0s: use a duration from 10ms to"},
	{name: "interval, beyond any number", data: rule("threshold: 1, interval: 99999999h"), at: "2:48", says: "flow[0].interval: must be a duration like 500ms, 1s or 1h30m,"},
	{name: "warm-up too short", data: rule("threshold: 1, behavior: warmUp, warmUpPeriod: 10ms"), at: "2:70", says: "flow[0].warmUpPeriod: is 10ms: use a duration from 1s to 24h0m0s"},
	{name: "warm-up too long", data: rule("threshold: 1, behavior: warmUp, warmUpPeriod: 1000h"), at: "2:70", says: "flow[0].warmUpPeriod: is 1000h0m0s: use a duration from 1s to"},
	{name: "wait, negative", data: rule("threshold: 1, behavior: throttle, maxWait: -1ms"), at: "2:67", says: "flow[0].maxWait: is -1ms: use a duration from 0s to 24h0m0s"},
	{name: "wait, too long", data: rule("threshold: 1, behavior: throttle, maxWait: 1000h"), at: "2:67", says: "flow[0].maxWait: is 1000h0m0s: use a duration from 0s to"},

	// Choices.
	{name: "an unknown metric", data: rule("threshold: 1, metric: rps"), at: "2:46", says: `flow[0].metric: unknown metric "rps": use qps, concurrency`},
	{name: "a metric in capitals", data: rule("threshold: 1, metric: QPS"), at: "2:46", says: `flow[0].metric: unknown metric "QPS": use qps, concurrency`},
	{name: "an unknown behavior", data: rule("threshold: 1, behavior: drop"), at: "2:48", says: `flow[0].behavior: unknown behavior "drop": use reject,`},
	{name: "a behavior by number", data: rule("threshold: 1, behavior: 1"), at: "2:48", says: "flow[0].behavior: must be text, not 1: if it is meant as"},
	{name: "an unknown relation", data: rule("threshold: 1, relation: parent, ref: x"), at: "2:48", says: `flow[0].relation: unknown relation "parent": use direct,`},
	{name: "an unknown mode", data: rule("threshold: 1, mode: on"), at: "2:44", says: `flow[0].mode: unknown mode "on": use enforce, shadow, off`},
	{name: "a mode that is nothing", data: rule("threshold: 1, mode: "), at: "2:44", says: "flow[0].mode: must be text, not nothing"},
	{name: "yes", data: rule("threshold: 1, strict: yes"), at: "2:46", says: `flow[0].strict: must be true or false, not the text "yes"`},
	{name: "true, as text", data: rule("threshold: 1, strict: 'true'"), at: "2:46", says: `flow[0].strict: must be true or false, not the text "true"`},

	// Rules that can't act as they say.
	{name: "a reference that means nothing", data: rule("threshold: 1, ref: carts"), at: "2:43", says: "flow[0].ref: has no meaning for relation direct: remove"},
	{name: "associated with nothing", data: rule("threshold: 1, relation: associated"), at: "2:5", says: "flow[0].ref: is required by relation associated: name"},
	{name: "a path without a context", data: rule("threshold: 1, relation: chain"), at: "2:5", says: "flow[0].ref: is required by relation chain: name the"},
	{name: "warm-up of concurrency", data: rule("threshold: 1, metric: concurrency, behavior: warmUp"), at: "2:69", says: "flow[0].behavior: warmUp does not go with metric concurrency:"},
	{name: "a queue of concurrency", data: rule("threshold: 1, metric: concurrency, behavior: throttle"), at: "2:69", says: "flow[0].behavior: throttle does not go with metric"},
	{name: "strict concurrency", data: rule("threshold: 1, metric: concurrency, strict: false"), at: "2:67", says: "flow[0].strict: has no meaning for metric concurrency: remove it, or"},
	{name: "a strict queue", data: rule("threshold: 1, behavior: throttle, strict: false"), at: "2:66", says: "flow[0].strict: has no meaning for behavior throttle: remove it, or"},
	{name: "a queue for another resource", data: rule("threshold: 1, behavior: throttle, relation: associated, ref: carts"), at: "2:48", says: "flow[0].behavior: throttle does not go with relation"},
	{name: "a pattern that is none", data: "flow:\n  - {resource: 'or(', regex: true, threshold: 1}\n", at: "2:16", says: "flow[0].resource: is not a valid regular expression"},
	{name: "a pattern with a look-ahead", data: "flow:\n  - {resource: 'or(?=d)', regex: true, threshold: 1}\n", at: "2:16", says: "flow[0].resource: is not a valid regular expression"},
	{name: "a pattern that is huge", data: "flow:\n  - {resource: '(a{1000}){1000}', regex: true, threshold: 1}\n", at: "2:16", says: "flow[0].resource: is not a valid regular expression"},
	{name: "a rule twice", data: two("resource: orders, threshold: 1", "resource: orders, threshold: 1"), at: "3:5", says: "flow[1]: is the same rule as flow[0] at 2:5: remove"},
	{name: "a rule twice, one with its defaults", data: two("resource: orders, threshold: 1", "resource: orders, threshold: 1, interval: 1s, mode: enforce"), at: "3:5", says: "flow[1]: is the same rule as flow[0] at 2:5: remove"},
	{name: "an ID twice", data: two("id: r, resource: orders, threshold: 1", "id: r, resource: carts, threshold: 1"), at: "3:10", says: `flow[1].id: "r" is already the id of flow[0] at 2:5`},
	{name: "a good rule and a bad one", data: two("resource: orders, threshold: 1", "resource: carts, threshold: -1"), at: "3:34", says: "flow[1].threshold: is -1: use a finite number from 0 to 1e+15"},
}
