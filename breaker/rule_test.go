package breaker_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func TestDefaults(t *testing.T) {
	r, err := breaker.Rule{Resource: "orders", Threshold: 0.5}.Normalized()
	require.NoError(t, err)
	assert.Equal(t, breaker.Rule{
		ID: "breaker:orders", Resource: "orders", Threshold: 0.5, MinCalls: 5,
		Interval: 10 * time.Second, Buckets: 10, Recovery: 5 * time.Second, Probes: 1, ProbeTimeout: 5 * time.Second,
	}, r)
	again, err := r.Normalized()
	require.NoError(t, err)
	assert.Equal(t, r, again)
}

// An invalid rule is refused with the field and what to do, and so is one that could never act.
// known bug 36
func TestRefusedRules(t *testing.T) {
	for want, r := range map[string]breaker.Rule{
		`resource: is required: name the resource, or use "*" for all`:                                                                          {},
		`match: is regex, but resource "*" stands for every resource without a rule of its own: remove it`:                                      {Resource: "*", Match: spec.MatchRegex},
		`exclude: only goes with resource "*", a prefix or a path: remove it`:                                                                   {Resource: "orders", Exclude: []string{"a"}},
		`exclude: lists an empty name: remove it`:                                                                                               {Resource: "*", Exclude: []string{""}},
		"resource: is not a valid regular expression: missing closing ): \"(\"":                                                                 {Resource: "(", Match: spec.MatchRegex},
		"strategy: 9 is unknown: use breaker.ErrorRatio, breaker.ErrorCount, breaker.SlowRatio or breaker.ConsecutiveErrors":                    {Resource: "a", Strategy: 9},
		"mode: 9 is unknown: use api.Enforce, api.Shadow or api.Off":                                                                            {Resource: "a", Mode: 9},
		"slowRT: is required by strategy slowRatio: set the duration above which a call is slow":                                                {Resource: "a", Strategy: breaker.SlowRatio},
		"slowRT: has no meaning for strategy errorCount: remove it, or set strategy to slowRatio":                                               {Resource: "a", Strategy: breaker.ErrorCount, SlowRT: 1},
		"slowRT: is -1ns: use a duration from 1ns to 24h0m0s":                                                                                   {Resource: "a", Strategy: breaker.SlowRatio, SlowRT: -1},
		"threshold: is 1.5: use a share of the calls, from 0 to 1":                                                                              {Resource: "a", Threshold: 1.5},
		"threshold: is NaN: use a share of the calls, from 0 to 1":                                                                              {Resource: "a", Threshold: math.NaN()},
		"threshold: is -1: use a number of calls, from 0 to 1e+09":                                                                              {Resource: "a", Threshold: -1, Strategy: breaker.ErrorCount},
		"threshold: is +Inf: use a number of calls, from 0 to 1e+09":                                                                            {Resource: "a", Threshold: math.Inf(1), Strategy: breaker.ErrorCount},
		"minCalls: is -1: use a whole number from 1 to 1000000000":                                                                              {Resource: "a", MinCalls: -1},
		"probes: is 1001: use a whole number from 1 to 1000":                                                                                    {Resource: "a", Probes: 1001},
		"interval: is 1ms: use a duration from 10ms to 24h0m0s":                                                                                 {Resource: "a", Interval: ms},
		"buckets: 3 buckets don't divide an interval of 1s: each would last 333.333333ms and a fraction of a nanosecond":                        {Resource: "a", Interval: time.Second, Buckets: 3},
		"recovery: is 1ns: use a duration from 1ms to 24h0m0s":                                                                                  {Resource: "a", Recovery: 1},
		"probeTimeout: is 25h0m0s: use a duration from 1ms to 24h0m0s":                                                                          {Resource: "a", ProbeTimeout: 25 * time.Hour},
		"minCalls: has no meaning for strategy consecutiveErrors, which counts until a call succeeds: remove it, or set strategy to errorCount": {Resource: "a", Strategy: breaker.ConsecutiveErrors, MinCalls: 5},
		"interval: has no meaning for strategy consecutiveErrors, which counts until a call succeeds: remove it, or set strategy to errorCount": {Resource: "a", Strategy: breaker.ConsecutiveErrors, Interval: time.Second},
		"buckets: has no meaning for strategy consecutiveErrors, which counts until a call succeeds: remove it, or set strategy to errorCount":  {Resource: "a", Strategy: breaker.ConsecutiveErrors, Buckets: 1},
		"threshold: is 1e+10: use a number of calls, from 0 to 1e+09":                                                                           {Resource: "a", Strategy: breaker.ConsecutiveErrors, Threshold: 1e10},
		"ramp: is -1s: use a duration from 1ms to 24h0m0s":                                                                                      {Resource: "a", Ramp: -time.Second},
	} {
		_, err := r.Normalized()
		require.Error(t, err, want)
		assert.Equal(t, want, err.Error())
		assert.ErrorAs(t, err, new(*spec.FieldError))
	}
}

// Consecutive failures have no interval, and none is filled in.
func TestDefaultsOfARow(t *testing.T) {
	r, err := breaker.Rule{Resource: "orders", Strategy: breaker.ConsecutiveErrors, Threshold: 5}.Normalized()
	require.NoError(t, err)
	assert.Equal(t, breaker.Rule{
		ID: "breaker:orders:consecutiveErrors", Resource: "orders", Strategy: breaker.ConsecutiveErrors, Threshold: 5,
		Recovery: 5 * time.Second, Probes: 1, ProbeTimeout: 5 * time.Second,
	}, r)
	again, err := r.Normalized()
	require.NoError(t, err)
	assert.Equal(t, r, again)
}

// Two rules that differ in any field are not equal.
// known bug 71
func TestEveryFieldCounts(t *testing.T) {
	trial.EveryFieldCounts(t, breaker.Rule{Resource: "*", Exclude: []string{"x"}}, []string{"y"}, spec.Response{Status: 503})
}

func TestNames(t *testing.T) {
	for _, s := range []breaker.Strategy{breaker.ErrorRatio, breaker.ErrorCount, breaker.SlowRatio, breaker.ConsecutiveErrors} {
		text, err := s.MarshalText()
		require.NoError(t, err)
		var back breaker.Strategy
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, s, back)
	}
	for s := breaker.Closed; s <= breaker.ForcedClosed; s++ {
		text, err := s.MarshalText()
		require.NoError(t, err)
		var back breaker.State
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, s, back)
	}
	_, err := breaker.Strategy(7).MarshalText()
	assert.Error(t, err)
	assert.Equal(t, "forceOpen", breaker.ForceOpen.String())
}
