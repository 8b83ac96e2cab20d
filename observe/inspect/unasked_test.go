package inspect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

// A rule without a call is listed as such until the first call, refused or not: perhaps nobody uses its
// name.
func TestTreeTellsOfRulesThatNothingAskedFor(t *testing.T) {
	l := newLab(t, engine.Config{})
	l.rules(
		flow.Rule{ID: "none", Resource: "r", Threshold: 0},
		flow.Rule{ID: "misspelt", Resource: "GET /odrers\n", Threshold: 3},
		flow.Rule{ID: "tried", Resource: "s.*", Match: spec.MatchRegex, Threshold: 3, Mode: spec.Shadow},
		flow.Rule{ID: "off", Resource: "r", Threshold: 3, Mode: spec.Off},
	)
	unasked := func() (lines []string) {
		var text strings.Builder
		require.NoError(t, l.tree().WriteText(&text))
		for line := range strings.Lines(text.String()) {
			if strings.Contains(line, "not asked for yet") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	asked := func() (all []bool) {
		data, err := json.Marshal(l.tree())
		require.NoError(t, err)
		var tree jsonTree
		decode(t, data, &tree)
		for _, r := range tree.Rules {
			all = append(all, r.Asked)
		}
		return all
	}
	none, misspelt := "flow rule none: not asked for yet, no call came to r\n", "flow rule misspelt: not asked for yet, no call came to GET /odrers\\n\n"
	tried := "shadow flow rule tried: not asked for yet, no call came to s.*\n"
	require.Equal(t, []string{none, misspelt, tried}, unasked())
	require.Equal(t, []bool{false, false, false, false}, asked())

	_, err := l.Enter(anywhere, "r", nil)
	require.ErrorIs(t, err, core.ErrBlocked)
	require.Equal(t, []string{misspelt, tried}, unasked())
	e, err := l.Enter(anywhere, "sql", nil)
	require.NoError(t, err)
	require.Equal(t, []string{misspelt}, unasked(), "it has not even ended")
	e.Exit()
	require.Equal(t, []bool{true, false, true, false}, asked())

	var many []flow.Rule
	for i := range 12 {
		many = append(many, flow.Rule{ID: fmt.Sprint("rule ", i), Resource: fmt.Sprint("name ", i), Threshold: 1})
	}
	l.rules(many...)
	lines := unasked()
	require.Len(t, lines, 11)
	require.Equal(t, "rules not asked for yet: 2 more\n", lines[10])
}
