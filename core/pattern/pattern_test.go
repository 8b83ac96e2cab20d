package pattern_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatternSize(t *testing.T) {
	for text, want := range map[string]int{
		"":                             0 + 1, // an empty match
		"GET /orders":                  11,
		"GET /.*":                      7, // six steps
		"a{1000}":                      1001,
		"(?:ab){2,10}":                 2*10 + 8,
		"(?:ab){3,}":                   10, // eight steps
		"(a|b)":                        5,
		"(ab|cd)":                      2 + 2 + 1 + 2,
		"[a-z]{1,100}":                 100 + 99,
		strings.Repeat("é", 512):       1024, // bytes
		strings.Repeat("ab|", 300):     900,  // the full length counts
		"(((a{10}){10}){10})":          10*10*10 + 2*10*10 + 2*10 + 2 + 10*10 + 10 + 1,
		"a{1000}b{1000}c{1000}":        3003,
		"(?:a{1000}|b{1000}){0}":       2003 + 1, // parsed, although it matches nothing
		"(?:x(?:y(?:z)?)?)?":           18,
		"[\\x{0}-\\x{10FFFF}]{999}":    1000, // one class: everything
		`\p{Lu}\PL`:                    200,
		`(?i)\p{Lu}\PL`:                400,
		"(?i)[a-z]-?[A-Z]":             16,
		"(?i)[^a-я]x":                  (0x44f - 'a') / 12,
		"(?s-i:[a-я])":                 (0x44f - 'a') / 12, // it might
		"(?P<i>[a-я])":                 13,                 // bytes
		`(?i)[a-\x{ff}]`:               5000,
		"(?i:[\\x{10000}-\U00010fff])": (0x10fff - '}') / 12, // the range might begin that low
	} {
		size, err := pattern.Size(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, size, text)
	}
}

func TestPatternSizeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("a", 1025): "the regular expression has 1025 bytes; the maximum is 1024",
		"(":                       "is not a valid regular expression: missing closing ): \"(\"",
		`\Qa`:                     `is not a valid regular expression: missing closing ): "^(?s:\\Qa)$"`,
		"(\n\x1b[31m":             `is not a valid regular expression: missing closing ]: "[31m"`,
		"(a{100}){100}":           `is not a valid regular expression: invalid repeat count: "{100}"`,
		strings.Repeat("a{1000}", 10): "the regular expression has 10010 steps when its repetitions are written out; " +
			"the maximum is 10000: repeat less, or name fewer characters",
		`\pL{990}`: "the regular expression has 82171 steps when its repetitions are written out; " +
			"the maximum is 10000: repeat less, or name fewer characters",
		"(?i)[B-\U0001e942]": "the regular expression has 10432 steps when its repetitions are written out; " +
			"the maximum is 10000: repeat less, or name fewer characters",
	} {
		_, err := pattern.Size(text)
		assert.EqualError(t, err, want, text)
	}
}

// Short expressions can stand for long ones, for every kind of step.
func heavyPatterns() []string {
	fill := func(s string) string { return strings.Repeat(s, 1024/len(s)) }
	return []string{
		fill("a"), fill("."), fill("()"), fill("(a)"), fill("(|a)"), fill("a?"), fill("(?:a*)"), fill("a|"), fill("ab|"), fill("ä|é|"),
		fill("[a-c]"), fill(`\pL`), fill(`\pL{2}`), fill(`(?i)\pL`), fill(`[^\pL\pN]`), fill(`(?i)[\pL\pN]`), fill(`(?i)\w`),
		"a{1000}", strings.Repeat("a{1000}", 9), "[a-z]{1,1000}", "(?:a{0,100}){0,10}", "(((a?){0,10}){0,10}){0,10}", "(){1000}", "(?:a{0}){1000}",
		`\pL{100}`, `\pL{1,100}`, `\PL{100}`, `(?:\pL|1){100}`, `(?:\p{Lu}|\p{Ll}|\p{Nd}){100}`, `(?:\pL?){100}`, `(?i)[[:alpha:]]{900}`,
		"(?i)k{900}", `(?:\b){1000}`, "[^a]{1000}", strings.Repeat("(?:", 200) + "a" + strings.Repeat(")?", 200),
	}
}

// The cost of an expression is bounded by its size, which is known before it is compiled, and
// computing the size costs no more.
func TestPatternSizeBoundsTheCost(t *testing.T) {
	for _, text := range heavyPatterns() {
		var size int
		measured := allocated(func() { size, _ = pattern.Size(text) })
		if size == 0 {
			size = pattern.MaxSize // the size was larger
		}
		compiled := allocated(func() { regexp.MustCompile("^(?:" + text + ")$") })
		assert.Less(t, measured, 700*uint64(size)+2_000, "measuring %.30s of size %d", text, size)
		if size < pattern.MaxSize {
			assert.Less(t, compiled, 700*uint64(size)+10_000, "compiling %.30s of size %d", text, size)
		}
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
