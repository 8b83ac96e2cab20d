package pattern

import (
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An expression that keeps many steps under way at every character of a name is rejected; an
// expression that only has many steps is not. known bug 114
func TestPatternWork(t *testing.T) {
	most := strings.Repeat("x", maxLength/4)
	for pattern, want := range map[string]string{
		"GET /orders/.*":                  "",
		"a{1000}":                         "",
		strings.Repeat("a{1000}", 9):      "",
		"[a-z]{1,1000}b":                  "",
		"(?:GET|POST) /(?:[^/]+/){3}x.*":  "",
		"(?:.*a){50}":                     "",
		"(?:" + most + "|.?)" + most:      "",
		".*" + most:                       "",
		".*" + strings.Repeat("x", 300):   "258", // of 302 steps, some only at the end
		"(?:.?){1000}x":                   "978",
		"(((a?){0,10}){0,10}){0,9}x":      "2111",
		"(?:a*){200}b":                    "401",
		"(?:.*.*){100}b":                  "401",
		"(?:[ab]{0,30}){0,30}c":           "780",
		strings.Repeat(".?", 400) + "end": "",
		strings.Repeat(".*", 400) + "end": "803",
	} {
		_, err := Size(pattern)
		if want == "" {
			assert.NoError(t, err, "%.40q", pattern)
		} else {
			assert.EqualError(t, err, "the regular expression has "+want+" steps under way at once on a name of 1024 bytes; "+
				"the maximum is 256: repeat less, or use fewer parts that match anything", "%.40q", pattern)
		}
	}
}

// The bound holds: no name takes more steps, counted in an automaton that takes each of them at
// each position.
func TestPatternWorkIsABound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	closest := 0.0
	for range 500 {
		pattern := drawnPattern(random, 4)
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil || steps(parsed) > 300 {
			continue
		}
		bound := patternWork(parsed)
		for _, name := range []string{strings.Repeat("a", MaxName), strings.Repeat("ab", MaxName/2), "", "abba"} {
			took := stepsOf(t, pattern, name)
			require.LessOrEqual(t, took, bound, "%q on %.10q", pattern, name)
			closest = max(closest, float64(took)/float64(bound))
		}
	}
	assert.Greater(t, closest, 0.6, "and the bound is not far off")
}

// drawnPattern draws a random expression of at most the given depth.
func drawnPattern(random *rand.Rand, depth int) string {
	part := func() string { return drawnPattern(random, depth-1) }
	if depth == 0 {
		return []string{"a", "b", ".", "ab", "[ab]", "[^a]", `\b`, "(?i:a)"}[random.IntN(8)]
	}
	switch random.IntN(9) {
	case 0:
		return "(?:" + part() + ")*"
	case 1:
		return "(?:" + part() + ")+"
	case 2:
		return "(?:" + part() + ")?"
	case 3:
		return "(?:" + part() + "){2,5}"
	case 4:
		return "(?:" + part() + "){2,}"
	case 5:
		return "(?:" + part() + "|" + part() + ")"
	case 6:
		return "(" + part() + ")"
	}
	return part() + part()
}

// stepsOf returns the number of steps of a match that pursues every possibility at once, as the
// slowest matcher of package regexp does, and assumes every assertion true.
func stepsOf(t *testing.T, pattern, name string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	require.NoError(t, err)
	program, err := syntax.Compile(parsed.Simplify())
	require.NoError(t, err)
	took := 0
	follow := func(from []uint32) (waiting []uint32) {
		seen := make([]bool, len(program.Inst))
		for len(from) > 0 {
			i := from[0]
			from = from[1:]
			if seen[i] {
				continue
			}
			seen[i] = true
			switch in := program.Inst[i]; in.Op {
			case syntax.InstAlt, syntax.InstAltMatch:
				from = append(from, in.Out, in.Arg)
				took++
			case syntax.InstCapture, syntax.InstEmptyWidth:
				from = append(from, in.Out)
				took++
			case syntax.InstNop:
				from = append(from, in.Out)
			case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
				waiting = append(waiting, i)
				took++
			}
		}
		return waiting
	}
	waiting := follow([]uint32{uint32(program.Start)})
	for _, r := range name {
		var next []uint32
		for _, i := range waiting {
			if program.Inst[i].MatchRune(r) && !slices.Contains(next, program.Inst[i].Out) {
				next = append(next, program.Inst[i].Out)
			}
		}
		waiting = follow(next)
	}
	return took
}
