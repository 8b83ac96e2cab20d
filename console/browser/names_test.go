package browser_test

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/console"
	"github.com/penstock-go/penstock/hotspot"
)

// read is the value of an expression of the page.
func read[V any](s *session, expression string) (v V) {
	s.Helper()
	s.run(chromedp.Evaluate(expression, &v))
	return v
}

// An edit changes what was edited (known bug 237): numbers that JavaScript doesn't have stay what they are, on the page and in the
// rule.
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
	s.run(chromedp.Click(`button[aria-label="Change the rule users"]`), chromedp.WaitVisible("#edit-text"))
	text := read[string](s, `document.getElementById("edit-text").value`)
	assert.True(t, json.Valid([]byte(text)), "%s", text)
	s.run(chromedp.Evaluate(`(() => { const t = document.getElementById("edit-text"); t.value = t.value.replace('"threshold": 5', '"threshold": 6') })()`, nil), chromedp.Click("#edit-show"))
	s.shows("#edit-diff", "threshold 5 -> 6")
	s.run(chromedp.Click("#edit-apply"), chromedp.WaitNotVisible("#edit-dialog"))
	changed := s.guard.Rules().Hotspot[0]
	assert.EqualValues(t, 6, changed.Threshold)
	assert.Equal(t, values, changed.Exceptions)
	// It is one rule that is sent, whatever the text is.
	s.run(chromedp.Click(`button[aria-label="Change the rule users"]`), chromedp.WaitVisible("#edit-text"),
		chromedp.SetValue("#edit-text", `{"resource": "a", "threshold": 1, "param": "p"}], "flow": [{"resource": "b", "threshold": 1}`), chromedp.Click("#edit-show"))
	s.until(`document.getElementById("edit-error").textContent !== ""`)
}
