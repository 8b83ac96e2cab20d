package replay

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// alter replaces old with new in the first operation that has it.
func alter(t *testing.T, trace *Trace, old, new string) {
	t.Helper()
	for i, line := range trace.Ops {
		if strings.Contains(string(line), old) {
			trace.Ops[i] = json.RawMessage(strings.Replace(string(line), old, new, 1))
			return
		}
	}
	t.Fatalf("%s has no %s", trace.Name, old)
}

func load(t *testing.T, name string) *Trace {
	t.Helper()
	trace, err := Load(filepath.Join("testdata", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// If any part of a passing trace is changed, the run reports where and how it differs.
func TestDifferencesFail(t *testing.T) {
	for _, test := range []struct {
		what, trace, old, new string
		says                  string
	}{
		{"a pass that Java refused", "flow-reject-basic",
			`"id":5,"resource":"r","expect":{"result":"pass"}`,
			`"id":5,"resource":"r","expect":{"result":"block","blockedBy":"flow","rule":"f1"}`,
			`op 4: expected block by flow rule "f1", got pass`},
		{"a refusal of a call that Java passed", "flow-reject-basic",
			`"result":"block","blockedBy":"flow","rule":"f1"`, `"result":"pass"`,
			`op 5: expected pass, got block by flow rule "f1"`},
		{"another rule", "flow-reject-multi-rules", `"rule":"f3"`, `"rule":"f1"`,
			`expected block by flow rule "f1", got block by flow rule "f3"`},
		{"another family", "flow-reject-basic", `"blockedBy":"flow"`, `"blockedBy":"degrade"`,
			`expected block by degrade rule "f1", got block by flow rule "f1"`},
		{"a wait a nanosecond longer", "throttle-spacing", `"waitMs":300`, `"waitMs":300.000001`,
			`op 3: expected wait after 300.000001ms, got wait after 300ms`},
		{"a wait too far from Java's rounding", "throttle-slow-rate", `"waitMs":1233`, `"waitMs":1232`,
			`expected wait after 1.232s, got wait after 1.233333333s`},
		{"a wait while the clock runs", "throttle-sleep-park", `"waitMs":`, `"waitMs":1`, `expected wait after`},
		{"the clock", "throttle-sleep-advance", `"clock":250`, `"clock":251`, `clock: expected 2.51e+08, got 2.5e+08`},
		{"a figure", "stat-block-counted", `"blockQps":5`, `"blockQps":6`, `blockQps: expected 6, got 5`},
		{"a figure that a row is about", "stat-rt-batch-dilutes", `"avgRt":10,`, `"avgRt":11,`, `avgRt: expected 11, got 100`},
		{"the sum of children", "tree-entrance-aggregates", `"passQps":`, `"passQps":1`, `passQps: expected`},
		{"a node", "stat-rt-min-avg", `"snapshot":null`, `"snapshot":{}`, `there is no node`},
		{"a second of the history", "stat-minute-history", `"seconds":[{"t":9000,"pass":2`, `"seconds":[{"t":9000,"pass":3`,
			`pass: expected 3, got 2`},
		{"a second too few", "stat-minute-history", `{"t":10000,"pass":2,"block":0,"success":2,"exception":1,"avgRt":106,"occupiedPass":0},`, ``,
			`expected 0, got`},
		{"the shape of the tree", "tree-nested", `"name":"lvl2","kind":"call"`, `"name":"lvl3","kind":"call"`,
			`expected call "lvl3" with 0 children, got call "lvl2"`},
		{"a figure in the tree", "tree-nested", `"name":"lvl2","kind":"call","curThreadNum":1`, `"name":"lvl2","kind":"call","curThreadNum":2`,
			`curThreadNum: expected 2, got 1`},
		{"a list that refuses", "authority-white", `"origin":"appC","expect":{"result":"block","blockedBy":"authority","rule":"a1"}`,
			`"origin":"appC","expect":{"result":"pass"}`, `expected pass, got block by authority rule "a1"`},
		{"another caller", "authority-black", `"origin":"appA","expect"`, `"origin":"appC","expect"`,
			`expected block by authority rule "a1", got pass`},
		{"what the machine shows", "system-cpu", `"cpu":0.71`, `"cpu":0.69`, `expected block by system rule "cpu", got pass`},
		{"a system rule", "system-qps", `"blockedBy":"system","rule":"qps"`, `"blockedBy":"system","rule":"rt"`,
			`expected block by system rule "rt", got block by system rule "qps"`},
		{"a change of a breaker that is none", "cb-error-count", `"from":"closed","to":"open","value":5`, `"from":"closed","to":"halfOpen"`,
			`expected the events [cb1: closed -> halfOpen], got [cb1: closed -> open (5)]`},
		{"what tripped a breaker", "cb-error-count", `"value":5`, `"value":6`, `(6)], got [cb1: closed -> open (5)]`},
		{"the state of a breaker", "cb-error-count", `"state":"open"`, `"state":"closed"`, `expected that breaker "cb1" is closed, got open`},
		{"the time of the next probe", "cb-error-ratio-equal", `"state":"open","retryAtMs":`, `"state":"open","retryAtMs":1`, `expected that breaker "cb1" is open`},
		{"a probe that is none", "cb-retry-boundary", `"id":2,"resource":"r","expect":{"result":"block","blockedBy":"degrade","rule":"cb1"}`,
			`"id":2,"resource":"r","expect":{"result":"pass"}`, `expected pass, got block by degrade rule "cb1"`},
		{"a pass by value that is none", "hotspot-reject",
			`"id":4,"resource":"r","args":["b"],"expect":{"result":"pass"}`,
			`"id":4,"resource":"r","args":["b"],"expect":{"result":"block","blockedBy":"param","rule":"h1","param":"b"}`,
			`Java's machine says`},
		{"a refusal by value that is none", "hotspot-reject", `"result":"block","blockedBy":"param","rule":"h1"`, `"result":"pass"`,
			`Java's machine says`},
		{"another value", "hotspot-reject", `"id":2,"resource":"r","args":["b"]`, `"id":2,"resource":"r","args":["c"]`, `Java's machine says`},
		{"another wait by value", "hotspot-throttle", `"waitMs":`, `"waitMs":1`, `Java's machine says`},
		{"an operation", "flow-reject-basic", `"op":"exit"`, `"op":"sing"`, `unknown operation "sing"`},
	} {
		t.Run(test.what, func(t *testing.T) {
			trace := load(t, "named/"+test.trace)
			alter(t, trace, test.old, test.new)
			outcome := Replay(trace, table)
			if outcome.Failure == nil || !strings.Contains(outcome.Failure.Error(), test.says) {
				t.Errorf("got %v, want %q", outcome.Failure, test.says)
			}
		})
	}
}

func TestDroppedRulesFail(t *testing.T) {
	trace := load(t, "named/flow-invalid-rules")
	trace.IgnoredRules = trace.IgnoredRules[1:]
	if outcome := Replay(trace, table); outcome.Failure == nil {
		t.Error("nobody noticed that Java keeps a rule which we drop")
	}
}

// A row that explains too much exceeds its ceiling.
func TestWideRowExceedsItsCeiling(t *testing.T) {
	wide := append([]row{{id: "C5", decision: func(*moment) bool { return true }}}, table...)
	report := NewReport()
	files, err := filepath.Glob("testdata/random/rand-concurrency-*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		trace, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		report.Add(Replay(trace, wide))
	}
	if err := report.Check(); err == nil || !strings.Contains(err.Error(), `row ["C5"] exempts`) {
		t.Errorf("got %v", err)
	}
}

// Without its row, a difference is a failure.
func TestDifferencesNeedTheirRow(t *testing.T) {
	for id, name := range map[string]string{
		"A2 B1":      "named/borrow-lost-untouched",
		"A3 D15":     "named/throttle-clock-back",
		"A4":         "named/stat-rt-batch-dilutes",
		"A5":         "named/stat-rt-min-avg",
		"A6":         "named/borrow-basic",
		"A7":         "named/tree-entrance-aggregates",
		"A9 D14":     "named/stat-acquire-zero",
		"A10":        "named/exit-order-mismatch",
		"A11 F13":    "named/resource-limit",
		"B2 B6":      "named/borrow-node-accounting",
		"B7 C1":      "named/flow-reject-interval-500",
		"B8":         "random/rand-sleep-p05",
		"B9 D13":     "random/rand-multi-rule-p06",
		"C2 F11":     "named/flow-concurrency-acquire-many",
		"C3":         "named/flow-limitapp-sort",
		"C4":         "named/flow-reload-resets-shaping",
		"C5":         "named/flow-associate-missing-ref",
		"C6 C9":      "named/throttle-associate",
		"C8":         "named/flow-limitapp-reserved-origin",
		"D1":         "named/warmup-below-cold-factor",
		"D2":         "named/warmup-throttle-count-zero",
		"D6":         "named/warmup-epoch-zero",
		"D8":         "named/throttle-fraction-below-half",
		"D9 D10":     "named/throttle-slow-rate",
		"D12":        "named/throttle-two-rules-park",
		"F1":         "named/system-concurrency",
		"F2":         "named/system-last-rule-disables",
		"E3 E8":      "named/cb-half-open-late-completion",
		"E10":        "random/rand-mixed-p04",
		"E4":         "named/cb-probe-blocked-by-other",
		"F3":         "named/stat-block-counted",
		"F12":        "named/authority-spaces",
		"F6":         "named/hotspot-throttle-strict",
		"F7":         "named/hotspot-negative-index",
		"F8":         "named/hotspot-list-arg",
		"F10":        "named/hotspot-reload-concurrency",
		"F11":        "named/hotspot-concurrency",
		"D10":        "random/rand-hotspot-throttle-p10",
		"exact":      "random/rand-reject-p06",
		"B3, B9 D13": "random/rand-sleep-p03", // either might explain it
	} {
		without := slices.DeleteFunc(slices.Clone(table), func(r row) bool {
			return slices.Contains(strings.Split(id, ", "), r.id)
		})
		if outcome := Replay(load(t, name), without); outcome.Failure == nil {
			t.Errorf("%s passes without row %q: %+v", name, id, outcome)
		}
	}
}
