package rules

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse shows that what Parse accepts is in range, and that writing it and
// reading it again gives the same set.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		fullYAML, fullJSON, "", "flow: []", "flow: [{resource: a, threshold: 1}]",
		"flow:\n  - resource: a\n    threshold: -0\n    interval: 1h0.5s\n",
		"flow: [{resource: \"\\u0085\\t \\e\", id: '\n  x'}]",
		"flow:\n- resource: |\n   a\n\n   b\n  id: >\n   c\n   d\n",
		`{"flow": [{"resource": "\ud800\u0000", "threshold": 1E+2}]}`,
		"flow: &a [*a]", "? a\n: - b", "%YAML 1.1\n---\nflow: []\n...\n", "flow: [{<<: {resource: a}}]",
		"flow: [{resource: a, threshold: 1}, {resource: a, threshold: 2}]", "a: b: c", "[{count: 1, grade: 1}]",
	} {
		f.Add(seed)
	}
	text, err := golden.YAML()
	require.NoError(f, err)
	f.Add(string(text))

	f.Fuzz(func(t *testing.T, data string) {
		set, err := Parse("", []byte(data))
		if err != nil {
			require.Zero(t, set)
			return
		}
		for _, r := range set.Flow {
			norm, err := r.Normalized(coldFactor)
			require.NoError(t, err)
			require.False(t, math.IsNaN(norm.Threshold) || math.IsInf(norm.Threshold, 0) || norm.Threshold < 0)
		}
		require.True(t, Diff(set, set).Empty())

		text, err := set.YAML()
		require.NoError(t, err)
		again, err := Parse("", text)
		require.NoError(t, err, "%s", text)
		require.Equal(t, set, again, "%s", text)

		text, err = json.Marshal(set)
		require.NoError(t, err)
		again, err = Parse("r.json", text)
		require.NoError(t, err, "%s", text)
		require.Equal(t, set, again, "%s", text)
	})
}
