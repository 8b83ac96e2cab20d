package rules_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/rules"
)

const hotspotFile = `hotspot:
  - resource: GET /orders
    param: user
    threshold: 10
  - id: all
    resource: GET /.*
    match: regex
    index: -1
    threshold: 2.5
    interval: 1m
    strict: false
    burst: 5
    exceptions:
      - value: vip
        threshold: 100
      - value: "42"
        threshold: 0
      - value: 42
        threshold: 1
      - value: 1.5
        threshold: 2
      - value: 7.0
        threshold: 2
      - value: true
        threshold: 3
      - value: 18446744073709551615
        threshold: 3
    maxValues: 500
    mode: shadow
  - resource: send
    index: 0
    threshold: 3
    metric: concurrency
  - resource: send
    index: 0
    threshold: 3
    behavior: throttle
    maxWait: 1s
  - resource: bursts
    index: 0
    threshold: 2.5
    burst: 20
    behavior: tokenBucket
  - id: combined
    resource: GET /*
    match: prefix
    keys: [param tenant, origin, resource, arg -1]
    threshold: 5
    plans: {free: 0.5, pro: 100}
    limitsFromCode: true
    notify: [80%]
    lockout:
      after: 3
      for: 10m
    exceptions:
      - values: [acme, mobile-app, '*', 7]
        threshold: 100
      - values: ['*', "", GET /orders, true]
        threshold: 0
`

func hotspotSet() rules.Set {
	return rules.Set{Hotspot: []hotspot.Rule{
		{Resource: "GET /orders", Param: "user", Threshold: 10},
		{
			ID: "all", Resource: "GET /.*", Match: spec.MatchRegex, Index: hotspot.At(-1), Threshold: 2.5, Interval: time.Minute, Window: hotspot.Refill, Burst: 5,
			Exceptions: []hotspot.Exception{
				{Value: argument.Of("vip"), Threshold: 100},
				{Value: argument.Of("42"), Threshold: 0},
				{Value: argument.Of(42), Threshold: 1},
				{Value: argument.Of(1.5), Threshold: 2},
				{Value: argument.Of(7.0), Threshold: 2},
				{Value: argument.Of(true), Threshold: 3},
				{Value: argument.Of(uint64(1<<64 - 1)), Threshold: 3},
			},
			MaxValues: 500, Mode: spec.Shadow,
		},
		{Resource: "send", Index: hotspot.At(0), Threshold: 3, Metric: hotspot.Concurrency},
		{Resource: "send", Index: hotspot.At(0), Threshold: 3, Behavior: hotspot.Throttle, MaxWait: time.Second},
		{Resource: "bursts", Index: hotspot.At(0), Threshold: 2.5, Behavior: hotspot.TokenBucket, Burst: 20},
		{
			ID: "combined", Resource: "GET /*", Match: spec.MatchPrefix, Keys: []string{"param tenant", "origin", "resource", "arg -1"}, Threshold: 5,
			Plans: map[string]float64{"free": 0.5, "pro": 100}, LimitsFromCode: true, Notify: []string{"80%"}, Lockout: hotspot.Lockout{After: 3, For: 10 * time.Minute},
			Exceptions: []hotspot.Exception{
				{Values: []argument.Value{argument.Of("acme"), argument.Of("mobile-app"), argument.Of("*"), argument.Of(7)}, Threshold: 100},
				{Values: []argument.Value{argument.Of("*"), argument.Of(""), argument.Of("GET /orders"), argument.Of(true)}},
			},
		},
	}}
}

func TestHotspotRulesAreReadAndWritten(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte(hotspotFile))
	require.NoError(t, err)
	assert.Equal(t, hotspotSet(), set)
	text, err := set.YAML()
	require.NoError(t, err)
	assert.Equal(t, hotspotFile, string(text))
	data, err := json.Marshal(set)
	require.NoError(t, err)
	again, err := rules.Parse("rules.json", data)
	require.NoError(t, err)
	assert.Equal(t, set, again)
}

func TestHotspotRulesAreRefused(t *testing.T) {
	for _, tt := range []struct{ rule, want string }{
		{"{resource: a, threshold: 1}", "1:13: hotspot[0].index: or param or keys is required: set index to the position of an argument, 0 for the first, param to the name of an attachment, or keys to several of them"},
		{"{resource: a, threshold: 1, keys: [param a], param: p}", "1:47: hotspot[0].keys: does not go with index or param: name the argument there as well, as in \"arg 0\" or \"param tenant\", and remove the other field"},
		{"{resource: a, threshold: 1, keys: [param a, origin], index: 0}", "1:47: hotspot[0].keys: does not go with index or param: name the argument there as well, as in \"arg 0\" or \"param tenant\", and remove the other field"},
		{"{resource: a, threshold: 1, keys: []}", "1:13: hotspot[0].index: or param or keys is required: set index to the position of an argument, 0 for the first, param to the name of an attachment, or keys to several of them"},
		{"{resource: a, threshold: 1, param: a, plans: {pro: -1}}", "1:58: hotspot[0].plans: is -1: use a finite number from 0 to 1e+15"},
		{"{resource: a, threshold: 1, param: a, plans: {'': 1}}", "1:58: hotspot[0].plans: names \"\": use 1 to 64 bytes"},
		{"{resource: a, threshold: 1, param: a, plans: {pro: x}}", "1:58: hotspot[0].plans: \"pro\" must be a number like 100 or 0.5, not the string \"x\""},
		{"{resource: a, threshold: 1, param: a, plans: [pro]}", "1:58: hotspot[0].plans: must be a mapping of numbers, as in {free: 10, pro: 100}, not a list"},
		{"{resource: a, threshold: 1, param: a, limitsFromCode: true}", "1:13: hotspot[0].id: is required by limitsFromCode: api.Config.Limits knows the rule by it"},
		{"{resource: a, threshold: 1, param: a, notify: [80]}", "1:59: hotspot[0].notify: item 0 must be a string, not 80: if it is meant as a string, write \"80\""},
		{"{resource: a, threshold: 1, param: a, notify: [80 %]}", "1:59: hotspot[0].notify: has \"80 %\": use a whole percentage of the limit from \"1%\" to \"100%\""},
		{"{resource: a, threshold: 1, param: a, notify: [80%, 80%]}", "1:59: hotspot[0].notify: has \"80%\" twice: remove one"},
		{"{resource: a, threshold: 1, param: a, notify: [1%, 2%, 3%, 4%, 5%]}", "1:59: hotspot[0].notify: has 5 shares: use at most 4"},
		{"{resource: a, threshold: 1, param: a, notify: [80%], metric: concurrency}", "1:59: hotspot[0].notify: has no meaning for metric concurrency: remove it, or set metric to qps"},
		{"{resource: a, threshold: 1, param: a, lockout: {after: 3}}", "hotspot[0].lockout: has no for: add how long a value is refused, from 10ms to 24h0m0s"},
		{"{resource: a, threshold: 1, param: a, lockout: {after: 101, for: 1m}}", "hotspot[0].lockout: has after: 101: use a number of intervals from 1 to 100"},
		{"{resource: a, threshold: 1, param: a, lockout: {after: 3, for: 1m}, metric: concurrency}", "hotspot[0].lockout: has no meaning for metric concurrency: remove it, or set metric to qps"},
		{"{resource: a, threshold: 1, keys: [tenant]}", "1:47: hotspot[0].keys: has \"tenant\": use \"param\" and the name of an attachment, as in \"param tenant\", \"arg\" and the position of an argument, as in \"arg 0\", \"origin\" or \"resource\""},
		{"{resource: a, threshold: 1, keys: [param a, param a]}", "1:47: hotspot[0].keys: has \"param a\" twice: remove one"},
		{"{resource: a, threshold: 1, keys: [param a, arg 1001]}", "1:47: hotspot[0].keys: has \"arg 1001\": use arg 0 for the first argument, arg -1 for the last, at most arg 1000"},
		{"{resource: a, threshold: 1, keys: [resource]}", "1:47: hotspot[0].keys: has only the resource, which has its own limits in any case: add another part, or use a flow rule"},
		{"{resource: a, threshold: 1, keys: [param a, param b, param c, param d, origin]}", "1:47: hotspot[0].keys: has 5 parts: a key can have at most 4"},
		{"{resource: a, threshold: 1, keys: [param a, 7]}", "1:47: hotspot[0].keys: item 1 must be a string, not 7: if it is meant as a string, write \"7\""},
		{"{resource: a, threshold: 1, keys: [param a, origin], exceptions: [{value: x, threshold: 1}]}", "1:78: hotspot[0].exceptions: entry 0 has a value, but the rule's keys have 2 parts: use values, with one for each part"},
		{"{resource: a, threshold: 1, keys: [param a, origin], exceptions: [{values: [x], threshold: 1}]}", "1:78: hotspot[0].exceptions: entry 0 has 1 values, but the rule's keys have 2 parts: give one for each, \"*\" for any value"},
		{"{resource: a, threshold: 1, keys: [param a, origin], exceptions: [{values: ['*', '*'], threshold: 1}]}", "1:78: hotspot[0].exceptions: entry 0 is about all keys: set the rule's threshold instead"},
		{"{resource: a, threshold: 1, keys: [param a, origin], exceptions: [{values: [x, y], threshold: 1}, {values: [x, y], threshold: 2}]}", "1:78: hotspot[0].exceptions: \"x\", \"y\" appears twice, in entries 0 and 1: remove one"},
		{"{resource: a, threshold: 1, keys: [param a, origin], missing: refuse, exceptions: [{values: [x, ''], threshold: 1}]}", `1:95: hotspot[0].exceptions: has "", but missing already makes such calls refused: remove one of the two`},
		{"{resource: a, threshold: 1, keys: [param a, origin], exceptions: [{values: [x, null], threshold: 1}]}", "1:88: hotspot[0].exceptions[0].values: item 1 must be a string, a number, true or false, not nothing"},
		{"{resource: a, threshold: 1, param: a, exceptions: [{values: [x], threshold: 1}]}", "1:63: hotspot[0].exceptions: entry 0 has values, but the rule's values have one part: use value"},
		{"{resource: a, threshold: 1, index: 0, param: p}", "1:58: hotspot[0].param: does not go with index: a rule limits one argument or one attachment; remove one of the two"},
		{"{resource: a, threshold: 1, index: 0.5}", "1:48: hotspot[0].index: must be a whole number like 0 (the first argument) or -1 (the last), at most 1000"},
		{"{resource: a, threshold: 1, index: first}", "1:48: hotspot[0].index: must be a whole number like 0 (the first argument) or -1 (the last), at most 1000"},
		{"{resource: a, threshold: 1, index: 1001}", "1:48: hotspot[0].index: must be a whole number like 0 (the first argument) or -1 (the last), at most 1000"},
		{"{resource: a, index: 0}", "1:13: hotspot[0].threshold: is required: write 0 if you mean 0"},
		{"{resource: a, index: 0, threshold: -1}", "1:48: hotspot[0].threshold: is -1: use a finite number from 0 to 1e+15"},
		{"{resource: a, index: 0, threshold: 1, burst: -1}", "1:58: hotspot[0].burst: is -1: use a number from 0 to 1000000000"},
		{"{resource: a, index: 0, threshold: 1, burst: 1}", "1:58: hotspot[0].burst: has no meaning for a strict window, which admits the threshold in every interval: remove it, set behavior to tokenBucket, or strict to false for Sentinel's bucket"},
		{"{resource: a, index: 0, threshold: 1, burst: 1000000001, behavior: throttle}", "1:58: hotspot[0].burst: is 1000000001: use a number from 0 to 1000000000"},
		{"{resource: a, index: 0, threshold: 1, burst: 1, metric: concurrency}", "1:58: hotspot[0].burst: has no meaning for metric concurrency: remove it, or set metric to qps"},
		{"{resource: a, index: 0, threshold: 1, behavior: tokenBucket, maxWait: 1s}", "1:83: hotspot[0].maxWait: has no meaning for behavior tokenBucket: remove it, or set behavior to throttle"},
		{"{resource: a, index: 0, threshold: 1, behavior: tokenBucket, metric: concurrency}", "1:61: hotspot[0].behavior: tokenBucket does not go with metric concurrency: use reject"},
		{"{resource: a, index: 0, threshold: 1e12, behavior: tokenBucket}", "1:48: hotspot[0].threshold: is 1e+12 per second: a token bucket refills by at most 1e+09 per second"},
		{"{resource: a, index: 0, threshold: 1, behavior: tokenBucket, burst: -1}", "1:81: hotspot[0].burst: is -1: use a number from 0 to 1000000000"},
		{"{resource: a, index: 0, threshold: 0.1, behavior: tokenBucket, burst: 1000000000}", "1:83: hotspot[0].burst: is 1000000000: at a threshold of 0.1 the bucket would take more than 73 years to fill; use less"},
		{"{resource: a, index: 0, threshold: 1, burst: 1000000000, behavior: tokenBucket, exceptions: [{value: x, threshold: 0.1}]}", "1:58: hotspot[0].burst: is 1000000000: at a threshold of 0.1 the bucket would take more than 73 years to fill; use less"},
		{"{resource: a, index: 0, threshold: 1, behavior: throttle, metric: concurrency}", "1:61: hotspot[0].behavior: throttle does not go with metric concurrency: use reject"},
		{"{resource: a, index: 0, threshold: 1, interval: 1ms}", "1:61: hotspot[0].interval: is 1ms: use a duration from 10ms to 24h0m0s"},
		{"{resource: a, index: 0, threshold: 1, maxValues: -1}", "1:62: hotspot[0].maxValues: is -1: use a number from 1 to 1000000, or leave it out for 10000"},
		{"{resource: a, index: 0, threshold: 1e12, behavior: throttle}", "1:48: hotspot[0].threshold: is 1e+12 per second: a throttle admits at most 1e+09 per second"},
		{"{resource: a, index: 0, unit: b, threshold: 1e13, behavior: throttle}", "1:57: hotspot[0].threshold: is 1e+13 per second: a throttle admits at most 1e+12 per second"},
		{"{resource: a, index: 0, unit: b, threshold: 1, behavior: throttle, maxReserve: 9}", "1:92: hotspot[0].maxReserve: has no meaning for behavior throttle, whose calls wait for what they reserve: remove it, or set behavior to reject or tokenBucket"},
		{"{resource: a, index: 0, unit: b, threshold: 1, behavior: throttle, maxOverdraft: 9}", "1:94: hotspot[0].maxOverdraft: has no meaning for metric concurrency and behavior throttle: remove it, or set behavior to reject or tokenBucket"},
		{"{resource: a, index: 0, unit: b, threshold: 1, metric: concurrency, maxOverdraft: 9}", "1:95: hotspot[0].maxOverdraft: has no meaning for metric concurrency and behavior throttle: remove it, or set behavior to reject or tokenBucket"},
		{"{resource: a, index: 0, unit: b, threshold: 1, strict: false}", "1:43: hotspot[0].unit: has no meaning for strict: false, which lets up to twice the limit pass: remove it, or set strict to true"},
		{"{resource: a, index: 0, unit: b, maxOverdraft: 1, id: x, threshold: 1, cluster: {}}", "1:60: hotspot[0].maxOverdraft: has no meaning for cluster: no member knows what all of them are charged; remove maxOverdraft or cluster"},
		{"{resource: a, index: 0, unit: b, threshold: 9, behavior: tokenBucket, burst: 4, estimate: 6}", "1:103: hotspot[0].estimate: is 6: the bucket of a value holds 5, so use at most that, or a larger burst"},
		{"{resource: a, index: 0, unit: b, threshold: 1e10, behavior: tokenBucket, burst: 1000000000001}", "1:93: hotspot[0].burst: is 1000000000001: use a number from 0 to 1000000000000"},
		{"{resource: a, index: 0, threshold: 1, exceptions: 7}", "1:63: hotspot[0].exceptions: must be a list, not 7"},
		{"{resource: a, index: 0, threshold: 1, exceptions: [7]}", "1:64: hotspot[0].exceptions[0]: must be a mapping"},
		{"{resource: a, index: 0, threshold: 1, exceptions: [{value: x}]}", "1:64: hotspot[0].exceptions[0].threshold: is required"},
		{"{resource: a, index: 0, threshold: 1, exceptions: [{valeu: x, threshold: 1}]}", `1:65: hotspot[0].exceptions[0].valeu: unknown field (did you mean "value"?)`},
		{"{resource: a, index: 0, threshold: 1, exceptions: [{value: [x], threshold: 1}]}", "1:72: hotspot[0].exceptions[0].value: must be a string, a number, true or false, not a list"},
		{"{resource: a, index: 0, threshold: 1, exceptions: [{value: x, value: y, threshold: 1}]}", "1:75: hotspot[0].exceptions[0].value: is set twice, first at 1:65"},
		{"{resource: a, index: 0, threshold: 1, exceptions: [{value: x, threshold: .nan}]}", "hotspot[0].exceptions[0].threshold: must be a number like 100 or 0.5, not .nan"},
		{"{resource: a, index: 0, threshold: 1, exceptions: [{value: x, threshold: 1}, {value: x, threshold: 2}]}", `1:63: hotspot[0].exceptions: "x" appears twice, in entries 0 and 1: remove one`},
		{"{resource: a, index: 0, threshold: 1, exceptions: [{value: " + strings.Repeat("x", 65) + ", threshold: 1}]}", "1:63: hotspot[0].exceptions: entry 0 has no valid value: use a string of at most 64 bytes, a finite number, true or false"},
		{"{resource: a, index: 0, threshold: 1}, {resource: a, index: 0, threshold: 1}", "hotspot[1]: is the same rule as hotspot[0] at 1:13: remove one"},
	} {
		_, err := rules.Parse("r", []byte("hotspot:   ["+tt.rule+"]"))
		if assert.Error(t, err, tt.rule) {
			assert.Contains(t, err.Error(), tt.want)
		}
	}
}

func TestHotspotDiff(t *testing.T) {
	old, changed := hotspotSet(), hotspotSet()
	changed.Hotspot[0].Threshold = 11
	changed.Hotspot[1].Exceptions = changed.Hotspot[1].Exceptions[:1]
	changed.Hotspot[1].Index = hotspot.At(0)
	lines := rules.Diff(old, changed).Lines()
	require.Len(t, lines, 2)
	assert.Equal(t, `~ hotspot "hotspot:GET /orders:param=user": threshold 10 -> 11`, lines[0])
	assert.Contains(t, lines[1], `~ hotspot all: index -1 -> 0, exceptions`)
	assert.True(t, rules.Diff(old, hotspotSet()).Empty())
}
