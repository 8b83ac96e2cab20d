package rules

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseTellsAllErrors(t *testing.T) {
	_, err := Parse("r.yaml", []byte(`
flow:
  - resource: a
    treshold: 1
    interval: 5
  - resource: b
    threshold: -1
  - nothing
flou: []
`))
	assert.EqualError(t, err, strings.Join([]string{
		`r.yaml:4:5: flow[0].treshold: unknown field (did you mean "threshold"?)`,
		"r.yaml:5:15: flow[0].interval: must be a duration with its unit, as in 5ms or 5s",
		"r.yaml:7:16: flow[1].threshold: is -1: use a finite number from 0 to 1e+15",
		"r.yaml:8:5: flow[2]: must be a mapping, as in `{resource: GET /orders, threshold: 100}`, not the string \"nothing\"",
		`r.yaml:9:1: flou: unknown family (did you mean "flow"?): use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster`,
	}, "\n"))

	first, ok := errors.AsType[*FileError](err)
	require.True(t, ok)
	assert.Equal(t, &FileError{"r.yaml", 4, 5, "flow[0].treshold", `unknown field (did you mean "threshold"?)`}, first)
}

func TestParseTellsSoManyErrors(t *testing.T) {
	lines := func(faults int) []string {
		_, err := Parse("r.yaml", []byte("flow: ["+strings.Repeat("x,", faults)+"]"))
		return strings.Split(err.Error(), "\n")
	}
	assert.Len(t, lines(20), 20)
	many := lines(21)
	assert.Len(t, many, 21)
	assert.Contains(t, many[19], "flow[19]")
	assert.Equal(t, "r.yaml: there are more: these are the first 20 errors", many[20])
}

// Quotes from a file must not flood the log.
func TestParseTellsShortErrors(t *testing.T) {
	long := strings.Repeat("ä\\n", 100_000)
	for _, data := range []string{
		`"` + long + `"`,
		`"` + long + `": []`,
		`flow: [{"` + long + `": a}]`,
		`flow: [{resource: a, threshold: "` + long + `"}]`,
		`flow: [{resource: a, mode: "` + long + `"}]`,
		`flow: [{resource: a, regex: true, resource: "` + long + `"}]`,
		`flow: [{resource: a, threshold: 1, id: "` + long + `"}, {resource: b, threshold: 1, id: "` + long + `"}]`,
		`flow: *` + strings.Repeat("x", 100_000),
		`flow: !` + strings.Repeat("x", 100_000) + " a",
	} {
		_, err := Parse("r.yaml", []byte(data))
		require.Error(t, err)
		assert.Less(t, len(err.Error()), 1000, "%.30s", data)
		assert.NotContains(t, err.Error(), "\n", "%.30s", data)
	}
}

func TestFileErrorWithoutName(t *testing.T) {
	_, err := Parse("", []byte("flow: 1"))
	assert.EqualError(t, err, "1:7: flow: must be a list of rules, not 1")
	_, err = Parse("", make([]byte, MaxFileSize+1))
	assert.EqualError(t, err, "has 1048577 bytes, the maximum is 1048576")
}

// Columns count characters, and a tab is one, wherever it is. YAML's error about a tab is reported at
// its position.
// known bug 135
func TestPlacesBesideTabs(t *testing.T) {
	for data, want := range map[string]string{
		"flow: [\n\t{resource: a,\n\ttreshold: 1}\n]":                            `3:2: flow[0].treshold: unknown field`,
		"flow:\n  - resource:\ta\n    threshold:\t\tx":                           `3:17: flow[0].threshold: must be a number`,
		"flow: [{resource: '😀\té',\tthreshold: x}]":                              `1:37: flow[0].threshold: must be a number`,
		"flow: [{resource: a, # é\n\t\tthreshold: x}]":                           `2:14: flow[0].threshold: must be a number`,
		"flow: [{resource: \"a\tb\",\n threshold: x}]":                           `2:13: flow[0].threshold: must be a number`,
		"{\n\t\"flow\": [\n\t\t{\"resource\": \"é\",\t\"threshold\": \"x\"}]}":   `3:34: flow[0].threshold: must be a number`,
		"flow:\n  - resource: |\n      a\tb\n    threshold: x":                   `4:16: flow[0].threshold: must be a number`,
		"flow:\n  - resource: a\n\tthreshold: 1":                                 `3:1: is not YAML: a tab`,
		"flow:\n  - resource: a\n    \t\tthreshold: 1":                           `3:5: is not YAML: a tab`,
		"flow:\n  - resource: é\n\t  threshold: 1":                               `3:1: is not YAML: a tab`,
		"flow:\n  - resource: a\n    threshold: 1\n\t# why\n":                    `4:1: is not YAML: a tab`,
		"flow:\n  - resource: a\n    threshold: 1\n\t":                           `4:1: is not YAML: a tab`,
		"flow:\r\n\t- resource: a":                                               `2:1: is not YAML: a tab`,
		"flow:\n  -\tresource: a":                                                `2:4: is not YAML: a tab`,
		"flow: # é\n  -\t{resource: a, threshold: 1}":                            `2:4: is not YAML: a tab`,
		"flow:\n- resource: |\n\ta":                                              `3:1: is not YAML: a tab`,
		"\tflow: []":                                                             `1:1: is not YAML: a tab`,
		"flow: [{resource: a,\n\tthreshold: @1}]":                                `2:2: is not YAML: found character that cannot start any token`,
		"flow: [{resource: a, threshold:\t@1}]":                                  `1:1: is not YAML: found character that cannot start any token`,
		"flow:\n  - resource: a\n    threshold:\t\t`1":                           `3:5: is not YAML: found character that cannot start any token`,
		"flow: [{resource: a, threshold: 1}]\n\t\nisolation: [{resource: a, x}]": `2:1: is not YAML: a tab`,
	} {
		_, err := Parse("", []byte(data))
		if assert.Error(t, err, "%q", data) {
			assert.Truef(t, strings.HasPrefix(err.Error(), want), "%q: %v, not at %s", data, err, want)
		}
	}
}
