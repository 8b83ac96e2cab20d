package sentinel

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/rules"
)

// Saving changes only edited fields: other families stay the same, byte for byte, and other rules and
// the unedited fields of an edited rule stay as written.
func TestASaveChangesWhatWasEdited(t *testing.T) {
	const breakers = `# what we call
breaker:
  - {resource: payments, threshold: 0.5}   # half of them
cluster: {namespace: shop}

`
	const system = `
# the machine
system: [{metric: cpu, threshold: 0.8}]
`
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte(breakers+`# what comes in
flow:
  - resource: orders
    threshold: 10
  - {resource: search, threshold: 5, behavior: throttle}
  - {id: tokens, resource: orders, threshold: 3, behavior: tokenBucket, burst: 4}
`+system), 0o600))
	l := newLab(t, Config{AllowRuleWrites: true, Store: rules.File{Path: path}})
	d := l.dashboard()
	save := func(old, new string) string {
		require.NoError(t, l.LoadRulesFile(path))
		_, list := d.get("getRules", "type", "flow")
		require.Contains(t, list, old)
		_, body := d.post("setRules", "type", "flow", "data", strings.Replace(list, old, new, 1))
		require.Equal(t, "success", body)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	text := save(`"count":10,`, `"count":20,`)
	assert.Equal(t, breakers+`# what comes in
flow:
  - resource: orders
    threshold: 20
  - resource: search
    threshold: 5
    behavior: throttle
  - id: tokens
    resource: orders
    threshold: 3
    behavior: tokenBucket
    burst: 4
`+system, text)
	assert.Equal(t, text, save(`"count":20,`, `"count":20,`), "nothing was edited")
	assert.Contains(t, save(`"count":5,`, `"count":5.5,`), "- resource: search\n    threshold: 5.5\n    behavior: throttle\n")
	assert.NotContains(t, l.log.text(), "refused")

	_, body := d.post("setRules", "type", "authority", "data", `[{"resource":"a","limitApp":"x","strategy":1}]`)
	require.Equal(t, "success", body)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(after), system+"authority:\n", "a family that is new comes last")
}

func TestASaveOfJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"breaker": [ {"resource": "payments", "threshold": 0.5} ], "flow": [{"resource": "orders", "threshold": 10}]}`), 0o600))
	l := newLab(t, Config{AllowRuleWrites: true, Store: rules.File{Path: path}})
	require.NoError(t, l.LoadRulesFile(path))
	d := l.dashboard()
	_, list := d.get("getRules", "type", "flow")
	_, body := d.post("setRules", "type", "flow", "data", strings.Replace(list, `"count":10,`, `"count":20,`, 1))
	require.Equal(t, "success", body)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, `{
  "breaker": [ {"resource": "payments", "threshold": 0.5} ],
  "flow": [{"resource":"orders","threshold":20}]
}
`, string(text))
}

// Rules that the program has loaded are edited the same way, in memory.
func TestASaveInMemory(t *testing.T) {
	l := newLab(t, Config{AllowRuleWrites: true})
	set := api.RuleSet{
		Flow:    []flow.Rule{{Resource: "a", Threshold: 1}, {Resource: "a", Threshold: 2}, {Resource: "b", Threshold: 3}},
		Breaker: []breaker.Rule{{Resource: "c", Threshold: 0.5}},
	}
	require.NoError(t, l.LoadRules(set))
	d := l.dashboard()
	_, list := d.get("getRules", "type", "flow")
	_, body := d.post("setRules", "type", "flow", "data", strings.Replace(list, `"count":3,`, `"count":4,`, 1))
	require.Equal(t, "success", body)
	set.Flow[2].Threshold = 4
	assert.NoError(t, l.EditRules(func(loaded api.RuleSet) (api.RuleSet, error) {
		assert.Equal(t, set, loaded)
		return loaded, nil
	}))

	// Without the first, the second would get another generated id: it is written out.
	_, list = d.get("getRules", "type", "flow")
	_, rest, _ := strings.Cut(strings.TrimPrefix(list, "["), "},{")
	_, body = d.post("setRules", "type", "flow", "data", "[{"+rest)
	require.Equal(t, "success", body)
	assert.Len(t, l.Rules().Flow, 2)
}

// Numbers wider than their column don't run into the next column, and have two decimals.
func TestColumnsOfTables(t *testing.T) {
	assert.Equal(t, "4.37", double(4.367731244))
	assert.Equal(t, "4.0", double(4))
	var out bytes.Buffer
	table(&out, "id", nodeColumns, []inspect.Node{{Name: "orders"}}, func(*inspect.Node) []string {
		return slices.Repeat([]string{"123456789012.25"}, len(nodeColumns))
	})
	_, row, _ := strings.Cut(out.String(), "\n")
	assert.Len(t, strings.Fields(row), 2+len(nodeColumns))
}
