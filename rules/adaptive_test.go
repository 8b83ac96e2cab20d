package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/rules"
)

func TestAdaptiveRulesOfAFile(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte(`adaptive:
  - {id: db, resource: "sql .*", match: regex, floor: 4, ceiling: 200, start: 16, window: 250ms, mode: shadow}
  - resource: search
`))
	require.NoError(t, err)
	want := rules.Set{Adaptive: []adaptive.Rule{
		{ID: "db", Resource: "sql .*", Match: spec.MatchRegex, Floor: 4, Ceiling: 200, Start: 16, Window: 250 * time.Millisecond, Mode: spec.Shadow},
		{Resource: "search"},
	}}
	assert.Equal(t, want, set)
	for _, write := range []func() ([]byte, error){set.YAML, set.MarshalJSON} {
		data, err := write()
		require.NoError(t, err)
		again, err := rules.Parse("", data)
		require.NoError(t, err)
		assert.Equal(t, want, again)
	}
	assert.Equal(t, 2, set.Len())
}

func TestAdaptiveRulesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{floor: 2}":                          "rules.yaml:1:12: adaptive[0].resource: is required: name the resource that the rule limits",
		"{resource: a, floor: 9, ceiling: 8}": "rules.yaml:1:45: adaptive[0].ceiling: is 8, below the floor, 9: use a ceiling above the floor",
		"{resource: a, floor: 8, ceiling: 8}": "rules.yaml:1:45: adaptive[0].ceiling: equals the floor, which leaves nothing to learn: use an isolation rule with threshold 8, or a higher ceiling",
		"{resource: a, start: 2000}":          "rules.yaml:1:33: adaptive[0].start: is 2000: use a whole number from the floor to the ceiling, 1 to 1000, or leave it out",
		"{resource: a, threshold: 5}":         "rules.yaml:1:26: adaptive[0].threshold: unknown field",
		"{resource: a, ceiling: 2.5}":         "rules.yaml:1:35: adaptive[0].ceiling: must be a whole number, not 2.5",
		"{resource: a, window: 1ms}":          "rules.yaml:1:34: adaptive[0].window: is 1ms: use a duration from 10ms to 1m0s",
	} {
		_, err := rules.Parse("rules.yaml", []byte("adaptive: ["+text+"]\n"))
		assert.ErrorContains(t, err, want, text)
	}
}
