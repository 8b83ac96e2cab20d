package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
)

func writable(t *testing.T) *lab {
	return newLab(t, Config{WriteToken: writeToken, WriteRules: true}, api.RuleSet{
		Flow:      []flow.Rule{{Resource: "orders", Threshold: 10}, {ID: "search", Resource: "search", Threshold: 5}},
		Isolation: []isolation.Rule{{ID: "four", Resource: "orders", Threshold: 4}},
	})
}

func TestRulesAreChangedByWhatWasShown(t *testing.T) {
	l := writable(t)
	made := l.guard.Rules().Flow[0].ID // generated from the fields
	edit := `{"rules":{"flow":[{"id":"` + made + `","resource":"orders","threshold":20},{"id":"new","resource":"new","threshold":1}]},"remove":[{"kind":"isolation","id":"four"}]`
	before := l.guard.Rules()

	var shown, applied struct {
		Change, Diff, Proof, Error string
		Revision                   uint64
	}
	require.Equal(t, 200, post(l, "/api/rules/diff", edit+"}", &shown))
	assert.Equal(t, "+1 ~1 -1", shown.Change)
	assert.Contains(t, shown.Diff, "threshold 10 -> 20")
	assert.Equal(t, before, l.guard.Rules(), "nothing has changed yet")

	assert.Equal(t, http.StatusConflict, post(l, "/api/rules/apply", edit+"}", &applied))
	assert.Contains(t, applied.Error, "this change was not shown")
	assert.Equal(t, http.StatusConflict, post(l, "/api/rules/apply", strings.Replace(edit, "20", "30", 1)+`,"proof":"`+shown.Proof+`"}`, &applied))
	assert.Equal(t, before, l.guard.Rules())

	require.Equal(t, 200, post(l, "/api/rules/apply", edit+`,"proof":"`+shown.Proof+`"}`, &applied), applied.Error)
	assert.Equal(t, shown.Diff, applied.Diff)
	assert.Equal(t, l.guard.Status().Number, applied.Revision)
	after := l.guard.Rules()
	assert.EqualValues(t, 20, after.Flow[0].Threshold)
	assert.Equal(t, made, after.Flow[0].ID)
	assert.Equal(t, "search", after.Flow[1].ID)
	assert.Equal(t, "new", after.Flow[2].ID)
	assert.Empty(t, after.Isolation)
	log := l.log.String()
	assert.Contains(t, log, `msg="penstock: console: rules changed" from=192.0.2.1:1234 change="+1 ~1 -1"`)
	assert.Contains(t, log, "threshold 10 -> 20")
	assert.Contains(t, log, "rules not changed")

	assert.Equal(t, http.StatusUnprocessableEntity, post(l, "/api/rules/apply", edit+`,"proof":"`+shown.Proof+`"}`, &applied), "the rule is gone already")
}

// The proof is for one change of one state: if the rules have changed in the meantime, a new diff is
// shown.
func TestWhatWasShownMustStillHold(t *testing.T) {
	l := writable(t)
	const edit = `{"rules":{"flow":[{"id":"search","resource":"search","threshold":6}]}`
	var shown, applied struct{ Proof, Error string }
	require.Equal(t, 200, post(l, "/api/rules/diff", edit+"}", &shown))
	require.NoError(t, l.guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{ID: "search", Resource: "search", Threshold: 7}}}))
	assert.Equal(t, http.StatusConflict, post(l, "/api/rules/apply", edit+`,"proof":"`+shown.Proof+`"}`, &applied))
	assert.EqualValues(t, 7, l.guard.Rules().Flow[0].Threshold)
}

func TestEditsThatAreRefused(t *testing.T) {
	l := writable(t)
	before := l.guard.Rules()
	for _, path := range []string{"/api/rules/diff", "/api/rules/apply"} {
		for body, want := range map[string]int{
			"{": 400, "[]": 400, "{}": 422, "{} {}": 400, `{"rule":{}}`: 400, `{"rules":{"flow":[{"resource":"a"}]}}`: 422,
			`{"rules":{"flow":[{"resource":"a","threshold":-1}]}}`:                                       422,
			`{"rules":{"flow":[{"resource":"a","treshold":1}]}}`:                                         422,
			`{"rules":{"flow":[{"id":"search","resource":"search","threshold":5}]}}`:                     422, // nothing new
			`{"remove":[{"kind":"flow","id":"none"}]}`:                                                   422,
			`{"remove":[{"kind":"<script>","id":"\n\u001b"}]}`:                                           422,
			`{"rules":{"flow":[` + strings.Repeat(`{"resource":"a","threshold":1},`, 40_000) + `null]}}`: 413,
		} {
			var answer struct{ Error string }
			assert.Equal(t, want, post(l, path, body, &answer), "%.60s: %s", body, answer.Error)
			assert.NotEmpty(t, answer.Error)
			assert.NotContains(t, answer.Error, "\x1b")
		}
		for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"} {
			r := request("POST", path, "{}", with(writeToken))
			r.Header.Set("Content-Type", kind)
			assert.Equal(t, http.StatusUnsupportedMediaType, l.do(r).Code, kind)
		}
	}
	assert.Equal(t, before, l.guard.Rules())
	for line := range strings.Lines(l.log.String()) {
		assert.Less(t, len(line), 2_000)
	}
}

// Even a large edit is a short log line, applied or refused.
func TestEditsAreBoundedInTheLog(t *testing.T) {
	l := writable(t)
	said := func() (what string) {
		lines := strings.SplitSeq(strings.TrimSpace(l.log.String()), "\n")
		for line := range lines {
			if strings.Contains(line, "penstock: console: ") {
				_, what, _ = strings.Cut(line, "from=192.0.2.1:1234 ")
			}
		}
		return what
	}
	apply := func(edit string) (what string) {
		var shown, applied struct{ Proof, Error string }
		require.Equal(t, 200, post(l, "/api/rules/diff", edit+"}", &shown), shown.Error)
		require.Equal(t, 200, post(l, "/api/rules/apply", edit+`,"proof":"`+shown.Proof+`"}`, &applied), applied.Error)
		return said()
	}
	var rules []string
	for i := range 15 {
		rules = append(rules, fmt.Sprintf(`{"id":"r%02d","resource":"r","threshold":1}`, i))
	}
	what := apply(`{"rules":{"flow":[` + strings.Join(rules, ",") + `]}`)
	assert.Contains(t, what, "; and 5 more")
	assert.NotContains(t, what, "r12")

	for _, name := range []string{strings.Repeat("x", 1_000), strings.Repeat("y", 1_000)} {
		what = apply(`{"rules":{"flow":[{"id":"search","resource":"` + name + `","origin":"` + name + `","threshold":5}]}`)
		assert.Contains(t, what, "~ flow search")
		assert.Less(t, len(what), 600)
	}
	require.Equal(t, 422, post(l, "/api/rules/apply", `{"rules":{"authority":[{"id":"a","resource":"a","origins":["`+strings.Repeat("x", 1_000)+`","`+strings.Repeat("x", 1_000)+`"]}]}}`, new(struct{})))
	assert.Contains(t, said(), "origins")
	assert.Less(t, len(said()), 600)
}
