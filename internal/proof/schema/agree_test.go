package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/upstream"
)

// unsaid lists the reasons for which the loader refuses rules that the schema accepts: the length
// of a duration, the relation of two numbers, or the text of an expression.
var unsaid = []string{
	`weightBy: has no meaning without weights`,
	`perShareQueue: is \d+: use a whole number from 0 to maxQueue`,
	`: use a duration (from|up to) `,
	`obey: is false, and the rule has neither retries nor throttle`,
	`buckets don't divide an interval`,
	`too small: it would be read as 0`,
	`per second: a throttle admits at most`,
	`per second: a token bucket refills by at most`,
	`the bucket would take more than 73 years to fill`,
	`memoryThreshold: is .*: use a number above 0 and below the threshold`,
	`memoryThreshold: is .*: only whole units count here`,
	`highMemory: is .*: use more than lowMemory`,
	`highMemory: is .* and lowMemory .*: use two shares, or bytes for both`,
	`(low|high)Memory: is .* bytes: use more than 0 and at most 1EiB`,
	`(low|high)Memory: "\d+.iB" is not an amount of memory`, // too many bytes for a number
	`ceiling: is .*, below the floor`,
	`ceiling: equals the floor`,
	`start: is .*: use a whole number from the floor to the ceiling`,
	`maxEndpoints: is .*: with .* buckets and .* probes each`,
	`maxEjected: is .*, which is less than one endpoint out of`,
	`resource: is not a valid regular expression`,
	`resource: has a star in ".*", but a star stands for a whole part`,
	`origins: entry \d+ is empty`,
	`unit: is calls`,
	`lockout: has (for: |after: |no for)`,
	`lockout: has no meaning for (metric concurrency|cluster|per)`,
	`notify: has no meaning for (cluster|origin other)`,
	`share: has no meaning for (a unit|cluster)`,
	`shed: has no meaning for (a unit|cluster)`,
	`burst: has no meaning for (share|shed|memoryThreshold|cluster)`,
	`keys: has only the resource`,
	`exceptions: entry \d+ has (a value|values|\d+ values), but the rule's`,
	`exceptions: entry \d+ is about all keys`,
	`exceptions: .* appears twice`,
	`together: has no meaning for a rule of one resource`,
	`together: has no meaning for origin other`,
	`unit: has no meaning for strict: false`,
	`maxQueue: has no meaning for a rule with a unit`,
	`threshold: is .*: use a whole number from 0 to 1000000000$`, // more only with a unit
	`(estimate|maxReserve): is .*: use a whole number`,
	`estimate: is .*: the bucket holds`,
	`timezone: is `,
	`burst: is .*: use a number from 0 to 1000000000$`, // more only with a unit
}

// rare rules are hardly ever drawn.
var rare = map[string][]map[string]any{
	"flow": {
		{"resource": "a", "threshold": 1, "interval": "1h", "behavior": "tokenBucket", "burst": 1_000_000_000},
		{"resource": "/a*b/*", "match": "path", "threshold": 1},
		{"resource": "a", "threshold": 1, "behavior": "throttle", "shed": "levels", "unit": "tokens"},
		{"resource": "a", "threshold": 1, "behavior": "throttle", "share": map[string]any{"by": "origin"}, "unit": "tokens"},
		{"resource": "a", "threshold": 1e12, "behavior": "tokenBucket"},
		{"resource": "a", "threshold": 1e12, "behavior": "throttle"},
		{"resource": "a", "threshold": 9, "behavior": "throttle", "burst": 5},
		{"resource": "a", "threshold": 9, "behavior": "throttle", "burst": 5, "shed": "levels"},
		{"resource": "a", "threshold": 1, "unit": "calls"},
		{"resource": "a", "threshold": 1, "unit": "a", "estimate": 2},
		{"resource": "a", "threshold": 9, "unit": "a", "estimate": 5, "behavior": "tokenBucket", "burst": 3},
		{"resource": "a", "threshold": 1e6, "behavior": "tokenBucket", "burst": 1_000_000_001},
		{"resource": "a", "threshold": 1e12, "behavior": "tokenBucket", "burst": 1_000_000_001, "unit": "a"},
		{"resource": "*", "threshold": 1, "together": true, "origin": "other"},
		{"resource": "a", "threshold": 1, "notify": []string{"80%"}, "origin": "other"},
		{"id": "a", "resource": "a", "threshold": 1, "notify": []string{"80%"}, "cluster": map[string]any{"scope": "global"}},
		{"resource": "a", "threshold": 1, "per": "week", "timezone": "Europe/Berlin", "starts": "sunday 23:59"},
		{"resource": "a", "threshold": 1, "per": "day", "timezone": "Europe/Atlantis"},
		{"resource": "a", "threshold": 1, "unit": strings.Repeat("x", 65)},
	},
	"hotspot": {
		{"resource": "a", "param": "b", "threshold": 1, "per": "month", "timezone": "Asia/Tokyo", "starts": "31 06:00"},
		{"resource": "a", "param": "b", "threshold": 1, "unit": "c", "strict": false},
		{"resource": "a", "param": "b", "threshold": 1, "per": "day", "lockout": map[string]any{"after": 2, "for": "1m"}},
		{"resource": "a", "param": "b", "threshold": 1, "metric": "concurrency", "lockout": map[string]any{"after": 2, "for": "1m"}},
		{"id": "a", "resource": "a", "param": "b", "threshold": 1, "cluster": map[string]any{"scope": "global"}, "lockout": map[string]any{"after": 2, "for": "1m"}},
		{"resource": "a", "keys": []string{"resource"}, "threshold": 1},
		{"resource": "a", "keys": []string{"param a", "origin"}, "threshold": 1, "exceptions": []any{map[string]any{"value": "x", "threshold": 1}}},
		{"resource": "a", "keys": []string{"param a", "origin"}, "threshold": 1, "exceptions": []any{map[string]any{"values": []any{"*", "*"}, "threshold": 1}}},
		{"resource": "a", "param": "b", "threshold": 1, "exceptions": []any{map[string]any{"value": "x", "threshold": 1}, map[string]any{"value": "x", "threshold": 1}}},
	},
	"isolation": {
		{"resource": "a", "threshold": 1_000_000_001, "unit": "bytes"},
	},
}

// field is a field of a rule, and values to try in it: right ones, wrong ones, and the ends of
// ranges.
type field struct {
	key    string
	enum   bool
	values []any
}

var longText = strings.Repeat("x", 1025)

// valuesFor returns the values to try in a field of the given type.
func valuesFor(t *testing.T, typ reflect.Type) (values []any, enum bool) {
	t.Helper()
	common := []any{nil, "nonsense", map[string]any{}, []any{[]any{}}}
	switch x := reflect.New(typ).Interface().(type) {
	case *time.Duration:
		values = []any{"0s", "1ns", "10ms", "1s", "1.5s", "+1m", "1h0m0.5s", "24h", "25h", "-1s", "-0s", "5", "0", ".5s", "1.s", "0.1ns", "1x", "s", "", "1 s", 5, true}
	case *hotspot.Index:
		values = []any{0, 1, -1, 1000, 1001, -1001, 1.5, "0", true}
	case *flow.Watermark:
		values = []any{0, 0.5, 0.25, 1, 1.5, 2, -1, "512MiB", "1GiB", "0B", "1GB", "-1B", "1 B", "9999999999GiB", "2000000TiB", true}
	case *argument.Value:
		values = []any{"a", 1, 1.5, true, "", strings.Repeat("x", 64), strings.Repeat("x", 65)}
	case *[]argument.Value:
		values = []any{[]any{"a", 1}, []any{"*", "b"}, []any{"a", "b", true}, []any{"a"}, []any{"*", "*"}, []any{"", "a"}, []any{strings.Repeat("x", 65), 1}, []any{nil, 1}, []any{"a", 1, 2, 3, 4}, "a"}
	case *map[string]float64:
		one := func(name string, v any) map[string]any { return map[string]any{name: v} }
		values = []any{one("a", 1), one("a", 0.5), map[string]any{"a": 1, "b": 0}, one("", 1), one(strings.Repeat("x", 64), 1), one(strings.Repeat("x", 65), 1), one("a", -1), one("a", 1e15), one("a", 1.1e15), one("a", "1"), []any{1}}
	case *spec.Share:
		with := func(key string, v any) map[string]any { return map[string]any{"by": "param tenant", key: v} }
		values = []any{
			with("by", "origin"), with("by", "x"), with("by", "param "), with("by", ""), with("by", 1), with("weights", map[string]any{}), with("weights", map[string]any{"a": 1, "b": 1000}),
			with("weights", map[string]any{"a": 0}), with("weights", map[string]any{"a": 1001}), with("weights", map[string]any{"a": 1.5}), with("weights", map[string]any{"": 1}),
			with("weights", []any{1}), with("perShareQueue", 1), with("perShareQueue", 1_000_000), with("perShareQueue", 1_000_001), with("perShareQueue", -1), with("maxShares", 10_000), with("maxShares", 10_001), with("unknown", 1),
			with("weightBy", "origin"), with("weightBy", ""), map[string]any{"by": "origin", "weightBy": "param plan", "weights": map[string]any{"a": 1}}, map[string]any{"maxShares": 1},
		}
	case *spec.Response:
		for _, status := range []any{0, 399, 400, 503, 599, 600, 503.5, "503"} {
			values = append(values, map[string]any{"status": status})
		}
		for _, body := range []any{"", "busy", strings.Repeat("x", 4096), strings.Repeat("x", 4097), 1} {
			values = append(values, map[string]any{"status": 503, "body": body})
		}
		values = append(values, map[string]any{"unknown": 1})
	case *spec.Floors:
		for _, v := range []any{"5%", "0%", "00%", "100%", "0100%", "101%", "1000%", "-1%", "+1%", "1.5%", "%", "5", "", "5 %", 5, true, nil} {
			values = append(values, map[string]any{"sheddable": v}, map[string]any{"critical": v, "sheddablePlus": "3%"})
		}
		values = append(values, map[string]any{"criticalPlus": "5%"})
	case *hotspot.Lockout:
		with := func(after, lasts any) map[string]any { return map[string]any{"after": after, "for": lasts} }
		values = []any{with(3, "10m"), with(1, "10ms"), with(100, "24h"), with(0, "1m"), with(101, "1m"), with(-1, "1m"), with(1.5, "1m"), with(2, "25h"), with(2, "1ms"), with(2, 5), map[string]any{"after": 2}, map[string]any{"for": "1m"}, map[string]any{"until": 1}}
	case *upstream.Retries:
		values = []any{
			map[string]any{"share": 0.5}, map[string]any{"share": 0}, map[string]any{"share": -0.1}, map[string]any{"share": 1.1}, map[string]any{"least": 1_000_000},
			map[string]any{"least": 1_000_001}, map[string]any{"least": 1.5}, map[string]any{"share": "20%"}, map[string]any{"most": 1},
		}
	case *upstream.Throttle:
		values = []any{
			map[string]any{"k": 1}, map[string]any{"k": 0}, map[string]any{"k": 0.5}, map[string]any{"k": 100.5}, map[string]any{"interval": "10s"},
			map[string]any{"interval": "2h"}, map[string]any{"interval": 5}, map[string]any{"k": "2"}, map[string]any{"buckets": 1},
		}
	case interface{ SetBool(bool) }, *bool:
		values = []any{true, false, "true", 1, 0}
	case encoding.TextUnmarshaler:
		for i := range uint64(16) {
			v := reflect.New(typ).Elem()
			v.SetUint(i)
			values = append(values, fmt.Sprint(v.Interface()))
		}
		values, enum = append(values, "white", "black", "", "Exact", 1, true), true
	case *string:
		values = []any{"", "a", "b", "*", "GET /a/*", "GET /a/*/b", "UTC", "06:00", "monday", "monday 06:00", "15", "31 23:59", "32", "24:00", "* /a", "*/b", "/*", "a*b", "/a*b/*", "/x", "a(", longText[1:], longText, 5, true}
	case *[]string:
		values = []any{[]string{}, []string{"a"}, []string{"a", "b"}, []string{"a", "a"}, []string{""}, []string{" "}, []string{longText}, "a", []any{1},
			[]string{"param a"}, []string{"param a", "origin"}, []string{"arg 0", "arg -1000", "resource"}, []string{"arg 1001"}, []string{"arg 01"}, []string{"param "}, []string{"origin", "origin"},
			[]string{"80%", "100%"}, []string{"80%", "80%"}, []string{"0%"}, []string{"101%"}, []string{"05%"}, []string{"1%", "2%", "3%", "4%"}, []string{"1%", "2%", "3%", "4%", "5%"}}
	case *float64:
		values = []any{0, 1e-9, 0.5, 1, 1.5, 2, 100, 1e9, 1e9 + 1, 1e15, 1.1e15, 2e15, -0.5, -1, "1", true}
	case *int:
		values = []any{0, 1, 2, 3, 5, 10, 20, 1000, 1001, 1440, 1441, 10_000, 10_001, 1_000_000, 1_000_001, 1_000_000_000, 1_000_000_001, -1, 1.5, "1", true}
	default:
		require.Equal(t, reflect.Slice, typ.Kind(), "values to try for a %T", x)
		item := func(members ...any) map[string]any {
			m := map[string]any{}
			for i := 0; i < len(members); i += 2 {
				m[members[i].(string)] = members[i+1]
			}
			return m
		}
		values = []any{[]any{}, []any{item()}, []any{item("unknown", 1)}}
		var right []any // a right one, and each field wrong
		for f := range typ.Elem().Fields() {
			right = append(right, keyOf(f), 1)
		}
		values = append(values, []any{item(right...)})
		for f := range typ.Elem().Fields() {
			tries, _ := valuesFor(t, f.Type)
			for _, v := range tries {
				one := item(right...)
				one[keyOf(f)] = v
				values = append(values, []any{one})
			}
			without := item(right...)
			delete(without, keyOf(f))
			values = append(values, []any{without})
		}
	}
	return append(values, common...), enum
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

// fieldsOf returns the fields of a rule, other fields that a file may have, and an unknown one.
func fieldsOf(t *testing.T, rule reflect.Type) (all []field) {
	t.Helper()
	for f := range rule.Fields() {
		if f.Type == reflect.TypeFor[cluster.Rule]() {
			continue // the schema leaves its companions to the loader
		}
		values, enum := valuesFor(t, f.Type)
		all = append(all, field{keyOf(f), enum, values})
	}
	return append(all, field{"regex", false, []any{true, false, "true", 1, nil}}, field{"unknown", false, []any{1}})
}

// judge passes a rule to both. It reports whether both accepted it, and whether both refused it.
type judge struct {
	valid  func(doc any) error
	family string
	used   map[string]bool // reasons that no schema can give
	played *int64
}

func (j judge) agree(t *testing.T, rule map[string]any) (taken bool) {
	t.Helper()
	*j.played++
	text, err := json.Marshal(map[string]any{j.family: []any{rule}})
	require.NoError(t, err)
	_, refused := rules.Parse("r.json", text)
	invalid := j.valid(instance(t, text))
	switch {
	case refused == nil && invalid != nil:
		require.Fail(t, "the loader accepts a rule that the schema refuses", "%.2000s\n%v", text, invalid)
	case refused != nil && invalid == nil:
		i := slices.IndexFunc(unsaid, func(reason string) bool { return regexp.MustCompile(reason).MatchString(refused.Error()) })
		require.GreaterOrEqual(t, i, 0, "the schema accepts a rule that the loader refuses: %.2000s\n%v", text, refused)
		j.used[unsaid[i]] = true
	}
	return refused == nil
}

// The schema and the loader agree on every field of every family, alone and combined with others.
// Every field is valid in some rule and invalidates another valid one: so the test finds a field
// that is new, removed, or has another range.
func TestSchemaAgreesWithTheLoader(t *testing.T) {
	schema := compiled(t)
	used, played := make(map[string]bool), int64(0)
	for list := range reflect.TypeFor[rules.Set]().Fields() {
		rule := list.Type.Elem()
		if strings.HasSuffix(rule.PkgPath(), "/gateway") || rule == reflect.TypeFor[rules.Cluster]() {
			continue // the schema does not describe all of it
		}
		j := judge{schema.Validate, keyOf(list), used, &played}
		fields := fieldsOf(t, rule)
		right, wrong := make(map[string]bool), make(map[string]bool)
		rng := rand.New(rand.NewPCG(1, 2))
		try := func(doc map[string]any, f field) {
			for _, v := range f.values {
				doc[f.key] = v
				if j.agree(t, doc) {
					right[f.key] = true
				} else {
					wrong[f.key] = true
				}
			}
			delete(doc, f.key)
			j.agree(t, doc)
		}
		// Valid rules, as many kinds as the names in them allow.
		seeds := rightRules(t, j, fields, rng)
		require.NotEmpty(t, seeds, list.Name)
		for _, seed := range seeds[:min(len(seeds), figure.Size(20, 20, 40, 40))] {
			for _, f := range fields {
				try(maps.Clone(seed), f)
			}
		}
		// And arbitrary combinations of fields.
		for range figure.Size(1_000, 1_000, 5_000, 100_000) {
			doc := maps.Clone(seeds[rng.IntN(len(seeds))])
			for range 1 + rng.IntN(4) {
				f := fields[rng.IntN(len(fields))]
				doc[f.key] = f.values[rng.IntN(len(f.values))]
			}
			j.agree(t, doc)
		}
		for _, doc := range rare[j.family] {
			j.agree(t, doc)
		}
		for _, f := range fields {
			if f.key != "unknown" && (f.key != "regex" || right["match"]) {
				assert.True(t, right[f.key], "no %s rule was valid with %s: add values to try", list.Name, f.key)
			}
			if f.key != "id" && f.key != "param" { // any text is right there
				assert.True(t, wrong[f.key], "no %s rule was invalid because of its %s: add values to try", list.Name, f.key)
			}
		}
	}
	for _, reason := range unsaid {
		assert.True(t, used[reason], "the loader never says %q: remove it if that error no longer exists", reason)
	}
	figure.Report(t, figure.Figure{Name: "rules of which the schema and the loader say different things", N: played})
}

// rightRules finds rules that the loader accepts: for each value of each enumeration, with as few
// other fields as possible.
func rightRules(t *testing.T, j judge, fields []field, rng *rand.Rand) (found []map[string]any) {
	t.Helper()
	kinds := make(map[string]bool)
	for range figure.Size(3_000, 3_000, 10_000, 10_000) {
		if len(found) == 40 {
			break
		}
		doc := make(map[string]any)
		for _, f := range fields {
			switch {
			case f.key == "resource":
				doc[f.key] = []any{"a", "*", "GET /a/*", "GET /a/*/b"}[rng.IntN(4)]
			case f.key == "threshold":
				doc[f.key] = []any{1, 100, 0.5}[rng.IntN(3)]
			case rng.IntN(len(fields)) < 3:
				doc[f.key] = f.values[rng.IntN(len(f.values))]
			}
		}
		if doc["lowMemory"] != nil { // valid only together
			doc["threshold"], doc["memoryThreshold"], doc["lowMemory"], doc["highMemory"] = 100, 10, 0.5, 1
		}
		if doc["maxQueue"] != nil {
			doc["threshold"], doc["maxQueue"], doc["maxWait"] = 1, 5, "1s"
		}
		if doc["share"] != nil && j.family == "flow" {
			doc["behavior"] = "throttle"
		}
		var kind []string
		for _, f := range fields {
			if v, ok := doc[f.key]; ok && (f.enum || doc[f.key] != nil) {
				if f.enum {
					kind = append(kind, fmt.Sprint(f.key, "=", v))
				} else {
					kind = append(kind, f.key)
				}
			}
		}
		if len(kind) > 6 || kinds[strings.Join(kind, " ")] {
			continue
		}
		if j.agree(t, doc) {
			kinds[strings.Join(kind, " ")] = true
			found = append(found, doc)
		}
	}
	return found
}
