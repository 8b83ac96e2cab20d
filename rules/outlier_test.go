package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
)

func TestOutlierRulesOfAFile(t *testing.T) {
	text := `outlier:
  - resource: payments
    threshold: 0.5
  - id: slow
    resource: pay.*
    match: regex
    maxEjected: 0.25
    maxEndpoints: 20
    forgetAfter: 10m
    strategy: slowRatio
    threshold: 0.8
    slowRT: 300ms
    minCalls: 20
    interval: 10s
    buckets: 5
    recovery: 1m
    probes: 3
    probeTimeout: 2s
    mode: shadow
`
	set, err := rules.Parse("rules.yaml", []byte(text))
	require.NoError(t, err)
	want := rules.Set{Outlier: []outlier.Rule{
		{Resource: "payments", Threshold: 0.5},
		{
			ID: "slow", Resource: "pay.*", Match: spec.MatchRegex, MaxEjected: 0.25, MaxEndpoints: 20, ForgetAfter: 10 * time.Minute,
			Strategy: breaker.SlowRatio, Threshold: 0.8, SlowRT: 300 * time.Millisecond, MinCalls: 20, Interval: 10 * time.Second, Buckets: 5,
			Recovery: time.Minute, Probes: 3, ProbeTimeout: 2 * time.Second, Mode: spec.Shadow,
		},
	}}
	assert.Equal(t, want, set)
	written, err := set.YAML()
	require.NoError(t, err)
	assert.Equal(t, text, string(written))
	written, err = set.MarshalJSON()
	require.NoError(t, err)
	again, err := rules.Parse("rules.json", written)
	require.NoError(t, err)
	assert.Equal(t, want, again)
	assert.Equal(t, 2, set.Len())
}

func TestOutlierRulesRefused(t *testing.T) {
	for text, want := range map[string]string{
		`outlier: [{resource: a}]`:                                                 `rules.yaml:1:11: outlier[0].threshold: is required: write 0 if you mean 0`,
		`outlier: [{resource: a, threshold: 1, maxEjected: 50}]`:                   `rules.yaml:1:51: outlier[0].maxEjected: is 50: use a share of the endpoints above 0, up to 1`,
		`outlier: [{resource: a, threshold: 1, maxEjected: 0.1, maxEndpoints: 5}]`: `rules.yaml:1:51: outlier[0].maxEjected: is 0.1, which is less than one endpoint out of 5, so the rule would never act: use at least 0.2`,
		`outlier: [{resource: a, threshold: 1, ramp: 1s}]`:                         `rules.yaml:1:39: outlier[0].ramp: unknown field`,
		`outlier: [{resource: a, threshold: 1}, {resource: a, threshold: 1}]`:      `rules.yaml:1:40: outlier[1]: is the same rule as outlier[0] at 1:11: remove one`,
		`outliers: []`: `rules.yaml:1:1: outliers: unknown family (did you mean "outlier"?): use authority, system, hotspot, flow, isolation, adaptive, breaker, upstream, outlier, groups, gateway or cluster`,
	} {
		_, err := rules.Parse("rules.yaml", []byte(text))
		assert.EqualError(t, err, want, text)
	}
}

func TestDiffOfOutlierRules(t *testing.T) {
	before := rules.Set{Outlier: []outlier.Rule{{Resource: "payments", Threshold: 0.5}}}
	after := rules.Set{Outlier: []outlier.Rule{{Resource: "payments", Threshold: 0.5, MaxEjected: 0.1}}}
	assert.Equal(t, []string{"~ outlier outlier:payments: maxEjected 0.5 -> 0.1"}, rules.Diff(before, after).Lines())
}
