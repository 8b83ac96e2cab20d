package rules

import (
	"encoding"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
)

// mutant is a text that differs from a valid file in a few places.
type mutant struct {
	text  string
	what  string
	lines []int // the changed lines, in the new text, from 1
}

// mutate changes one thing in a text: a line or a part of it.
func mutate(rng *rand.Rand, text string) mutant {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	i := rng.IntN(len(lines))
	for tries := 0; tries < 5 && strings.TrimSpace(lines[i]) == ""; tries++ {
		i = rng.IntN(len(lines))
	}
	line := lines[i]
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	at := func() int { return rng.IntN(len(line) + 1) } // a place in the line
	insert := func(what string) string {
		k := at()
		return line[:k] + what + line[k:]
	}
	blanks := len(line) - len(strings.TrimLeft(line, " "))
	key, value, hasValue := strings.Cut(line, ": ")
	m := mutant{lines: []int{i + 1}}
	switch rng.IntN(18) {
	case 0:
		m.what = "delete"
		lines = slices.Delete(lines, i, i+1)
	case 1:
		m.what = "duplicate"
		lines = slices.Insert(lines, i, line)
		m.lines = []int{i + 1, i + 2}
	case 2:
		m.what = "swap"
		j := rng.IntN(len(lines))
		lines[i], lines[j] = lines[j], lines[i]
		m.lines = []int{i + 1, j + 1}
	case 3, 4:
		m.what = "value"
		if !hasValue {
			lines[i] = insert(" ")
			break
		}
		lines[i] = key + ": " + pick("5", "0", "-1", "x", "GET /orders", "1s", "100ms", "true", "false", "off", "reject", "throttle", "warmUp", "concurrency", "qps",
			"regex", "prefix", "[a, b]", "[]", "{}", "{a: 1}", "2001-01-01", "'*'", `"\n"`, `"\u0041"`, "a: b", "- a", "|", ">-", "~", "null", "")
	case 5:
		m.what = "indent"
		lines[i] = strings.Repeat(" ", rng.IntN(8)) + strings.TrimLeft(line, " ")
	case 6:
		m.what = "key"
		k := blanks + rng.IntN(max(1, len(key)-blanks))
		if k < len(line) {
			lines[i] = line[:k] + pick("", "x", "E", "-", "é", "\t", " ") + line[k+1:]
		}
	case 7:
		m.what = "unicode"
		lines[i] = insert(pick("\u00a0", "\u200b", "\ufeff", "\u2028", "\u0085", "😀", "é", "e\u0301", "\xff", "\x00", "\x1b[31m", "\u202e", "ａ"))
	case 8:
		m.what = "tab"
		lines[i] = pick("\t"+strings.TrimLeft(line, " "), strings.Replace(line, " ", "\t", 1), insert("\t"), line+"\t")
	case 9:
		m.what = "anchor"
		if !hasValue {
			lines[i] = line + pick(" &a", " *a", " !x")
			break
		}
		lines[i] = key + ": " + pick("&a "+value, "*a", "!!str "+value, "!x "+value, "!!int "+value, "!!float 7", "! "+value)
	case 10:
		m.what = "merge"
		lines = slices.Insert(lines, i, strings.Repeat(" ", blanks)+pick("<<: *a", "<<: {threshold: 7}", "&a x: 1", "? x", "<<: [{threshold: 7}]"))
	case 11, 12:
		m.what = "number"
		forms := []string{"1e3", "0x10", "1_000", "010", "0o17", "+5", ".5", "5.", "1E+2", ".inf", "-.Inf", ".NaN", "NaN", "Infinity", "1e400", "1e-400", "0b11", "1:30", "1,000", "٣", "1e", "--1", "5 5", "1.0", "-0"}
		if k := strings.IndexAny(value, "0123456789"); hasValue && k >= 0 {
			end := k
			for end < len(value) && strings.ContainsRune("0123456789.", rune(value[end])) {
				end++
			}
			lines[i] = key + ": " + value[:k] + pick(forms...) + value[end:]
			break
		}
		lines[i] = key + ": " + pick(forms...)
	case 13:
		m.what = "quotes"
		lines[i] = pick(insert(`"`), insert("'"), key+`: "`+value+`"`, key+": '"+value+"'", `"`+strings.TrimSpace(key)+`": `+value, strings.NewReplacer(`"`, "", "'", "").Replace(line))
	case 14:
		m.what = "truth"
		lines[i] = key + ": " + pick("yes", "no", "on", "off", "True", "FALSE", "y", "n", "true ", "tRue", `"true"`)
	case 15:
		m.what = "character"
		if k := at(); k < len(line) {
			lines[i] = line[:k] + pick("", line[k:k+1]+line[k:k+1], "#", ":", " #", ",", "}", "[", "&", "*", "!", "|", "%", "@", "`") + line[k+1:]
		}
	case 16:
		m.what = "line"
		lines = slices.Insert(lines, i, pick("---", "...", "%YAML 1.1", "foo", "- a", "}", "[", "|", "flow:", "flow: []", "  - {}", "    resource: x", "unknown: 1", "# a comment", "", "\r", "    threshold: 5"))
		m.lines = []int{i + 1, i + 2}
	case 17:
		m.what = "duplicate key"
		lines = slices.Insert(lines, i, strings.Repeat(" ", blanks)+pick("threshold: 7", "resource: x", "id: x", "mode: shadow", strings.TrimLeft(strings.TrimLeft(key, " "), "- ")+": 7"))
		m.lines = []int{i + 1, i + 2}
	}
	m.text = strings.Join(lines, "\n") + "\n"
	return m
}

// states compares the rules that were read with the file, which it reads independently, into maps.
func states(data []byte, set Set) error {
	var file map[string]any
	if none := []any(nil); yaml.Unmarshal(data, &none) == nil && none != nil && len(none) == 0 {
		data = nil // it has no rules
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("is read, and should not: %w", err)
	}
	sets := reflect.ValueOf(set)
	for i := range sets.NumField() {
		key, _, _ := strings.Cut(sets.Type().Field(i).Tag.Get("yaml"), ",")
		list, there := file[key]
		delete(file, key)
		said, _ := list.([]any)
		if there && said == nil && !reflect.DeepEqual(list, []any{}) {
			return fmt.Errorf("%s is %v", key, list)
		}
		if err := statesAll(said, sets.Field(i)); err != nil {
			return fmt.Errorf("%s%w", key, err)
		}
	}
	if d, ok := file["dialect"]; ok && (d == "native" || d == "detect") {
		delete(file, "dialect")
	}
	if len(file) > 0 {
		return fmt.Errorf("besides, it has %v", file)
	}
	return nil
}

func statesAll(said []any, read reflect.Value) error {
	if len(said) != read.Len() {
		return fmt.Errorf(": %d are stated, %d are read", len(said), read.Len())
	}
	for i, one := range said {
		fields, ok := one.(map[string]any)
		if !ok {
			return fmt.Errorf("[%d] is %v", i, one)
		}
		rule := read.Index(i)
		for j := range rule.NumField() {
			key, _, _ := strings.Cut(rule.Type().Field(j).Tag.Get("yaml"), ",")
			value, there := fields[key]
			delete(fields, key)
			if key == "match" {
				if regex, ok := fields["regex"]; ok && !there {
					value, there = map[any]string{true: "regex", false: "exact"}[regex], true
					delete(fields, "regex")
				}
			}
			f := rule.Field(j)
			if !there {
				if !f.IsZero() {
					return fmt.Errorf("[%d].%s is not stated, and read as %v", i, key, f)
				}
				continue
			}
			if err := statesOne(value, f); err != nil {
				return fmt.Errorf("[%d].%s: %w", i, key, err)
			}
		}
		if len(fields) > 0 {
			return fmt.Errorf("[%d] states %v, which is not read", i, fields)
		}
	}
	return nil
}

// statesOne compares a value in the file with the field that was read.
func statesOne(said any, read reflect.Value) error {
	ok := false
	switch v := read.Interface().(type) {
	case time.Duration:
		text, _ := said.(string)
		d, err := time.ParseDuration(text)
		ok = err == nil && d == v
	case flow.Watermark:
		ok = fmt.Sprint(said) == v.String() || number(said) == number(v.Scalar()) || bytesOf(said) == bytesOf(v.Scalar()) && bytesOf(said) >= 0
	case hotspot.Index:
		ok = fmt.Sprint(said) == v.String() || fmt.Sprint(number(said)) == v.String() && number(said) >= 0 || said == 0 && v.String() == "0"
	case argument.Value:
		ok = argument.Of(said) == v
	case interface{ Bool() bool }:
		ok = said == v.Bool()
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		if ok = err == nil && said == string(text); !ok && err == nil {
			ok = said == map[string]string{"allow": "white", "deny": "black"}[string(text)]
		}
	case int:
		f, decimal := said.(float64) // as in 1e3
		ok = said == v || decimal && f == float64(v)
	case string, bool:
		ok = said == v
	case float64:
		ok = number(said) == v
	case []string:
		list, isList := said.([]any)
		ok = isList && len(list) == len(v)
		for i := 0; ok && i < len(v); i++ {
			ok = list[i] == v[i]
		}
	default:
		list, isList := said.([]any)
		if !isList {
			return fmt.Errorf("is %v", said)
		}
		return statesAll(list, read)
	}
	if !ok {
		return fmt.Errorf("%#v is stated, %#v is read", said, read.Interface())
	}
	return nil
}

func number(x any) float64 {
	switch x := x.(type) {
	case int:
		return float64(x)
	case int64:
		return float64(x)
	case uint64:
		return float64(x)
	case float64:
		return x
	}
	return -1
}

// bytesOf parses an amount with its unit. It returns -1 for anything else.
func bytesOf(x any) int64 {
	var n int64
	var unit string
	text, _ := x.(string)
	if _, err := fmt.Sscanf(text, "%d%s", &n, &unit); err != nil {
		return -1
	}
	size, known := map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[unit]
	if !known {
		return -1
	}
	return n * size
}

// shop is a file with every family, comments and both styles.
const shop = `# Rules of a shop.
flow:
  # A plain limit.
  - id: orders
    resource: GET /orders
    threshold: 100

  - id: reports
    resource: POST /reports
    threshold: 5
    behavior: throttle
    maxWait: 2s
    mode: shadow
  - resource: GET /search # warms up
    threshold: 120.5
    behavior: warmUp
    warmUpPeriod: 5s
    coldFactor: 3
    origin: "acme"
  - {resource: GET /users/*, match: prefix, threshold: 50, exclude: [GET /users/me, 'GET /users/x']}
  - resource: POST /export
    threshold: 100
    memoryThreshold: 10
    lowMemory: 0.5
    highMemory: 0.9
  - resource: (GET|PUT) /api/.*
    regex: true
    threshold: 7
    interval: 1m
    buckets: 60
    strict: false
  - {resource: sql, metric: concurrency, threshold: 50, relation: chain, ref: cron}

hotspot:
  - id: users
    resource: GET /orders
    param: user
    threshold: 10
    strict: false
    burst: 5
    exceptions:
      - value: batch
        threshold: 100
      - {value: 42, threshold: 0}
  - resource: GET /report
    index: 0
    threshold: 1
    metric: concurrency

authority:
  - resource: POST /refunds
    origins: [back-office, support]
  - {resource: GET /orders, list: deny, origins: [crawler]}

system:
  - metric: cpu
    threshold: 0.8
    strategy: gate
  - metric: rt
    maxRT: 200ms

isolation:
  - resource: render pdf
    threshold: 8
    maxQueue: 100
    maxWait: 250ms

adaptive:
  - {resource: GET /search, floor: 4, ceiling: 200, mode: off}

breaker:
  - resource: "*"
    threshold: 0.5
    minCalls: 20
    interval: 10s
    exclude:
      - GET /health
  - resource: GET /search
    strategy: slowRatio
    slowRT: 300ms
    threshold: 0.8

outlier:
  - resource: payments
    threshold: 0.5
    maxEjected: 0.3
`

func originals(t testing.TB) []string {
	t.Helper()
	texts := []string{shop}
	for _, path := range []string{"testdata/set.yaml", "testdata/dialects/native.yaml"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	return texts
}

// The test makes a thousand changes to valid files, the same in each run, and a thousand others. Each
// changed file is still valid, and read the same by an independent reader, or refused at the change.
//
// An error is at the change if it is within a line of it. If the change no longer fits the remainder of
// its rule, such as a field that the changed behavior doesn't read or a missing key, it may be at that
// rule or its field; if a family became another one, at its rules. If the text is not even YAML, it is
// where the scanner stops, which is not before the change.
func TestMutations(t *testing.T) {
	race.OneGoroutine(t)
	all := originals(t)
	for _, rng := range []*rand.Rand{rand.New(rand.NewPCG(15, 1000)), chance.Source(t)} {
		accepted, near, refused := 0, 0, 0
		tries := figure.Size(400, 400, 1000, 100_000)
		for range tries {
			m := mutate(rng, all[rng.IntN(len(all))])
			set, err := Parse("r.yaml", []byte(m.text))
			if err == nil {
				accepted++
				require.NoError(t, states([]byte(m.text), set), "%s at %v:\n%s", m.what, m.lines, m.text)
				continue
			}
			refused++
			line, ok := m.located(t, err)
			require.True(t, ok, "%s at %v, reported:\n%v\n%s", m.what, m.lines, err, m.text)
			if line {
				near++
			}
		}
		t.Logf("%d are valid; of %d that are not, %d are reported within a line", accepted, refused, near)
		require.Greater(t, accepted, tries/10)
		require.Greater(t, near, refused*9/10)
	}
}

var placed = regexp.MustCompile(`\bat (\d+):\d+`)

// located reports whether an error is within a line of the change, and whether it is at the
// change.
func (m mutant) located(t *testing.T, err error) (line, ok bool) {
	t.Helper()
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		e, found := errors.AsType[*FileError](err)
		require.True(t, found)
		lines := []int{e.Line} // and the lines that it names
		for _, at := range placed.FindAllStringSubmatch(e.Problem, -1) {
			n, err := strconv.Atoi(at[1])
			require.NoError(t, err)
			lines = append(lines, n)
		}
		first, last, family := m.ruleOf(e.Path)
		for _, changed := range m.lines {
			for _, l := range lines {
				line = line || l >= changed-1 && l <= changed+1
			}
			ok = ok || changed >= first-1 && changed <= last+1 || changed == family
		}
		if strings.HasPrefix(e.Problem, "is not YAML") {
			ok = ok || e.Line >= slices.Min(m.lines)-1
		}
	}
	return line, line || ok
}

// ruleOf returns the first and the last line of the rule that a path begins with, and the line of
// the key of its family, or 0 if there is none.
func (m mutant) ruleOf(path string) (first, last, family int) {
	key, rest, _ := strings.Cut(path, "[")
	number, _, _ := strings.Cut(rest, "]")
	i, err := strconv.Atoi(number)
	var doc yaml.Node
	if err != nil || yaml.Unmarshal([]byte(m.text), &doc) != nil || len(doc.Content) == 0 {
		return 0, 0, 0
	}
	root := doc.Content[0].Content
	for ; len(root) > 0; root = root[2:] {
		if rules := root[1].Content; root[0].Value == key && i < len(rules) {
			return rules[i].Line, lastLine(rules[i]), root[0].Line
		}
	}
	return 0, 0, 0
}

// lastLine is the last line on which something of a node begins.
func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, child := range n.Content {
		last = max(last, lastLine(child))
	}
	return last
}
