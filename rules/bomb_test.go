package rules

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/race"
)

// bombs are small texts that expand to something large, or take long to refuse. All of them must be
// refused.
func bombs() map[string]string {
	fill := func(s string, size int) string { return strings.Repeat(s, size/len(s)) }
	const whole = MaxFileSize - 100
	laughs := []byte("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'j'; c++ {
		laughs = fmt.Appendf(laughs, "%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	return map[string]string{
		"a billion laughs":       string(laughs),
		"too large":              fill("#\n", MaxFileSize+2),
		"opening brackets":       fill("[", whole),
		"opening brackets.json":  fill("[", whole),
		"deep":                   strings.Repeat("[", 9999) + strings.Repeat("]", 9999),
		"deep.json":              strings.Repeat("[", 9999) + strings.Repeat("]", 9999),
		"deep dashes":            fill("- ", 19998),
		"deep questions":         fill("? ", 19998),
		"deep lines":             "a:\n" + fill(fill("- ", 8000)+"\n", 80_000),
		"numbers":                "flow: [" + fill("1,", whole) + "]",
		"numbers.json":           `{"flow": [` + fill("1,", whole) + "1]}",
		"empty objects.json":     `{"flow": [` + fill("{},", whole) + "{}]}",
		"many numbers":           "flow: [" + fill("1,", 2*maxItems-10) + "]",
		"many keys":              "{" + fill("a,", 2*maxItems-10) + "}",
		"many lines":             fill("a: 1\n", 5*maxItems-10),
		"many comments":          fill("- 1 #\n#\n", 8*maxItems/5-10),
		"many texts.json":        `{"flow": [` + fill(`"\n",`, 5*maxItems-100) + "1]}",
		"unknown keys.json":      `{"flow": [{` + fill(`"a":1,`, 6*maxItems-100) + `"a":1}]}`,
		"different keys":         "{" + different("k%d,", 2*maxItems) + "}",
		"different keys in one":  "flow: [{" + different("k%d,", maxItems-10) + "}]",
		"different keys.json":    "{" + different(`"k%d":1,`, maxItems-10) + `"k":1}`,
		"long patterns":          patterns("a{1000}"),
		"patterns of letters":    patterns(`\pL`),
		"patterns of any case":   patterns("[B-\U0001e942]"),
		"patterns that fail":     patterns(`[\pL\PL](`),
		"patterns alike":         patterns("ab|"),
		"different resources":    "flow:\n" + different("- {resource: r%d}\n", MaxRules),
		"many tags":              "[" + fill("!a b,", 5*maxItems-10) + "]",
		"many questions":         fill("?\n", maxItems-10),
		"unknown keys":           "flow: [{" + fill("k: 1, ", 6*maxItems-100) + "}]",
		"rules of Java":          "[" + fill(`{"count":1},`, 12*maxItems) + `{"grade":1}]`,
		"rules of Java.json":     "[" + fill(`{"count":1},`, 12*MaxRules-120) + `{"grade":1}]`,
		"system rules of Java":   "[" + fill(`{"qps":1,"avgRt":1,"maxThread":1},`, 34*4000) + `{"qps":1}]`,
		"rules of Go.json":       "[" + fill(`{"controlBehavior":0,"threshold":1,"resource":"a"},`, 51*(MaxRules+1)) + `{}]`,
		"values.json":            `{"hotspot":[{"resource":"a","index":0,"threshold":1,"exceptions":[` + fill(`{"value":"x","threshold":1},`, 27*maxItems/3) + `{}]}]}`,
		"many lists":             `{"dialect":"sentinel-go",` + different(`"flow-rule%d":[],`, maxItems/3) + `"flow":[]}`,
		"values of Java.json":    `[{"resource":"a","paramIdx":0,"count":1,"paramFlowItemList":[` + fill(`{"object":"x","count":1},`, 24*maxItems/3) + `{}]}]`,
		"long patterns of Java":  strings.ReplaceAll(patterns("a{1000}"), "threshold", "count"),
		"too many rules":         "flow: [" + fill("{resource: a}, ", 15*(MaxRules+1)) + "]",
		"too many rules.json":    `{"flow": [` + fill(`{"resource": "a"}, `, 19*MaxRules) + "{}]}",
		"the same rule":          "flow: [" + fill("{resource: a}, ", 15*MaxRules) + "]",
		"a broken last line":     fill("a: 1\n", 4*maxItems) + " b",
		"a long key":             fill("k", whole) + ": 1",
		"a long text":            `"` + fill("x", whole),
		"lines of text":          `"` + fill("\n", maxItems-1),
		"an endless indentation": fill(" ", whole) + "a",
	}
}

// patterns fills a file with rules whose regular expressions, ignoring case, repeat a part as often as
// allowed.
func patterns(part string) string {
	part = "(?i)" + strings.Repeat(part, 1000/len(part))
	return "flow:\n" + different("- {id: r%d, resource: '"+strings.ReplaceAll(part, "%", "%%")+"', regex: true, threshold: 1}\n", MaxRules)
}

// different repeats a line with another number each time, as often as a file has room for, but not
// more than n times.
func different(line string, n int) string {
	var text strings.Builder
	for i := 0; i < n && text.Len() < MaxFileSize-2*len(line); i++ {
		fmt.Fprintf(&text, line, i)
	}
	return text.String()
}

// Refusing them takes at most 32 MiB in total, rather than a multiple of their nominal size.
// (BenchmarkBomb has the times.)
func TestBombs(t *testing.T) {
	race.OneGoroutine(t)
	for name, data := range bombs() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(name, []byte(data))
		runtime.ReadMemStats(&after)
		require.Error(t, err, name)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), name)
	}
}

func BenchmarkBomb(b *testing.B) {
	for name, data := range bombs() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = Parse(name, []byte(data))
			}
		})
	}
}

// The largest allowed file is read.
func TestLargest(t *testing.T) {
	race.OneGoroutine(t)
	var text strings.Builder
	text.WriteString("flow:\n")
	for i := range MaxRules {
		fmt.Fprintf(&text, "  - id: r%d\n    resource: GET /r\n    threshold: %d\n    interval: 2s\n    mode: off\n", i, i)
	}
	require.Less(t, text.Len(), MaxFileSize)
	set, err := Parse("r.yaml", []byte(text.String()))
	require.NoError(t, err)
	require.Equal(t, MaxRules, set.Len())

	json, err := set.MarshalJSON()
	require.NoError(t, err)
	require.Less(t, len(json), MaxFileSize)
	again, err := Parse("r.json", json)
	require.NoError(t, err)
	assert.Equal(t, set, again)
}

func BenchmarkParse(b *testing.B) {
	text, err := golden.YAML()
	require.NoError(b, err)
	for b.Loop() {
		_, _ = Parse("r.yaml", text)
	}
}
