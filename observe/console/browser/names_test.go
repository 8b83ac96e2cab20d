package browser_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/observe/console"
)

// read returns the value of an expression on the page.
func read[V any](s *session, expression string) (v V) {
	s.Helper()
	s.run(chromedp.Evaluate(expression, &v))
	return v
}

// Invisible characters of names are written out, so that different names look different.
func TestWhatNamesHide(t *testing.T) {
	alike := []string{
		"a b", " a b", "a b ", "a  b", "a\u00a0b", "a\u2003b", "a\tb", "ab", "a\u200bb", "a\u061cb", "a\u180eb", "a\u3164b", "a\u034fb",
		"a\u2800b", "a\U000E0041b", "a\ufe0fb", "a\ue000b", `a\u200bb`, `a\u00a0b`, " ", "  ", `C:\users`,
	}
	s := open(t, api.RuleSet{}, console.Config{})
	for _, name := range alike {
		require.NoError(t, s.call(name))
	}
	for _, links := range []string{"#resources tbody a", ".tree a"} {
		if links == ".tree a" {
			s.goTo("#/tree")
		}
		s.until(fmt.Sprintf(`document.querySelectorAll(%s).length === %d`, quote(links), len(alike)))
		seen := make(map[string]string) // by appearance
		for _, l := range read[[][2]string](s, fmt.Sprintf(`[...document.querySelectorAll(%s)].map(a => [decodeURIComponent(a.hash.slice(4)), a.innerText])`, quote(links))) {
			shown := strings.Map(func(r rune) rune {
				if strings.ContainsRune("\u200b\u061c\u180e\u3164\u034f\u2800\U000E0041\ufe0f\ue000", r) {
					return -1
				}
				return r
			}, strings.Join(strings.Fields(l[1]), " "))
			assert.NotContains(t, seen, shown, "%q looks like %q", l[0], seen[shown])
			seen[shown] = l[0]
		}
		assert.Equal(t, `C:\users`, seen[`C:\users`])
	}
}

// A long name without blanks wraps: no page becomes wider than the window, and other resources'
// counts stay visible.
func TestALongNameWidensNothing(t *testing.T) {
	long := strings.Repeat("W", 1024)
	s := open(t, api.RuleSet{
		Flow:    []flow.Rule{{ID: long, Resource: long, Threshold: 1}},
		Breaker: []breaker.Rule{{ID: long, Resource: long, Strategy: breaker.ConsecutiveErrors, Threshold: 1, Recovery: time.Hour}},
	}, console.Config{})
	for range 3 {
		e, err := s.guard.Entry(api.WithOrigin(api.WithContext(t.Context(), long), long), long)
		if err == nil {
			e.Fail(assert.AnError)
		}
		e.Exit()
	}
	for hash, ready := range map[string]string{
		"#/": "#resources tbody a", "#/tree": ".tree a", "#/rules": "[data-part=rules] a", "#/breakers": "[data-part=changes] a", "#/r/" + long: "[data-part=refusals] td",
	} {
		s.goTo(hash)
		s.until(fmt.Sprintf(`document.querySelector(%s) !== null`, quote(ready)))
		wide := `[document.documentElement, ...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.tagName + " " + e.scrollWidth)`
		assert.Empty(t, read[[]string](s, wide), "%.20s", hash)
	}
}

// The form on the page of a resource asks about that resource, even if an input can't hold its
// name: it has line breaks.
func TestExplainOfANameWithLines(t *testing.T) {
	s := open(t, api.RuleSet{Flow: []flow.Rule{{ID: "lines", Resource: "line\nbreak", Threshold: 0}}}, console.Config{})
	require.ErrorIs(t, s.call("line\nbreak"), api.ErrBlocked)
	require.NoError(t, s.call("orders"))
	s.goTo("#/r/line%0Abreak")
	s.run(chromedp.WaitVisible("form.ask button"), chromedp.Click("form.ask button"))
	s.shows("form.ask + div", "refused by flow lines")
	s.run(chromedp.SetValue("form.ask input[name=resource]", "orders"), chromedp.Click("form.ask button"))
	s.shows("form.ask + div", "no rule applies")
}

// An edit changes only the edited parts (known bug 237): numbers beyond JavaScript's range stay
// exact, on the page and in the rule. The editor writes invisible characters out.
func TestAnEditKeepsNumbers(t *testing.T) {
	values := []hotspot.Exception{
		{Value: hotspot.ValueOf(int64(9007199254740993)), Threshold: 7}, {Value: hotspot.ValueOf(uint64(18446744073709551615)), Threshold: 8},
		{Value: hotspot.ValueOf("9007199254740993"), Threshold: 9}, {Value: hotspot.ValueOf(1e300), Threshold: 9}, {Value: hotspot.ValueOf("a\u202eb\U000E0041"), Threshold: 9},
	}
	s := open(t, api.RuleSet{Hotspot: []hotspot.Rule{{ID: "users", Resource: "orders", Param: "user", Threshold: 5, Exceptions: values}}},
		console.Config{WriteToken: writeToken, WriteRules: true})
	s.run(chromedp.Evaluate("sessionStorage.setItem('token', "+quote(writeToken)+")", nil), chromedp.Reload())
	s.goTo("#/rules")
	s.shows("[data-part=rules] code", `"value":9007199254740993,`)
	// The table may be rebuilt at any time, so don't keep its nodes.
	change := chromedp.Evaluate(`document.querySelector('button[aria-label="Change the rule users"]').click()`, nil)
	s.run(change, chromedp.WaitVisible("#edit-text"))
	text := read[string](s, `document.getElementById("edit-text").value`)
	assert.Contains(t, text, `"a\u202eb\udb40\udc41"`)
	assert.True(t, json.Valid([]byte(text)), "%s", text)
	s.run(chromedp.Evaluate(`(() => { const t = document.getElementById("edit-text"); t.value = t.value.replace('"threshold": 5', '"threshold": 6') })()`, nil), chromedp.Click("#edit-show"))
	s.shows("#edit-diff", "threshold 5 -> 6")
	s.run(chromedp.Click("#edit-apply"), chromedp.WaitNotVisible("#edit-dialog"))
	changed := s.guard.Rules().Hotspot[0]
	assert.EqualValues(t, 6, changed.Threshold)
	assert.Equal(t, values, changed.Exceptions)
	// One rule is sent, regardless of the text.
	s.run(change, chromedp.WaitVisible("#edit-text"),
		chromedp.SetValue("#edit-text", `{"resource": "a", "threshold": 1, "param": "p"}], "flow": [{"resource": "b", "threshold": 1}`), chromedp.Click("#edit-show"))
	s.until(`document.getElementById("edit-error").textContent !== ""`)
}

// A token with characters that a header can't have is treated as a wrong one: the page asks again.
func TestATokenOfOtherLetters(t *testing.T) {
	const token = "ключ-и-ещё-один"
	s := open(t, api.RuleSet{}, console.Config{ReadToken: token})
	require.NoError(t, s.call("orders"))
	for _, wrong := range []string{"ключ", "a\x01b", "日本", "💥"} {
		s.until(`document.getElementById("token-dialog").open && document.getElementById("token").value === ""`)
		s.run(chromedp.Evaluate(`document.getElementById("token").value = `+quote(wrong), nil), chromedp.Click("#token-dialog button[value=ok]"))
	}
	s.until(`document.getElementById("token-dialog").open && document.getElementById("token").value === ""`)
	s.run(chromedp.Evaluate(`document.getElementById("token").value = `+quote(token), nil), chromedp.Click("#token-dialog button[value=ok]"))
	s.shows("#resources", "orders")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = nil // the server replied 401, which the browser reports on its console
}

// A truncated or mistyped URL leads to a page that reports it.
func TestAMalformedAddress(t *testing.T) {
	s := open(t, api.RuleSet{}, console.Config{})
	for _, hash := range []string{"#/r/%", "#/r/%zz", "#/r/50%"} {
		s.goTo("#/tree")
		s.shows("h1", "Tree")
		s.goTo(hash)
		s.shows("main .bad", "there is no resource")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.problems)
	for _, p := range s.problems { // the server replied 404
		assert.Contains(t, p, "404")
	}
	s.problems = nil
}

// Names with line feeds can't be mistaken for another path of the tree: each node keeps its own counts.
func TestPathsOfTheTree(t *testing.T) {
	s := open(t, api.RuleSet{}, console.Config{})
	nested := func(context string, names ...string) (end func()) {
		ctx := api.WithContext(t.Context(), context)
		end = func() {}
		for _, name := range names {
			e, err := s.guard.Entry(ctx, name)
			require.NoError(t, err)
			outer := end
			ctx, end = e.Context(), func() { e.Exit(); outer() }
		}
		return end
	}
	nested("web", "outer", "inner")()
	nested("web\ncallouter", "inner")()
	s.goTo("#/tree")
	const leaves = `[...document.querySelectorAll(".tree .leaf")].map(l => l.textContent.includes("1 in flight")).join()`
	s.until(leaves + ` === "false,false,false"`) // the default context's, and two calls
	defer nested("web", "outer", "inner")()
	s.until(leaves + `.includes("true")`)
	assert.Equal(t, "false,true,false", read[string](s, leaves))
}

// A rule links to the resource that it names; a rule with a pattern has no link.
func TestLinksOfRules(t *testing.T) {
	s := open(t, api.RuleSet{Flow: []flow.Rule{
		{ID: "one", Resource: "orders", Threshold: 1}, {ID: "rest", Resource: "*", Threshold: 1},
		{ID: "some", Resource: "GET /a/*", Match: api.MatchPrefix, Threshold: 1}, {ID: "dots", Resource: "a.b", Match: api.MatchRegex, Threshold: 1},
	}}, console.Config{})
	require.NoError(t, s.call("orders"))
	s.goTo("#/rules")
	s.until(`document.querySelectorAll("[data-part=rules] tbody tr").length === 4`)
	assert.Equal(t, []string{"orders"}, read[[]string](s, `[...document.querySelectorAll("[data-part=rules] a")].map(a => a.textContent)`))
}

// Names that aren't UTF-8 are separate resources, with their own counts and a working link.
func TestNamesThatAreNoText(t *testing.T) {
	names := map[string]string{ // by appearance
		`bad\xff`: "bad\xff", `bad\xfe`: "bad\xfe", "bad\ufffd": "bad\ufffd", `bad\u005cxff`: `bad\xff`, `\xed\xa0\x80`: "\xed\xa0\x80",
		`a b+&#%\xc3\xa9\xff`: "a b+&#%é\xff", "bad%ff": "bad%ff",
	}
	s := open(t, api.RuleSet{Hotspot: []hotspot.Rule{{ID: "all", Resource: "*", Param: "user", Threshold: 1e6}}}, console.Config{})
	for _, name := range names {
		for range len(name) {
			e, err := s.guard.Entry(api.WithOrigin(api.WithContext(t.Context(), name), name), name, api.Param("user", "ann"))
			require.NoError(t, err)
			e.Exit()
		}
	}
	s.every(20*time.Millisecond, func() { _ = s.call("bad\xff") })
	s.until(fmt.Sprintf(`document.querySelectorAll("#resources tbody a").length === %d`, len(names)))
	s.until(`[...document.querySelectorAll("#resources tbody tr")].filter(r => /^[1-9]/.test(r.querySelector("td.pass").textContent)).map(r => r.querySelector("a").textContent).join() === "bad\\xff"`)
	for shown, name := range names {
		for _, page := range []string{"#/", "#/tree"} {
			s.goTo(page)
			link := `[...document.querySelectorAll("main a")].find(a => a.textContent === ` + quote(shown) + `)`
			s.until(link + ` !== undefined`)
			s.run(chromedp.Evaluate(link+`.click()`, nil))
			s.shows("h1", shown)
			s.until(`document.querySelector("[data-part=hot] td") !== null`)
			s.until(`document.querySelector("[data-part=origins] td") !== null`)
			var passed int
			s.run(chromedp.Evaluate(`+document.querySelector("[data-part=origins] tbody tr").cells[3].textContent`, &passed))
			assert.Equal(t, len(name), passed, "%q from %s", name, page)
			s.run(chromedp.Click("form.ask button"))
			s.shows("form.ask + div", "hotspot all")
		}
	}
}
