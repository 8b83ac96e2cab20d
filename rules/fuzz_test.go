package rules

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/system"
)

const hotspotSeed = `
hotspot:
- {resource: a, index: -1, threshold: 2.5, interval: 1m, strict: false, burst: 5, maxValues: 7, exceptions: [{value: x, threshold: 1}, {value: "7", threshold: 0}, {value: 7, threshold: 1}, {value: 7.0, threshold: 1}, {value: true, threshold: 1}]}
- {resource: a, param: p, threshold: 3, behavior: throttle, maxWait: 1h}
- {resource: a, param: p, threshold: 3, metric: concurrency, mode: shadow}
`

// FuzzParse parses any text. An accepted set is in range, loads into an engine, and is the same after
// it is written and read back. A refused text yields only errors with positions, each on one line.
// known bug 36
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		fullYAML, fullJSON, "", "flow: []", "flow: [{resource: a, threshold: 1}]",
		"flow:\n  - resource: a\n    threshold: -0\n    interval: 1h0.5s\n",
		"flow: [{resource: \"\\u0085\\t \\e\", id: '\n  x'}]",
		"flow:\n- resource: |\n   a\n\n   b\n  id: >\n   c\n   d\n",
		`{"flow": [{"resource": "\ud800\u0000", "threshold": 1E+2}]}`,
		`{"flow": [{"resource": "\uD83D\uDE00\/\"\\\b\ud83dx", "threshold": 5e-324}]}`,
		"flow: &a [*a]", "? a\n: - b", "%YAML 1.1\n---\nflow: []\n...\n", "flow: [{<<: {resource: a}}]",
		"flow: [{resource: a, threshold: 1}, {resource: a, threshold: 2}]", "a: b: c", "[{count: 1, grade: 1}]",
		`flow: [{resource: 'a{1000}b?', regex: true, threshold: 1}]`, `flow: [{resource: '\Qa', regex: true, threshold: 1}]`,
		`flow: [{"a\n\e[31mb": 1, resource: "(\n", regex: true}, !a%0Ab x]`,
		"flow: [{resource: a, threshold: 1e15, interval: 24h, buckets: 1440, strict: true, behavior: warmUp}]",
		"flow: [{resource: a, threshold: 1e-300, behavior: warmUpThrottle, coldFactor: 1000, warmUpPeriod: 24h, maxWait: 24h}]",
		"flow: [{resource: a, threshold: 1, relation: chain, ref: b, origin: other, metric: concurrency, mode: shadow}]",
		"authority: [{resource: a, list: deny, origins: [b, ' c\t', \"\\u0085\"], mode: shadow}]",
		"system: [{metric: qps, threshold: 1e15, interval: 24h, buckets: 1440, strict: true}, {metric: rt, maxRT: 24h}]",
		"system: [{metric: cpu, threshold: 0.8, strategy: gate}, {metric: load, threshold: 5e-324}, {metric: concurrency, threshold: 0}]",
		hotspotSeed,
		"flow: [{resource: \"<<\", threshold: 1e-400}, {resource: '=', id: \"<<\", threshold: 1e-320, interval: 0.01s}]",
		"flow: [{resource: a, threshold: 9, memoryThreshold: 1.5, lowMemory: 0.5, highMemory: 1}, {resource: a, threshold: 9, memoryThreshold: 1, lowMemory: 1023KiB, highMemory: 1048576TiB}]",
		"flow: [{resource: a, threshold: 9, behavior: throttle, memoryThreshold: 5e-324, lowMemory: 0, highMemory: -1B}, {lowMemory: 80%, highMemory: [1]}]",
		"adaptive: [{resource: a}, {resource: .*, regex: true, floor: 2, ceiling: 50, start: 5, window: 1s, mode: shadow}]",
		"isolation: [{resource: a, threshold: 3, maxQueue: 2, maxWait: 1s}, {resource: .*, regex: true, threshold: 0, mode: shadow}]",
		"outlier: [{resource: a, threshold: 0.5, maxEjected: 0.1, maxEndpoints: 10, forgetAfter: 24h}, {resource: .*, regex: true, strategy: slowRatio, slowRT: 1s, threshold: 1, mode: shadow}]",
		"hotspot: [{resource: a, threshold: 1, index: -0, exceptions: [{value: 1e400, threshold: 0}, {value: -0.0, threshold: 1}]}]",
		"[]#000",
		"hotspot: [{resource: a, threshold: 1, param: '', index: 3, exceptions: []}, {resource: a, threshold: 1, param: p, exceptions: [{}]}]",
	} {
		f.Add(seed)
	}
	text, err := golden.YAML()
	require.NoError(f, err)
	f.Add(string(text))

	f.Fuzz(func(t *testing.T, data string) {
		parsed, err := ParseWith("r.yaml", []byte(data), ParseOptions{})
		set := parsed.Set
		strict, notJSON := Parse("r.json", []byte(data))
		if notJSON == nil {
			require.NoError(t, err, "JSON is read under every name")
			require.Equal(t, set, strict)
		}
		if err != nil {
			require.Zero(t, set)
			requirePlaces(t, "r.yaml", data, err)
			requirePlaces(t, "r.json", data, notJSON)
			return
		}
		require.LessOrEqual(t, set.Len(), MaxRules)
		for _, r := range set.Flow {
			requireInRange(t, r)
		}
		for _, r := range set.System {
			requireSystemInRange(t, r)
		}
		for _, r := range set.Authority {
			require.NotEmpty(t, r.Origins)
		}
		for _, r := range set.Hotspot {
			require.NotEmpty(t, r.Resource)
			require.NotEqual(t, r.Param == "", r.Index == hotspot.Index{}, "either param or index")
			require.True(t, r.Threshold >= 0 && r.Threshold <= 1e15, "threshold %v", r.Threshold)
			require.True(t, r.MaxValues >= 0 && r.MaxValues <= 1e6, "maxValues %v", r.MaxValues)
			for _, x := range r.Exceptions {
				require.True(t, x.Threshold >= 0 && x.Threshold <= 1e15, "threshold %v", x.Threshold)
				require.NotNil(t, x.Value.Scalar())
			}
		}
		for _, r := range set.Outlier {
			require.True(t, r.MaxEjected >= 0 && r.MaxEjected <= 1, "maxEjected %v", r.MaxEjected)
			require.True(t, r.MaxEndpoints == 0 || r.MaxEndpoints >= 2 && r.MaxEndpoints <= 10_000, "maxEndpoints %v", r.MaxEndpoints)
			require.True(t, r.ForgetAfter >= 0 && r.ForgetAfter <= 24*time.Hour, "forgetAfter %v", r.ForgetAfter)
		}
		if parsed.Dialect == Native && !looksLikeJSON([]byte(data)) {
			require.NoError(t, states([]byte(data), set), "%s", data)
		}
		requireLoads(t, set)
		requireReadsBack(t, set)
		if notJSON == nil && parsed.Dialect == Native {
			requireSameTexts(t, data, set)
		}
	})
}

// FuzzDialects parses any text in a given or detected dialect. An accepted text loads, and converts to
// native text that reads back as the same rules. Errors and warnings have positions. A file whose
// dialect is detected reads the same if the dialect is given.
func FuzzDialects(f *testing.F) {
	for _, file := range []string{"native.yaml", "java.json", "go.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "dialects", file))
		require.NoError(f, err)
		for d := range dialects {
			f.Add(string(text), uint8(d), "")
		}
	}
	for _, data := range []string{
		"[]", "{}", "[[]]", "[{}]", "null", `[{"resource": "*", "count": 1}]`, `[{"count": 1e999, "grade": -9223372036854775808}]`,
		`[{"resource": "a", "count": 1e-300, "grade": 1, "timeWindow": 9223372036854775807, "statIntervalMs": 9223372036854775807}]`,
		`[{"resource": "a", "count": 1e300, "grade": 0, "timeWindow": 2147483647, "slowRatioThreshold": 5e-324}]`,
		`[{"id": -0, "resource": "<<", "count": -0.0, "limitApp": "default,", "strategy": 2, "refResource": "a"}]`,
		`[{"resource": "a", "paramIdx": -1000, "count": 1.5, "paramFlowItemList": [{"object": 1e400, "count": 1, "classType": "double"}, {"object": "NaN", "count": 1, "classType": "float"}]}]`,
		`[{"resource": "a", "paramKey": "p", "threshold": 1, "specificItems": [{"valKind": 3, "valStr": "Inf", "threshold": 1}, {"valKind": 2, "valStr": "T", "threshold": 0}]}]`,
		`[{"avgRt": 1e300, "maxThread": 0.5, "qps": 0}, {"avgRt": 5e-324}]`, `[{"metricType": 1, "triggerCount": 0}, {"metricType": 3, "triggerCount": 1e300}]`,
		`[{"resource": "a", "limitApp": ", b ,,b", "strategy": 1}, {"resource": "a", "limitApp": ","}]`,
		`{"dialect": "sentinel-java", "flow-Rules": [{"resource": "a", "count": 1, "clusterConfig": [[]]}], "degrade": []}`,
		`[{"resource": "a", "tokenCalculateStrategy": 2, "lowMemUsageThreshold": 9, "highMemUsageThreshold": 1, "memLowWaterMarkBytes": 1, "memHighWaterMarkBytes": 9223372036854775807}]`,
	} {
		for d := range dialects {
			f.Add(data, uint8(d), "")
			f.Add(data, uint8(d), "flow")
		}
	}
	f.Fuzz(func(t *testing.T, data string, dialect uint8, family string) {
		opts := ParseOptions{Dialect: Dialect(dialect) % dialects, Family: family}
		p, err := ParseWith("r.yaml", []byte(data), opts)
		if err != nil {
			require.Zero(t, p)
			requirePlaces(t, "r.yaml", data, err)
			return
		}
		require.NotEqual(t, Detect, p.Dialect)
		require.LessOrEqual(t, p.Set.Len(), MaxRules)
		require.LessOrEqual(t, len(p.Warnings), maxFaults+1)
		for i, w := range p.Warnings[:min(len(p.Warnings), maxFaults)] {
			requirePlaces(t, "r.yaml", data, &p.Warnings[i].FileError)
			require.NotEmpty(t, w.Name)
		}
		if opts.Dialect == Detect {
			opts.Dialect = p.Dialect
			detected, err := ParseWith("r.yaml", []byte(data), opts)
			require.NoError(t, err)
			require.Equal(t, p, detected)
		}
		for _, r := range p.Set.Flow {
			requireInRange(t, r)
		}
		requireLoads(t, p.Set)
		requireReadsBack(t, p.Set)
	})
}

// requireInRange checks a rule against the documented ranges.
func requireInRange(t *testing.T, r flow.Rule) {
	t.Helper()
	within := func(name string, v, low, high time.Duration) {
		t.Helper()
		require.True(t, v == 0 || v >= low && v <= high, "%s %v", name, v)
	}
	day := 24 * time.Hour
	require.NotEmpty(t, r.Resource)
	require.True(t, r.Threshold >= 0 && r.Threshold <= 1e15, "threshold %v", r.Threshold)
	within("interval", r.Interval, 10*time.Millisecond, day)
	within("warmUpPeriod", r.WarmUpPeriod, time.Second, day)
	within("maxWait", r.MaxWait, 0, day)
	within("coldFactor", time.Duration(r.ColdFactor), 2, 1000)
	require.GreaterOrEqual(t, r.Buckets, 0)
	if r.Interval == 0 {
		r.Interval = time.Second
	}
	switch queues := r.Behavior == flow.Throttle || r.Behavior == flow.WarmUpThrottle; {
	case queues:
		require.LessOrEqual(t, r.Threshold/r.Interval.Seconds(), 1e9)
	case r.Metric == flow.QPS && r.Buckets > 0:
		require.LessOrEqual(t, r.Buckets, 1440)
		require.Zero(t, r.Interval%time.Duration(r.Buckets))
	}
	if r.MemoryThreshold != 0 {
		require.True(t, r.MemoryThreshold > 0 && r.MemoryThreshold < r.Threshold, "memoryThreshold %v", r.MemoryThreshold)
	}
	if r.Match == spec.MatchRegex {
		require.LessOrEqual(t, len(r.Resource), 1024)
		_, err := regexp.Compile(r.Resource)
		require.NoError(t, err)
	}
}

// requireLoads checks that an engine accepts the rules: every rule that a file can express works.
func requireLoads(t *testing.T, set Set) {
	t.Helper()
	e, err := engine.NewEngine(engine.Config{Chain: trial.Chain(), Host: idle{}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	clock := clocks.NewManual(time.Unix(1, 0))
	member, err := sharing.Join(cluster.Config{Store: cluster.NewMemory(clock), Clock: clock})
	require.NoError(t, err)
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		b.Sharing = member
		_, err := set.Compile(b)
		return err
	}))
	member.Close()
	require.NoError(t, e.Close())
}

// idle is a machine without load.
type idle struct{}

func (idle) Load(int64) (float64, error) { return 0, nil }
func (idle) CPU(int64) (float64, error)  { return 0, nil }
func (idle) Memory(int64) (host.Memory, error) {
	return host.Memory{Used: 1, Limit: 1 << 62}, nil
}

// requireSystemInRange checks a rule against the documented ranges.
func requireSystemInRange(t *testing.T, r system.Rule) {
	t.Helper()
	require.True(t, r.Threshold >= 0 && r.Threshold <= 1e15, "threshold %v", r.Threshold)
	require.NotEqual(t, system.None, r.Metric)
	require.Equal(t, r.Metric == system.RT, r.MaxRT > 0)
	if r.Metric == system.CPU {
		require.True(t, r.Threshold > 0 && r.Threshold < 1)
	}
}

// requireReadsBack checks that writing a set and reading it is the identity.
func requireReadsBack(t *testing.T, set Set) {
	t.Helper()
	require.True(t, Diff(set, set).Empty())
	for name, write := range map[string]func() ([]byte, error){
		"r.yaml": set.YAML,
		"r.json": func() ([]byte, error) { return json.Marshal(set) },
	} {
		text, err := write()
		require.NoError(t, err, name)
		again, err := Parse(name, text)
		require.NoError(t, err, "%s", text)
		require.Equal(t, set, again, "%s", text)
		for i := range set.Flow { // Equal takes -0 for 0
			require.Equal(t, math.Signbit(set.Flow[i].Threshold), math.Signbit(again.Flow[i].Threshold), "%s", text)
		}
		for i := range set.System {
			require.Equal(t, math.Signbit(set.System[i].Threshold), math.Signbit(again.System[i].Threshold), "%s", text)
		}
	}
}

// requireSameTexts checks the texts read from a JSON file against encoding/json.
func requireSameTexts(t *testing.T, data string, set Set) {
	t.Helper()
	var raw struct {
		Flow []struct {
			ID, Resource, Origin, Ref string
			Threshold                 float64
		}
	}
	if data = strings.TrimSpace(strings.TrimPrefix(data, "\uFEFF")); data[0] != '[' { // the only native list is an empty one
		require.NoError(t, json.Unmarshal([]byte(data), &raw))
	}
	require.Len(t, raw.Flow, len(set.Flow))
	for i, r := range set.Flow {
		want := raw.Flow[i]
		require.Equal(t, []any{want.ID, want.Resource, want.Origin, want.Ref, want.Threshold},
			[]any{r.ID, r.Resource, r.Origin, r.Ref, r.Threshold})
	}
}

// requirePlaces checks that every error in err names the file, has a valid position or concerns the
// whole file, and is one line of printable text.
func requirePlaces(t *testing.T, name, data string, err error) {
	t.Helper()
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(data), "\n")
	for i, err := range all {
		require.IsType(t, &FileError{}, err)
		e, _ := errors.AsType[*FileError](err)
		require.Equal(t, name, e.File)
		require.NotEmpty(t, e.Problem)
		for _, r := range e.Error() {
			require.True(t, unicode.IsPrint(r), "%q in %q", r, e.Error())
		}
		require.Less(t, len(e.Error()), 5000)
		switch {
		case e.Line == 0 && i == maxFaults:
			require.Contains(t, e.Problem, "there are more")
		case e.Line == 0:
			require.Contains(t, e.Problem, "has ", "too much of something, anywhere")
		default:
			require.LessOrEqual(t, e.Line, len(lines)+1, "%v", e) // the parser ends every text with a line break
			require.Positive(t, e.Column, "%v", e)
			require.LessOrEqual(t, e.Column, len(data)+1, "%v", e)
		}
	}
	require.LessOrEqual(t, len(all), maxFaults+1)
}
