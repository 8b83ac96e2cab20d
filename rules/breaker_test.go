package rules

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

var breakers = Set{Breaker: []breaker.Rule{
	{Resource: "orders", Threshold: 0.5},
	{
		ID: "all", Resource: "*", Exclude: []string{"GET /health", "a, b", "404", "é\n"}, Strategy: breaker.SlowRatio, Threshold: 1, SlowRT: 300 * time.Millisecond,
		MinCalls: 20, Interval: 10 * time.Second, Buckets: 5, Recovery: time.Minute, Probes: 3, ProbeTimeout: 2 * time.Second, Ramp: 10 * time.Second, Mode: spec.Shadow,
	},
	{Resource: "o.*", Match: spec.MatchRegex, Strategy: breaker.ErrorCount, Threshold: 10},
}}

// Written rules read back equal, including lists.
func TestBreakersAreReadBack(t *testing.T) {
	text, err := breakers.YAML()
	require.NoError(t, err)
	assert.Equal(t, `breaker:
  - resource: orders
    threshold: 0.5
  - id: all
    resource: '*'
    exclude: [GET /health, 'a, b', "404", "é\n"]
    strategy: slowRatio
    threshold: 1
    slowRT: 300ms
    minCalls: 20
    interval: 10s
    buckets: 5
    recovery: 1m
    probes: 3
    probeTimeout: 2s
    ramp: 10s
    mode: shadow
  - resource: o.*
    match: regex
    strategy: errorCount
    threshold: 10
`, string(text))
	set, err := Parse("rules.yaml", text)
	require.NoError(t, err)
	assert.Equal(t, breakers, set)

	text, err = json.Marshal(breakers)
	require.NoError(t, err)
	set, err = Parse("rules.json", text)
	require.NoError(t, err)
	assert.Equal(t, breakers, set)
	assert.Equal(t, 3, set.Len())

	_, err = Set{Breaker: []breaker.Rule{{Resource: "*", Exclude: []string{"\xff"}}}}.YAML()
	assert.ErrorContains(t, err, "is not UTF-8")
}

// A family without rules is left out, unless there are no rules at all.
func TestEmptyFamiliesAreLeftOut(t *testing.T) {
	for want, set := range map[string]Set{
		"authority: []\n": {Breaker: []breaker.Rule{}},
		"breaker:\n  - resource: a\n    threshold: 0\n": {Breaker: []breaker.Rule{{Resource: "a"}}},
		"flow:\n  - resource: a\n    threshold: 0\n":    {Flow: []flow.Rule{{Resource: "a"}}},
	} {
		text, err := set.YAML()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

func TestBadBreakers(t *testing.T) {
	for text, want := range map[string]string{
		`breaker: [{resource: "*", threshold: 1, exclude: health}]`:           `rules.yaml:1:50: breaker[0].exclude: must be a list of strings, as in [a, b], not the string "health"`,
		`breaker: [{resource: "*", threshold: 1, exclude: [health, 1]}]`:      `rules.yaml:1:50: breaker[0].exclude: item 1 must be a string, not 1: if it is meant as a string, write "1"`,
		`breaker: [{resource: "*", threshold: 1, exclude: [[a]]}]`:            `rules.yaml:1:50: breaker[0].exclude: item 0 must be a string, not a list`,
		`breaker: [{resource: a}]`:                                            `rules.yaml:1:11: breaker[0].threshold: is required: write 0 if you mean 0`,
		`breaker: [{resource: a, threshold: 1, strategie: errorCount}]`:       `rules.yaml:1:39: breaker[0].strategie: unknown field (did you mean "strategy"?)`,
		`breaker: [{resource: a, threshold: 1}, {resource: a, threshold: 1}]`: `rules.yaml:1:40: breaker[1]: is the same rule as breaker[0] at 1:11: remove one`,
		`breakers: []`: `rules.yaml:1:1: breakers: unknown family (did you mean "breaker"?): use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster`,
	} {
		_, err := Parse("rules.yaml", []byte(text))
		require.Error(t, err, text)
		assert.Equal(t, want, err.Error())
	}
}

func TestDiffOfBreakers(t *testing.T) {
	after := Set{Breaker: []breaker.Rule{
		{Resource: "orders", Threshold: 0.6, MinCalls: 5},
		{ID: "all", Resource: "*", Exclude: []string{"GET /health"}, Threshold: 1},
	}}
	before := Set{Breaker: []breaker.Rule{{Resource: "orders", Threshold: 0.5}, {ID: "all", Resource: "*", Threshold: 1}}}
	assert.Equal(t, []string{
		"~ breaker breaker:orders: threshold 0.5 -> 0.6",
		`~ breaker all: exclude [] -> "[\"GET /health\"]"`,
	}, Diff(before, after).Lines())
	assert.True(t, Diff(breakers, breakers).Empty())
}
