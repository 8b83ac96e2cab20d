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
		"r.yaml:8:5: flow[2]: must be a mapping, as in `{resource: GET /orders, threshold: 100}`, not the text \"nothing\"",
		`r.yaml:9:1: flou: unknown field (did you mean "flow"?)`,
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
	assert.Equal(t, "r.yaml: there is more: these were the first 20 errors", many[20])
}

// A file must not flood the log with what it quotes.
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
	assert.EqualError(t, err, "has 1048577 bytes, the most is 1048576")
}
