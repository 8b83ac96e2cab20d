package family_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/proof/chance"
)

// Of the rules with stars, the rule that spells out most of a name applies to it, unless a rule
// names it.
func TestTableNearestRules(t *testing.T) {
	tb := table(t,
		rule{ID: "any", resource: "*"},
		rule{ID: "users", resource: "GET /users/*", match: spec.MatchPrefix, exclude: "GET /users/me"},
		rule{ID: "get", resource: "GET *", match: spec.MatchPrefix},
		rule{ID: "user", resource: "GET /users/*", match: spec.MatchPath, exclude: "GET /users/me,GET /users/x"},
		rule{ID: "user too", resource: "GET /users/*", match: spec.MatchPath},
		rule{ID: "7", resource: "GET /users/7"},
		rule{ID: "watched", resource: "GET /users/8", mode: spec.Shadow},
		rule{ID: "star", resource: "GET /files/*"},
		rule{ID: "regex", resource: ".*/(7|9)", match: spec.MatchRegex},
		rule{ID: "watching", resource: "DELETE .*", match: spec.MatchRegex, mode: spec.Shadow},
	)
	for name, want := range map[string]string{
		"GET /users/1":      "user user too",
		"GET /users/7":      "7 regex",
		"GET /users/8":      "user user too watched",
		"GET /users/9":      "user user too regex",
		"GET /users/me":     "user too",
		"GET /users/x":      "user too",
		"GET /users/1/cart": "users",
		"GET /users":        "get",
		"GET /files/*":      "star",
		"GET /files/a":      "get",
		"PUT /users/1":      "any",
		"PUT /users/7":      "regex",
		"DELETE /users/1":   "any watching",
		"*":                 "any",
	} {
		assert.Equal(t, want, ids(tb.For(name)), name)
	}
}

// drawRule returns a rule for some of few names.
func drawRule(r *rand.Rand, id int) rule {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	drawn := rule{ID: fmt.Sprint(id), mode: spec.Mode(r.IntN(3)), match: spec.Match(r.IntN(4))}
	if r.IntN(2) == 0 {
		drawn.mode = spec.Enforce
	}
	switch drawn.match {
	case spec.MatchExact:
		drawn.resource = pick("*", "a", "a/b", "a/c", "b/b", "G a/b")
	case spec.MatchRegex:
		drawn.resource = pick(".*", "a.*", ".*/b", "a|b/b")
	case spec.MatchPrefix:
		drawn.resource = pick("a*", "a/*", "G *", "b*", "/*")
	case spec.MatchPath:
		drawn.resource = pick("*/*", "a/*", "*/b", "* /b/*", "/b/*", "G /*/c")
	}
	if (drawn.resource == "*" || drawn.match > spec.MatchRegex) && r.IntN(3) == 0 {
		drawn.exclude = pick("a", "a/b", "a/b,a/c", "G /b/c")
	}
	return drawn
}

var namesOfRules = []string{"a", "a/b", "a/c", "b/b", "G a/b", "G /b/c", "/b/c", "c", "b/", "a/b/c"}

// matches is another implementation of matching a name.
func (r rule) matches(name string) bool {
	if slices.Contains(strings.Split(r.exclude, ","), name) && r.exclude != "" {
		return false
	}
	text := regexp.QuoteMeta(r.resource)
	switch {
	case r.match == spec.MatchRegex:
		text = r.resource
	case r.match == spec.MatchPrefix, r.resource == "*":
		text = strings.ReplaceAll(text, `\*`, ".*")
	case r.match == spec.MatchPath:
		if strings.Contains(name, " /") != strings.Contains(r.resource, " /") {
			return false
		}
		text = strings.ReplaceAll(text, `\*`, "[^/]+")
	}
	return regexp.MustCompile("^(?s:" + text + ")$").MatchString(name)
}

// nearness orders more specific rules first; equally specific ones are equal.
func (r rule) nearness() [3]string {
	letters := fmt.Sprintf("%03d", 999-len(strings.ReplaceAll(r.resource, "*", "")))
	switch {
	case r.resource == "*":
		return [3]string{"2"}
	case r.match == spec.MatchExact:
		return [3]string{"0"}
	case r.match == spec.MatchPath:
		return [3]string{"1", letters, "0" + r.resource}
	}
	return [3]string{"1", letters, "1" + r.resource}
}

// about returns the rules of a name, found rule by rule.
func about(rules []rule, name string) (ids []string) {
	for _, r := range rules {
		if r.mode == spec.Off || !r.matches(name) {
			continue
		}
		applies := r.match == spec.MatchRegex || !slices.ContainsFunc(rules, func(other rule) bool {
			if other.mode != spec.Enforce || !other.matches(name) {
				return false
			}
			if other.match == spec.MatchRegex {
				return r.resource == "*"
			}
			a, b := other.nearness(), r.nearness()
			return slices.CompareFunc(a[:], b[:], cmp.Compare[string]) < 0
		})
		if applies {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// known bug 145: random rules apply as a scan of all rules finds, both in a table and in an engine
// whose rules change while it knows the names.
func TestRulesThatApply(t *testing.T) {
	random := chance.Source(t)
	e, _ := newEngine(t, engine.Config{})
	for range 300 {
		rules := make([]rule, random.IntN(12))
		for i := range rules {
			rules[i] = drawRule(random, i)
		}
		tb := table(t, rules...)
		f := put(t, e, rules...)
		for _, name := range namesOfRules {
			want := strings.Join(about(rules, name), " ")
			require.Equal(t, want, ids(tb.For(name)), "%q by %+v", name, rules)
			if random.IntN(4) == 0 {
				continue // the engine sees it later, or not at all by these rules
			}
			var bound []string
			for _, c := range f.bound(t, name) {
				if c.rule.mode != spec.Off { // rules that are off keep their state
					bound = append(bound, c.rule.ID)
				}
			}
			require.Equal(t, want, strings.Join(bound, " "), "%q by %+v", name, rules)
		}
	}
}

// A rule with a star continues as others come and go, and starts over if a more specific rule was
// in force in between.
func TestNearestRuleGoesOn(t *testing.T) {
	e, _ := newEngine(t, engine.Config{})
	users, other := rule{ID: "users", resource: "users/*", match: spec.MatchPath}, rule{ID: "x", resource: "x"}
	f := put(t, e, users)
	first, second := f.bound(t, "users/1"), f.bound(t, "users/2")
	require.NotSame(t, first[0], second[0], "each has its own")
	f = put(t, e, other, users)
	assert.Same(t, first[0], f.bound(t, "users/1")[0])
	f = put(t, e, users, rule{ID: "1", resource: "users/1"})
	assert.Equal(t, "1", f.bound(t, "users/1")[0].rule.ID)
	assert.Same(t, second[0], f.bound(t, "users/2")[0])
	f = put(t, e, users)
	assert.NotSame(t, first[0], f.bound(t, "users/1")[0])
	assert.Nil(t, f.bound(t, "users/1")[0].old)
	assert.Same(t, second[0], f.bound(t, "users/2")[0])
}

// The cost of finding a name's rules doesn't depend on rules that don't match it.
func TestRulesThatDoNotMatchCostNothing(t *testing.T) {
	allocations := func(n int) float64 {
		rules := make([]rule, 0, 2*n)
		for i := range n {
			rules = append(rules,
				rule{ID: fmt.Sprint("prefix", i), resource: fmt.Sprintf("GET /p%06d/*", i), match: spec.MatchPrefix},
				rule{ID: fmt.Sprint("path", i), resource: fmt.Sprintf("GET /p%06d/*/x", i), match: spec.MatchPath})
		}
		tb, err := family.NewTable(1, rules, maker, nil)
		require.NoError(t, err)
		return testing.AllocsPerRun(10, func() { tb.For("GET /p000000/7/x") })
	}
	assert.Equal(t, allocations(1), allocations(1000))
}
