package inspect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// gate is a user's slot that rejects all calls.
type gate struct{ trial.AskOnly }

func (gate) Name() string { return "gate" }

// Refusals by a user's slots appear below the tree, and in its JSON.
func TestTreeTellsOfSlots(t *testing.T) {
	l := newLab(t, engine.Config{Chain: trial.Chain().With(gate{func(inv *engine.Invocation) engine.Verdict {
		return inv.RefuseWith("tenant is suspended\n", 403)
	}}, engine.After("authority"))})
	for range 3 {
		_, err := l.Enter(anywhere, "r", nil)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	var text strings.Builder
	require.NoError(t, l.tree().WriteText(&text))
	assert.Contains(t, text.String(), "\nslot: tenant is suspended\\n: refused 3 calls\n")
	data, err := json.Marshal(l.tree())
	require.NoError(t, err)
	var tree jsonTree
	decode(t, data, &tree)
	require.Len(t, tree.Rules, 1)
	assert.Equal(t, "custom", tree.Rules[0].Kind)
	assert.EqualValues(t, 3, tree.Rules[0].Refused)
}
