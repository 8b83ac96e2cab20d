package pattern

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/chance"
)

// added are patterns in a Wildcards: paths, or prefixes after a bar.
func added(t *testing.T, patterns ...string) (w Wildcards, names func(name string) []string) {
	t.Helper()
	for i, p := range patterns {
		text, prefix := strings.CutPrefix(p, "|")
		if prefix {
			require.NoError(t, CheckPrefix(text))
		} else {
			require.NoError(t, CheckPath(text))
		}
		require.Equal(t, i, w.Add(text, !prefix))
		require.Equal(t, i, w.Add(text, !prefix), "the same again")
	}
	return w, func(name string) (found []string) {
		for _, i := range w.Match(name) {
			found = append(found, patterns[i])
		}
		return found
	}
}

func TestWildcards(t *testing.T) {
	_, found := added(t, "|GET /users/*", "GET /users/*", "GET /users/*/orders", "|GET *", "* /users/*", "/users/*", "*/*", "|a*")
	for name, want := range map[string]string{
		"GET /users/7":         "[GET /users/* |GET /users/* * /users/* |GET *]",
		"GET /users/*":         "[GET /users/* |GET /users/* * /users/* |GET *]",
		"GET /users/7/orders":  "[GET /users/*/orders |GET /users/* |GET *]",
		"GET /users//orders":   "[|GET /users/* |GET *]",
		"GET /users/":          "[|GET /users/* |GET *]",
		"GET /users":           "[|GET *]",
		"PUT /users/7":         "[* /users/*]",
		" /users/7":            "[]",
		"/users/7":             "[/users/*]",
		"x/y":                  "[*/*]",
		"x y/z":                "[*/*]",
		"GET x/y":              "[|GET * */*]",
		"/":                    "[]",
		"":                     "[]",
		"a":                    "[|a*]",
		"GET /users/7/8":       "[|GET /users/* |GET *]",
		"GET PUT /users/7":     "[* /users/* |GET *]",
		"GET /users/7/orders/": "[|GET /users/* |GET *]",
	} {
		assert.Equal(t, want, fmt.Sprint(found(name)), name)
	}
}

func TestWildcardsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"GET /users":    "must have its only star at the end",
		"GET /*/x*":     "must have its only star at the end",
		"*":             "has nothing before the star",
		"":              "must have its only star at the end",
		long("a") + "*": "has 1025 bytes",
	} {
		assert.ErrorContains(t, CheckPrefix(text), want, text)
	}
	for text, want := range map[string]string{
		"GET /users":       "has no star",
		"GET /users/x*":    `has a star in "x*"`,
		"GET /users/**":    `has a star in "**"`,
		"G* /users/*":      `has a star in "G*"`,
		"*":                "has no slash",
		"":                 "has no slash",
		long("a") + "/*/b": "has 1028 bytes",
	} {
		assert.ErrorContains(t, CheckPath(text), want, text)
	}
}

func long(letter string) string { return strings.Repeat(letter, MaxName) }

// Wildcards find the same patterns as equivalent regular expressions, ordered by how much each
// pattern spells out.
func TestWildcardsAgreeWithExpressions(t *testing.T) {
	random := chance.Source(t)
	part := func(star bool) string {
		if star && random.IntN(3) == 0 {
			return "*"
		}
		return []string{"", "a", "b", "ab", " ", "a "}[random.IntN(6)]
	}
	text := func(star bool) string {
		parts := make([]string, 1+random.IntN(4))
		for i := range parts {
			parts[i] = part(star)
		}
		return []string{"", "", "GET ", "* "}[random.IntN(4)] + strings.Join(parts, "/")
	}
	for range 3000 {
		var w Wildcards
		var have []wildcard
		for range random.IntN(20) {
			p := wildcard{text(true), true}
			if random.IntN(3) == 0 {
				p = wildcard{text(false) + "*", false}
			}
			if p.path && CheckPath(p.text) != nil || !p.path && CheckPrefix(p.text) != nil || slices.Contains(have, p) {
				continue
			}
			require.Equal(t, len(have), w.Add(p.text, p.path))
			have = append(have, p)
		}
		for range 20 {
			name := text(false)
			var want []wildcard
			for _, p := range have {
				if p.expression().MatchString(name) {
					want = append(want, p)
				}
			}
			slices.SortFunc(want, wildcard.compare)
			var got []wildcard
			for _, i := range w.Match(name) {
				got = append(got, have[i])
			}
			require.Equal(t, want, got, "%q among %q", name, have)
		}
	}
}

// expression returns the pattern as a regular expression.
func (w wildcard) expression() *regexp.Regexp {
	text := regexp.QuoteMeta(w.text)
	if !w.path {
		return regexp.MustCompile("(?s)^" + strings.TrimSuffix(text, `\*`) + ".*$")
	}
	method, path, found := cutMethod(text)
	if method == `\*` {
		method = `[^/]+`
	}
	path = strings.ReplaceAll(path, `\*`, `[^/]+`)
	if found {
		return regexp.MustCompile(`(?s)^` + method + ` ` + path + `$`)
	}
	return regexp.MustCompile(`(?s)^` + strings.Replace(path, `[^/]+/`, `(?:[^/]*[^ /])/`, firstStar(path)) + `$`)
}

// firstStar is 1 if a path begins with a star. That part must not end in a space, or it would be a
// separate part.
func firstStar(path string) int {
	if strings.HasPrefix(path, `[^/]+/`) {
		return 1
	}
	return 0
}
