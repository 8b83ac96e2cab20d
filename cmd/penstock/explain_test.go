package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const explained = `flow:
  - {id: orders, resource: GET /orders, threshold: 100}
  - {id: acme, resource: GET /orders, threshold: 30, origin: acme}
  - {id: get, resource: GET /*, match: prefix, threshold: 1000}
  - {id: room, resource: PUT /file, unit: bytes, threshold: 5000}
hotspot:
  - {id: users, resource: GET /orders, param: user, threshold: 2, exceptions: [{value: 7, threshold: 9}]}
system:
  - {id: cpu, metric: cpu, threshold: 0.8, strategy: gate}
`

// explain lists the rules that apply to this caller, in the order of the chain.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		args    []string
		rules   []string
		outcome string
	}{
		{[]string{"GET /orders"}, []string{"cpu passes", "users notJudged", "orders passes", "acme notJudged"}, "passes"},
		{[]string{"GET /orders", "--origin", "acme"}, []string{"cpu passes", "users notJudged", "orders passes", "acme passes"}, "passes"},
		{[]string{"GET /orders", "--arg", "user=7"}, []string{"cpu passes", "users passes", "orders passes", "acme notJudged"}, "passes"},
		{[]string{"GET /orders", "--arg", "user=7", "--units", "10"}, []string{"cpu passes", "users refused", "orders passes", "acme notJudged"}, "refused"},
		{[]string{"GET /orders", "--cpu", "90%"}, []string{"cpu refused", "users notJudged", "orders passes", "acme notJudged"}, "refused"},
		{[]string{"PUT /file"}, []string{"cpu passes", "room notJudged"}, "passes"},
		{[]string{"PUT /file", "--cost", "bytes=5000", "--cost", "rows=1"}, []string{"cpu passes", "room passes"}, "passes"},
		{[]string{"PUT /file", "--cost", "bytes=5001"}, []string{"cpu passes", "room refused"}, "refused"},
		{[]string{"GET /other", "--internal", "--cpu", "90%"}, []string{"cpu notJudged", "get passes"}, "passes"},
	} {
		r := penstock(t, explained, append([]string{"explain", "-", "--json"}, c.args...)...)
		require.Equal(t, exitOK, r.code, "%q: %s", c.args, r.err)
		var x struct {
			Outcome        string
			Rules, LeftOut []struct{ ID, Outcome, Reason string }
		}
		require.NoError(t, json.Unmarshal([]byte(r.out), &x))
		assert.Equal(t, c.outcome, x.Outcome, "%q", c.args)
		var got []string
		for _, rule := range x.Rules {
			got = append(got, rule.ID+" "+rule.Outcome)
			assert.NotEmpty(t, rule.Reason)
		}
		assert.Equal(t, c.rules, got, "%q", c.args)
		if c.args[0] == "GET /orders" {
			require.Len(t, x.LeftOut, 1)
			assert.Equal(t, "get", x.LeftOut[0].ID)
		}
	}
	gateway := "gateway:\n  - {id: client, route: search, param: clientIP, threshold: 5}\n"
	assert.Contains(t, penstock(t, gateway, "explain", "-", "search").out, `the call has no value for "gateway clientIP"`)
	assert.Contains(t, penstock(t, gateway, "explain", "-", "search", "--arg", "gateway clientIP=192.0.2.7").out, "0 of 5")
	text := penstock(t, explained, "explain", "-", "GET /orders").out
	assert.Contains(t, text, "\nflow orders: passes\n")
	assert.Contains(t, text, "\nleft out:\n  flow get: ")
	assert.Contains(t, penstock(t, "flow: []", "explain", "-", "GET /orders").out, "no rule applies")

	r := penstock(t, explained, "explain", "-", "GET /orders", "--arg", "user=1", "--arg", "user=2")
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.err, "--arg user is repeated: a call has one")
	r = penstock(t, explained, "explain", "-", "GET /orders", "--cost", "bytes=1", "--cost", "bytes=2")
	assert.Contains(t, r.err, "--cost bytes is repeated: a call has one")
	r = penstock(t, explained, "explain", "-", "GET /orders", "--cost", "bytes")
	assert.Contains(t, r.err, "use a unit and a whole number from 1, such as tokens=1200")
	r = penstock(t, "flow: 1", "explain", "-", "GET /orders")
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.err, "stdin:1:7: error: flow: must be a list of rules")
	assert.Equal(t, exitErrors, penstock(t, explained, "explain", "-", "").code, "no name")
}
