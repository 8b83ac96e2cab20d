package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Text from a file must not add lines to a log.
func TestParseErrorsStayOnOneLine(t *testing.T) {
	for data, want := range map[string]string{
		`"a\n\e[31mb": []`:                       `r.yaml:1:1: a\n\x1b[31mb: unknown family: use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster`,
		`flow: [{"a\Lb": 1}]`:                    `r.yaml:1:9: flow[0].a\u2028b: unknown field`,
		`flow: [{"a\n": 1, "a\n": 2}]`:           `r.yaml:1:9: flow[0].a\n: unknown field` + "\n" + `r.yaml:1:19: flow[0].a\n: is set twice, first at 1:9`,
		`flow: !a%0Ab []`:                        `r.yaml:1:7: the tag !a\nb: tags are not supported, remove it`,
		`flow: [{resource: "(\n", regex: true}]`: `r.yaml:1:19: flow[0].resource: is not a valid regular expression: missing closing ): "(\n"`,
	} {
		_, err := Parse("r.yaml", []byte(data))
		assert.EqualError(t, err, want, "%s", data)
	}
}

// A few bytes of a regular expression can cause a lot of work, and so can many small expressions.
func TestParseBoundsPatterns(t *testing.T) {
	var many strings.Builder
	many.WriteString("flow:\n")
	for i := range 60 {
		fmt.Fprintf(&many, "- {id: r%d, resource: 'a{999}', regex: true, threshold: 1}\n", i)
	}
	for data, want := range map[string]string{
		"flow: [{resource: '" + strings.Repeat("a{1000}", 146) + "', regex: true, threshold: 1}]": "r.yaml:1:19: flow[0].resource: " +
			"the regular expression has 146146 steps when its repetitions are written out; the maximum is 10000: repeat less, or name fewer characters",
		many.String(): "r.yaml:52:23: flow[50].resource: brings the regular expressions of the file to 51000 steps, the maximum is 50000",
	} {
		_, err := Parse("r.yaml", []byte(data))
		assert.EqualError(t, err, want)
	}
}

// A rule file can't include other files: a path is just text.
func TestParseReadsOneFile(t *testing.T) {
	for data, want := range map[string]string{
		"include: ../../etc/passwd\nflow: []":     "r.yaml:1:1: include: unknown family: use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster",
		"flow: !include ../secret.yaml":           "r.yaml:1:7: the tag !include: tags are not supported, remove it",
		"flow: [{$ref: ../secret.yaml}]":          "r.yaml:1:9: flow[0].$ref: unknown field (did you mean \"ref\"?)",
		`{"$include": "/etc/passwd", "flow": []}`: "r.yaml:1:2: $include: unknown family: use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster",
		"flow: ../secret.yaml":                    "r.yaml:1:7: flow: must be a list of rules, not the string \"../secret.yaml\"",
		"flow: [file:///etc/passwd]":              "r.yaml:1:8: flow[0]: must be a mapping, as in `{resource: GET /orders, threshold: 100}`, not the string \"file:///etc/passwd\"",
	} {
		_, err := Parse("r.yaml", []byte(data))
		assert.EqualError(t, err, want, "%s", data)
	}
}
