package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const trial = `flow:
  - {id: orders, resource: GET /orders, threshold: 100}
  - {id: reports, resource: POST /reports, threshold: 5, behavior: throttle, maxWait: 1s}
  - {id: stricter, resource: GET /orders, threshold: 60, mode: shadow}
  - {id: acme, resource: GET /catalog, threshold: 3, origin: acme}
  - {id: nightly, resource: GET /catalog, threshold: 7, relation: chain, ref: night}
  - {id: room, resource: PUT /file, unit: bytes, threshold: 1000}
isolation:
  - {id: search, resource: GET /search, threshold: 4, maxQueue: 20, maxWait: 300ms}
hotspot:
  - {id: users, resource: GET /users, param: user, threshold: 2}
  - {id: first, resource: GET /first, index: 0, threshold: 2}
breaker:
  - {id: payments, resource: POST /payments, strategy: errorRatio, threshold: 0.5, minCalls: 10, recovery: 2s}
system:
  - {id: qps, metric: qps, threshold: 1000}
  - {id: cpu, metric: cpu, threshold: 0.8, strategy: gate}
`

// tried returns the command's result for some traffic.
func tried(t *testing.T, args ...string) jsonTry {
	t.Helper()
	r := penstock(t, trial, append([]string{"try", "-", "--json"}, args...)...)
	require.Equal(t, exitOK, r.code, r.err)
	var out jsonTry
	require.NoError(t, json.Unmarshal([]byte(r.out), &out))
	sum := 0
	for _, s := range out.Seconds {
		sum += s.Passed + s.Refused
	}
	assert.Equal(t, out.Asked, sum, "every call is in one row")
	assert.Equal(t, out.Asked, out.Passed+out.Refused)
	by := 0
	for _, r := range out.RefusedBy {
		by += r.Calls
	}
	assert.Equal(t, out.Refused, by)
	return out
}

func TestTryReject(t *testing.T) {
	out := tried(t, "GET /orders", "--rate", "150/s", "--for", "4s")
	assert.Equal(t, 600, out.Asked)
	assert.Equal(t, 400, out.Passed)
	assert.Equal(t, []refusals{{"flow orders", 200}}, out.RefusedBy)
	assert.Equal(t, []refusals{{"flow stricter", 160}}, out.Shadow)
	require.Len(t, out.Seconds, 4)
	for i, s := range out.Seconds {
		assert.Equal(t, jsonSecond{Second: i + 1, Asked: 150, Passed: 100, Refused: 50, InFlight: s.InFlight}, s)
	}
}

// Calls queue in a throttle up to its limit, and leave when their callers give up.
func TestTryThrottle(t *testing.T) {
	out := tried(t, "POST /reports", "--rate", "10/s", "--for", "4s")
	assert.Equal(t, 40, out.Asked)
	last := out.Seconds[3]
	assert.Equal(t, 5, last.Passed, "200 ms apart")
	assert.InDelta(t, 1, last.LongestWait, 0.1)
	assert.LessOrEqual(t, last.LongestWait, 1.0)
	assert.Equal(t, 5, out.Seconds[4].Passed, "the queue empties after the end")

	out = tried(t, "POST /reports", "--rate", "10/s", "--for", "4s", "--timeout", "250ms")
	for _, s := range out.Seconds {
		assert.LessOrEqual(t, s.LongestWait, 0.25)
	}
	require.Len(t, out.RefusedBy, 1)
	assert.Equal(t, "flow reports", out.RefusedBy[0].Rule)
}

// Calls take time, so a limit on concurrent calls fills up, and so does its queue.
func TestTryIsolation(t *testing.T) {
	out := tried(t, "GET /search", "--rate", "100/s", "--rt", "20ms", "--for", "2s")
	assert.Zero(t, out.Refused, "two at once are enough")
	out = tried(t, "GET /search", "--rate", "100/s", "--rt", "100ms", "--for", "4s")
	assert.Equal(t, 4, out.Seconds[2].InFlight)
	assert.InDelta(t, 40, out.Seconds[2].Passed, 1, "four at once, ten times a second")
	assert.InDelta(t, 0.3, out.Seconds[2].LongestWait, 0.1)
	assert.LessOrEqual(t, out.Seconds[2].LongestWait, 0.3)
	assert.Equal(t, "isolation search", out.RefusedBy[0].Rule)
}

func TestTryBreaker(t *testing.T) {
	out := tried(t, "POST /payments", "--rate", "20/s", "--for", "10s", "--errors", "100%")
	assert.GreaterOrEqual(t, len(out.Breakers), 3)
	assert.Equal(t, "payments after 470ms: closed -> open", out.Breakers[0])
	assert.Equal(t, "breaker payments", out.RefusedBy[0].Rule)
	assert.Less(t, out.Passed, 20)
	assert.Zero(t, tried(t, "POST /payments", "--rate", "20/s", "--errors", "10%").Refused)
}

// Flags set the callers, their arguments, and the machine.
func TestTryCallers(t *testing.T) {
	passed := func(args ...string) int {
		return tried(t, append(args, "--rate", "10/s", "--for", "1s")...).Passed
	}
	assert.Equal(t, 10, passed("GET /catalog"))
	assert.Equal(t, 3, passed("GET /catalog", "--origin", "acme"))
	assert.Equal(t, 7, passed("GET /catalog", "--context", "night"))
	assert.Equal(t, 2, passed("GET /users", "--arg", "user=ann"))
	assert.Equal(t, 4, passed("GET /users", "--arg", "user=ann", "--arg", "user=bob"))
	assert.Equal(t, 4, passed("GET /first", "--arg", "0=1", "--arg", "0=2"))
	assert.Equal(t, 10, passed("GET /first", "--arg", "1=1"), "the argument is another one")
	assert.Equal(t, 5, passed("PUT /file", "--cost", "bytes=200"))
	assert.Equal(t, 4, passed("PUT /file", "--cost", "bytes=100", "--cost", "bytes=400"))
	assert.Zero(t, passed("GET /other", "--cpu", "90%"))
	assert.Equal(t, 10, passed("GET /other", "--cpu", "90%", "--internal"))
	assert.Equal(t, 10, passed("GET /other", "--cpu", "70%"))
}

// The command is deterministic: the same seed has the same outcome, another seed a different one.
func TestTryIsDeterministic(t *testing.T) {
	args := []string{"try", "-", "GET /search", "--rate", "80/s", "--rt", "70ms", "--random", "--priority", "20%", "--errors", "10%", "--for", "5s"}
	first := penstock(t, trial, args...)
	require.Equal(t, exitOK, first.code, first.err)
	for range 3 {
		assert.Equal(t, first, penstock(t, trial, args...))
	}
	assert.NotEqual(t, first.out, penstock(t, trial, append(args, "--seed", "2")...).out)
	assert.Contains(t, first.out, "(random times, 20 % prioritized, 10 % fail; seed 1)")
}

// Only prioritized calls borrow from the next bucket.
func TestTryPriority(t *testing.T) {
	set := "flow:\n  - {id: a, resource: a, threshold: 10, buckets: 2}\n"
	waits := func(priority string) int {
		r := penstock(t, set, "try", "-", "a", "--rate", "40/s", "--for", "2s", "--json", "--priority", priority)
		var out jsonTry
		require.NoError(t, json.Unmarshal([]byte(r.out), &out))
		n := 0
		for _, s := range out.Seconds {
			n += s.Waited
		}
		return n
	}
	assert.Zero(t, waits("0%"))
	assert.Positive(t, waits("50%"))
}

func TestTryDraws(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chart.svg")
	r := penstock(t, trial, "try", "-", "GET /orders", "--rate", "150", "--for", "4s", "--svg", file)
	require.Equal(t, exitOK, r.code, r.err)
	text := read(t, file)
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	assert.Equal(t, 8, strings.Count(text, "<rect "), "two parts of each second")
	assert.Contains(t, text, "passed 400<")
	assert.Contains(t, text, "refused 200<")
	assert.Contains(t, text, "GET /orders: 150/s for 4s")
	for line := range strings.Lines(r.out) {
		assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 80, line)
	}
	r = penstock(t, trial, "try", "-", "GET /orders", "--for", "1s", "--svg", filepath.Join(file, "no"))
	assert.Equal(t, exitErrors, r.code)
}

// A long run takes moments and has a readable table.
func TestTryLong(t *testing.T) {
	r := penstock(t, trial, "try", "-", "GET /orders", "--rate", "1/s", "--for", "1h")
	require.Equal(t, exitOK, r.code, r.err)
	assert.Less(t, strings.Count(r.out, "\n"), tableRows+12)
	assert.Contains(t, r.out, "\n    3541      60      60       0          -          1  ")
	assert.Contains(t, r.out, "All of 3600 calls passed (100 %).")
	for seconds, want := range map[int]int{1: 1, 60: 1, 61: 2, 600: 10, 3600: 60, 86400: 1800} {
		assert.Equal(t, want, step(seconds), seconds)
	}
	assert.LessOrEqual(t, 1000*3600/step(1000*3600), tableRows)
}

func TestTryRefusesBadRules(t *testing.T) {
	r := penstock(t, "flow: 1", "try", "-", "a")
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.err, "stdin:1:7: error: flow: must be a list of rules")
	assert.Empty(t, r.out)
}

// A resource without a rule is reported, in case its name is misspelt.
func TestTryWithoutRule(t *testing.T) {
	set := "flow:\n  - {resource: GET /orders, threshold: 100}\n"
	hint := "\nNo rule applies to these calls: is the name of the resource right?\n"
	assert.Contains(t, penstock(t, set, "try", "-", "GET /oders", "--for", "1s").out, hint)
	assert.NotContains(t, penstock(t, set, "try", "-", "GET /orders", "--for", "1s").out, hint)
}

func TestBars(t *testing.T) {
	for _, c := range []struct{ passed, refused, most, p, r int }{
		{0, 0, 1, 0, 0}, {10, 0, 10, 24, 0}, {0, 10, 10, 0, 24}, {5, 5, 10, 12, 12}, {1, 999, 1000, 1, 23}, {999, 1, 1000, 23, 1},
	} {
		p, r := bars(c.passed, c.refused, c.most)
		assert.Equal(t, []int{c.p, c.r}, []int{p, r}, "%+v", c)
	}
}

// All resources in the rule files of the examples can be tried.
func TestTryExamples(t *testing.T) {
	file := filepath.Join("..", "..", "examples", "quickstart", "rules.yaml")
	names := resources(parse(t, read(t, file)))
	require.NotEmpty(t, names)
	assert.True(t, slices.IsSorted(names))
	for _, name := range names {
		r := penstock(t, "", "try", file, name, "--for", "2s", "--origin", "acme")
		assert.Equal(t, exitOK, r.code, r.err)
	}
	_, err := os.Stat(file)
	require.NoError(t, err)
}

func TestRateIsANumber(t *testing.T) {
	for _, rate := range []string{"NaN/s", "Inf/s", "0/s", "-1/s"} {
		r := penstock(t, "flow: [{resource: a, threshold: 1}]", "try", "-", "a", "--rate", rate)
		assert.Equal(t, exitErrors, r.code, rate)
	}
}
