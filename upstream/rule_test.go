package upstream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func TestRuleDefaults(t *testing.T) {
	r, err := Rule{Resource: get, Obey: true, Retries: Retries{Least: 1}, Throttle: Throttle{K: 3}}.Normalized()
	require.NoError(t, err)
	assert.Equal(t, Rule{
		ID: "upstream:" + get, Resource: get, Obey: true, MaxPause: 5 * time.Minute,
		Retries: Retries{Share: 0.2, Least: 1}, Throttle: Throttle{K: 3, Interval: 2 * time.Minute},
	}, r)
}

func TestInvalidRules(t *testing.T) {
	for field, r := range map[string]Rule{
		"resource":          {Obey: true},
		"obey":              {Resource: get},
		"scope":             {Resource: get, Retries: Retries{Least: 1}, Scope: PerHost},
		"maxPause":          {Resource: get, Obey: true, MaxPause: ms},
		"retries.share":     {Resource: get, Retries: Retries{Share: 1.5}},
		"retries.least":     {Resource: get, Retries: Retries{Least: -1}},
		"throttle.k":        {Resource: get, Throttle: Throttle{K: 0.5}},
		"throttle.interval": {Resource: get, Throttle: Throttle{Interval: ms}},
		"match":             {Resource: get, Obey: true, Match: 99},
		"mode":              {Resource: get, Obey: true, Mode: 99},
	} {
		_, err := r.Normalized()
		var bad *spec.FieldError
		require.ErrorAs(t, err, &bad, field)
		assert.Equal(t, field, bad.Field)
	}
	_, err := Rule{Resource: get, Throttle: Throttle{K: 2}, MaxPause: time.Minute}.Normalized()
	assert.ErrorContains(t, err, "maxPause: has no meaning without obey: set obey to true, or remove maxPause")
	_, err = Rule{Resource: get, Throttle: Throttle{Interval: time.Second + 1}}.Normalized()
	assert.ErrorContains(t, err, "multiple of 20 ns")
}

func TestEveryFieldCounts(t *testing.T) {
	trial.EveryFieldCounts(t, Rule{Resource: get, Obey: true}, Retries{Least: 7}, Throttle{K: 7})
	trial.IDs(t, core.KindUpstream, Rule.Normalized, Rule{Resource: "orders", Obey: true}, Rule{Resource: "orders", Obey: true, MaxPause: time.Minute})
}

func TestHosts(t *testing.T) {
	for name, host := range map[string]string{
		"GET api.example.com": "api.example.com", "api.example.com": "api.example.com", "POST api.example.com:8080": "api.example.com:8080",
		"GET api.example.com/users/{id}": "api.example.com", "/shop.Orders/Get": "/shop.Orders", "GET /users/{id}": "/users",
		"": "", " ": "", "/": "/", "GET ": "", "//": "//",
	} {
		assert.Equal(t, host, PerHost.of(name), name)
		assert.Equal(t, name, PerResource.of(name))
	}
}
