package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

func TestIsolationRulesOfAFile(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte(`isolation:
  - {id: pdf, resource: "render .*", match: regex, threshold: 8, maxQueue: 100, maxWait: 250ms, mode: shadow}
  - {resource: sql, threshold: 0}
`))
	require.NoError(t, err)
	want := rules.Set{Isolation: []isolation.Rule{
		{ID: "pdf", Resource: "render .*", Match: spec.MatchRegex, Threshold: 8, MaxQueue: 100, MaxWait: 250 * time.Millisecond, Mode: spec.Shadow},
		{Resource: "sql"},
	}}
	assert.Equal(t, want, set)
	for _, write := range []func() ([]byte, error){set.YAML, set.MarshalJSON} {
		data, err := write()
		require.NoError(t, err)
		assert.NotContains(t, string(data), "flow", "families without rules are left out")
		again, err := rules.Parse("", data)
		require.NoError(t, err)
		assert.Equal(t, want, again)
	}
	assert.Equal(t, 2, set.Len())
}

func TestIsolationRulesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{resource: a}":                                         "rules.yaml:1:13: isolation[0].threshold: is required: write 0 if you mean 0",
		"{resource: a, threshold: 1.5}":                         "rules.yaml:1:38: isolation[0].threshold: must be a whole number, not 1.5",
		"{resource: a, threshold: 1, maxQueue: 5}":              "rules.yaml:1:13: isolation[0].maxWait: is required by maxQueue: set the longest time in the queue",
		"{resource: a, threshold: 1, maxWait: 5s}":              "rules.yaml:1:13: isolation[0].maxQueue: is required by maxWait: set the number of calls that may wait",
		"{resource: a, threshold: 0, maxQueue: 1, maxWait: 5s}": "rules.yaml:1:51: isolation[0].maxQueue: does not go with threshold 0, under which no call ever runs: remove maxQueue and maxWait",
	} {
		_, err := rules.Parse("rules.yaml", []byte("isolation: ["+text+"]\n"))
		assert.EqualError(t, err, want, text)
	}
}
