package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The values of a file are found by their native names, regardless of the names in the file.
func TestPlace(t *testing.T) {
	const native = "flow:\n  - {resource: a, threshold: 1}\n  - id: b\n    resource: b\n    threshold: 2\nbreaker: [{resource: a, threshold: 1}]\n"
	const java = `[{"resource": "a", "count": 1, "grade": 1, "limitApp": "default"},
 {"resource": "b", "grade": 1, "count": 2}]`
	for _, c := range []struct {
		name, text, family string
		rule               int
		field, want        string
	}{
		{"r.yaml", native, "flow", 0, "threshold", "r.yaml:2:30: flow[0].threshold: "},
		{"r.yaml", native, "flow", 0, "maxWait", "r.yaml:2:5: flow[0]: "},
		{"r.yaml", native, "flow", 1, "", "r.yaml:3:5: flow[1]: "},
		{"r.yaml", native, "flow", 1, "threshold", "r.yaml:5:16: flow[1].threshold: "},
		{"r.yaml", native, "breaker", 0, "resource", "r.yaml:6:22: breaker[0].resource: "},
		{"r.yaml", native, "breaker", 1, "resource", "r.yaml: breaker[1]: "},
		{"r.yaml", native, "flow", -1, "", "r.yaml: flow[-1]: "},
		{"r.json", java, "flow", 1, "threshold", "r.json:2:41: [1].count: "},
		{"r.json", java, "flow", 0, "origin", "r.json:1:56: [0].limitApp: "},
		{"r.json", java, "flow", 0, "behavior", "r.json:1:2: [0]: "},
	} {
		p, err := ParseWith(c.name, []byte(c.text), ParseOptions{})
		require.NoError(t, err)
		at := p.Place(c.family, c.rule, c.field)
		assert.Equal(t, c.want, at.Error())
	}
	at := Parsed{}.Place("flow", 0, "threshold")
	assert.Equal(t, "flow[0]: ", at.Error())
}
