package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// written returns a trace that was not recorded: Java's outcomes were worked out by hand.
func written(t *testing.T, sleep, rules string, ops ...string) *Trace {
	t.Helper()
	text := fmt.Sprintf(`{"config": {"epochMs": 1700000040000, "sampleCount": 2, "intervalMs": 1000, "occupyTimeoutMs": 500,
		"coldFactor": 3, "statisticMaxRtMs": 5000, "sleep": %q}, "rules": %s, "ops": [%s]}`,
		sleep, rules, strings.Join(ops, ","))
	trace := new(Trace)
	if err := json.Unmarshal([]byte(text), trace); err != nil {
		t.Fatal(err)
	}
	return trace
}

// Consequences of a deliberate difference are explained too, even if no recorded trace has them.
func TestConsequencesAreExplained(t *testing.T) {
	const (
		inbound = `"op": "enter", "resource": "r", "entryType": "in"`
		call    = `"op": "enter", "resource": "r", "args": ["a", "x"]`
		queue   = `{"id": "h1", "resource": "r", "paramIndex": 0, "count": 1, "controlBehavior": "throttle", "maxQueueingTimeMs": 2000}`
		pass    = `"expect": {"result": "pass"}`
	)
	for _, test := range []struct {
		what, sleep, rules string
		ops                []string
		row                string
		ends               bool // the comparison with Java
	}{
		{
			"a batch beyond the inbound concurrency, where Java finds the calls slow", "record",
			`{"system": [{"id": "s", "maxConcurrency": 2, "maxAvgRtMs": 10}]}`,
			[]string{
				`{"t": 0, "id": 1, ` + inbound + `, ` + pass + `}`,
				`{"t": 5, "id": 2, ` + inbound + `, ` + pass + `}`,
				`{"t": 50, "op": "exit", "id": 1, "expect": {}}`,
				`{"t": 60, "id": 3, "count": 2, ` + inbound + `, "expect": {"result": "block", "blockedBy": "system", "rule": "rt"}}`,
			}, "F1", false,
		},
		{
			"a batch beyond the inbound concurrency", "record",
			`{"system": [{"id": "s", "maxConcurrency": 2}]}`,
			[]string{
				`{"t": 0, "id": 1, ` + inbound + `, ` + pass + `}`,
				`{"t": 5, "id": 2, "count": 2, ` + inbound + `, ` + pass + `}`,
			}, "F1", true,
		},
		{
			"a value waits, and then another rule refuses its call", "record",
			`{"hotspot": [` + queue + `, {"id": "h2", "resource": "r", "paramIndex": 1, "count": 1}]}`,
			[]string{
				`{"t": 0, "id": 1, ` + call + `, ` + pass + `}`,
				`{"t": 10, "id": 2, ` + call + `, "expect": {"result": "block", "waitMs": 990, "via": "queue", "blockedBy": "param", "rule": "h2"}}`,
			}, "D12", false,
		},
		{
			"two values wait, one after the other", "record",
			`{"hotspot": [` + queue + `, ` + strings.NewReplacer("h1", "h2", `"paramIndex": 0`, `"paramIndex": 1`).Replace(queue) + `]}`,
			[]string{
				`{"t": 0, "id": 1, ` + call + `, ` + pass + `}`,
				`{"t": 10, "id": 2, ` + call + `, "expect": {"result": "wait", "waitMs": 1980, "via": "queue"}}`,
			}, "D12", false,
		},
		{
			"two values wait, the second from when the first has waited", "park",
			`{"hotspot": [` + queue + `, ` + strings.NewReplacer("h1", "h2", `"paramIndex": 0`, `"paramIndex": 1`).Replace(queue) + `]}`,
			[]string{
				`{"t": 0, "id": 1, ` + call + `, ` + pass + `}`,
				`{"t": 10, "id": 2, ` + call + `, "expect": {"result": "wait", "waitMs": 990, "via": "queue"}}`,
			}, "D12", true,
		},
		{
			"a value waits, and then its call", "record",
			`{"hotspot": [` + queue + `], "flow": [{"id": "f", "resource": "r", "count": 2, "controlBehavior": "throttle"}]}`,
			[]string{
				`{"t": 0, "id": 1, ` + call + `, ` + pass + `}`,
				`{"t": 10, "id": 2, ` + call + `, "expect": {"result": "wait", "waitMs": 1480, "via": "queue"}}`,
			}, "D12", false,
		},
	} {
		t.Run(test.what, func(t *testing.T) {
			outcome := Replay(written(t, test.sleep, test.rules, test.ops...), table)
			if outcome.Failure != nil {
				t.Fatal(outcome.Failure)
			}
			if explained := outcome.Row == test.row || outcome.Asides[test.row] == 1; !explained || test.ends != (outcome.Row != "") {
				t.Errorf("explained by row %q, asides %v", outcome.Row, outcome.Asides)
			}
		})
	}
}
