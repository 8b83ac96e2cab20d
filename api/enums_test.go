package api_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/gateway"
	"github.com/penstock-go/penstock/rules/lint"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// enums holds the last value of every enumeration that users see.
var enums = []fmt.Stringer{
	authority.Deny, breaker.ConsecutiveErrors, breaker.ForcedClosed, breaker.ForceClosed, core.KindCustom, core.Unknown, clocks.SleepAdvance,
	spec.MatchPath, spec.Off, flow.Concurrency, flow.Chain, flow.Ring, flow.TokenBucket, hotspot.Concurrency, hotspot.TokenBucket, hotspot.Refill, hotspot.MissingRefuse,
	inspect.NodeInbound, rules.SentinelGo, lint.Notice, system.QPS, system.Gate, gateway.Cookie, gateway.Contains, refusal.Closing, refusal.XRateLimit,
	cluster.PerMember, cluster.Closed, spec.ShedLevels, spec.PerMonth, upstream.PerHost,
}

// Every enumeration is written as its name in JSON, as a value and as a key, and is read back; a
// value without a name is an error, and prints as its number.
func TestEnumsAreNamesInJSON(t *testing.T) {
	for _, last := range enums {
		kind := reflect.TypeOf(last)
		values := valuesOf(kind)
		require.Len(t, values, int(reflect.ValueOf(last).Uint())+1, kind)
		seen := make(map[string]bool)
		for _, v := range values {
			name := v.Interface().(fmt.Stringer).String()
			assert.NotRegexp(t, `^$|[^\w-]`, name, kind)
			assert.False(t, seen[name], "%v: %s is there twice", kind, name)
			seen[name] = true

			data, err := json.Marshal(struct {
				Value any
				Keys  any
			}{v.Interface(), mapWith(v)})
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintf(`{"Value":%q,"Keys":{%[1]q:1}}`, name), string(data))

			back := reflect.New(kind)
			switch err := json.Unmarshal(fmt.Appendf(nil, "%q", name), back.Interface()); {
			case v.Interface() == system.None, v.Interface() == hotspot.MissingNone, v.Interface() == spec.PerNone:
				assert.Error(t, err, "no rule can have it")
			default:
				assert.NoError(t, err, kind)
				assert.Equal(t, v.Interface(), back.Elem().Interface())
			}
		}
		beyond := reflect.New(kind)
		beyond.Elem().SetUint(uint64(len(values)))
		_, err := json.Marshal(beyond.Elem().Interface())
		assert.Error(t, err, kind)
		assert.Contains(t, beyond.Elem().Interface().(fmt.Stringer).String(), fmt.Sprintf("(%d)", len(values)))
		for _, text := range []string{"", "nothing like it", "1"} {
			assert.ErrorContains(t, beyond.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)), "unknown", kind)
		}
	}
}

func mapWith(key reflect.Value) any {
	m := reflect.MakeMap(reflect.MapOf(key.Type(), reflect.TypeFor[int]()))
	m.SetMapIndex(key, reflect.ValueOf(1))
	return m.Interface()
}

// The list above has every enumeration.
func TestEveryEnumIsKnown(t *testing.T) {
	known := make(map[string]bool)
	for _, e := range enums {
		known[strings.TrimPrefix(fmt.Sprintf("%T", e), "*")] = true
	}
	declared := regexp.MustCompile(`(?m)^type ([A-Z]\w*) uint(?:8|16|32)?\b`)
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || path == "../proof" || path == "../bench" || path == "../internal" || path == "../examples"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			name := filepath.Base(filepath.Dir(path)) + "." + m[1]
			assert.True(t, known[name], "%s: put %s into the list", path, name)
			found++
		}
		return err
	})
	require.NoError(t, err)
	assert.Len(t, known, found)
}
