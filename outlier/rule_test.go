package outlier_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/outlier"
)

func TestDefaults(t *testing.T) {
	r, err := outlier.Rule{Resource: "orders", Threshold: 0.5}.Normalized()
	require.NoError(t, err)
	assert.Equal(t, outlier.Rule{
		ID: "outlier:orders", Resource: "orders", MaxEjected: 0.5, MaxEndpoints: 1000, ForgetAfter: time.Minute,
		Threshold: 0.5, MinCalls: 5, Interval: 10 * time.Second, Buckets: 10, Recovery: 5 * time.Second, Probes: 1, ProbeTimeout: 5 * time.Second,
	}, r)
	again, err := r.Normalized()
	require.NoError(t, err)
	assert.Equal(t, r, again)

	r, err = outlier.Rule{Resource: "orders", Strategy: breaker.SlowRatio, SlowRT: time.Second, Recovery: time.Hour}.Normalized()
	require.NoError(t, err)
	assert.Equal(t, "outlier:orders:slowRatio", r.ID)
	assert.Equal(t, time.Hour, r.ForgetAfter)
	assert.Equal(t, time.Hour, r.ProbeTimeout)
}

// A rule that could never act is an error, and so is one that would use up the memory.
func TestBadRules(t *testing.T) {
	for want, change := range map[string]func(*outlier.Rule){
		`resource: is required: name the resource that the endpoints serve`:                                                   func(r *outlier.Rule) { r.Resource = "" },
		`match: is path, but resource "*" stands for every resource without a rule of its own: remove it`:                     func(r *outlier.Rule) { r.Resource, r.Match = "*", spec.MatchPath },
		`threshold: is 1.5: use a share of the calls, from 0 to 1`:                                                            func(r *outlier.Rule) { r.Threshold = 1.5 },
		`slowRT: is required by strategy slowRatio: set the duration above which a call is slow`:                              func(r *outlier.Rule) { r.Strategy = breaker.SlowRatio },
		`mode: 7 is unknown: use api.Enforce, api.Shadow or api.Off`:                                                          func(r *outlier.Rule) { r.Mode = 7 },
		`maxEjected: is 1.1: use a share of the endpoints above 0, up to 1`:                                                   func(r *outlier.Rule) { r.MaxEjected = 1.1 },
		`maxEjected: is -0.1: use a share of the endpoints above 0, up to 1`:                                                  func(r *outlier.Rule) { r.MaxEjected = -0.1 },
		`maxEjected: is 0.0009, which is less than one endpoint out of 1000, so the rule would never act: use at least 0.001`: func(r *outlier.Rule) { r.MaxEjected = 0.0009 },
		`maxEndpoints: is 1: use a whole number from 2 to 10000`:                                                              func(r *outlier.Rule) { r.MaxEndpoints = 1 },
		`maxEndpoints: is 10001: use a whole number from 2 to 10000`:                                                          func(r *outlier.Rule) { r.MaxEndpoints = 10001 },
		`maxEndpoints: is 1000: with 500 buckets and 1000 probes each, at most 666 endpoints can be tracked`:                  func(r *outlier.Rule) { r.Buckets, r.Probes = 500, 1000 },
		`forgetAfter: is 1s: use a duration from 10s to 24h0m0s`:                                                              func(r *outlier.Rule) { r.Interval, r.ForgetAfter = 10*time.Second, time.Second },
		`forgetAfter: is 24h0m0.000000001s: use a duration from 1s to 24h0m0s`:                                                func(r *outlier.Rule) { r.ForgetAfter = 24*time.Hour + 1 },
	} {
		r := outlier.Rule{Resource: "orders", Threshold: 0.5, Interval: time.Second}
		change(&r)
		_, err := r.Normalized()
		assert.EqualError(t, err, want)
		g := newGuard(t)
		assert.EqualError(t, g.tryLoad([]outlier.Rule{r}), "outlier[0]."+want)
	}
	exact := outlier.Rule{Resource: "orders", MaxEjected: 0.001}
	_, err := exact.Normalized()
	assert.NoError(t, err)
}

func TestTwins(t *testing.T) {
	g := newGuard(t)
	assert.ErrorContains(t, g.tryLoad([]outlier.Rule{{Resource: "a"}, {Resource: "a"}}), "are the same: remove one")
	assert.ErrorContains(t, g.tryLoad([]outlier.Rule{{ID: "x", Resource: "a"}, {ID: "x", Resource: "b"}}), `same id "x"`)
}

// Every field matters when rules are compared.
// known bug 71
func TestEveryFieldCounts(t *testing.T) { trial.EveryFieldCounts(t, outlier.Rule{Resource: "orders"}) }
