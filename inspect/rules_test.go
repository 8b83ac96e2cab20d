package inspect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestTreeTellsWhatRulesDid(t *testing.T) {
	l := newLab(t, core.Config{})
	l.rules(
		flow.Rule{ID: "limit", Resource: "r", Threshold: 3},
		flow.Rule{ID: "try", Resource: "r", Threshold: 2, Mode: core.Shadow},
	)
	for range 5 {
		e, err := l.Enter(anywhere, "r", nil)
		if err == nil {
			defer e.Exit()
		}
	}
	tree := l.tree()
	require.Equal(t, []core.RuleFigures{
		{Kind: core.KindFlow, ID: "limit", Resource: "r", Refused: 2},
		{Kind: core.KindFlow, ID: "try", Resource: "r", Mode: core.Shadow, Rehearsed: 1},
	}, tree.Rules)

	var text strings.Builder
	require.NoError(t, tree.WriteText(&text))
	require.Contains(t, text.String(), "\nshadow rule try: would have refused 1 calls\n")

	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)
	require.Equal(t, jsonRule{"flow", "try", "r", "shadow", 0, 1}, got.Rules[1])
}
