package inspect_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

// chat is an engine whose calls cost units.
func chat(t *testing.T) *lab {
	l := newLab(t, engine.Config{})
	l.rules(flow.Rule{Resource: "POST /chat", Unit: "tokens", Threshold: 300_000},
		flow.Rule{Resource: "POST /chat", Unit: "microUSD", Threshold: 500, MaxOverdraft: 0.1})
	for _, used := range [][2]int64{{97_000, 100}, {250_000, 900}} {
		e := l.enter(anywhere, "POST /chat", engine.Cost("tokens", 100_000), engine.Cost("microUSD", 250))
		e.Settle("tokens", used[0])
		e.Settle("microUSD", used[1])
		e.Exit()
	}
	_, err := l.Enter(anywhere, "POST /chat", []engine.Option{engine.Cost("tokens", 5)})
	require.ErrorIs(t, err, core.ErrBlocked)
	l.enter(anywhere, "POST /chat").Exit()
	return l
}

// The text shows the units that calls used beside their counts, and the JSON has them at the resource.
func TestUnits(t *testing.T) {
	tree := chat(t).tree()
	require.Contains(t, text(t, tree), "  tokens 347k/min, 3000 refunded, 150k overdrawn, 5 refused, 1 uncosted  microUSD 1000/min, 150 refunded, 650 overdrawn, 450 forgiven, 1 uncosted\n")
	want := []core.UnitCounts{{Reserved: 200_000, Refunded: 3000, Overdrawn: 150_000, Refused: 5, Uncosted: 1}, {Reserved: 500, Refunded: 150, Overdrawn: 650, Forgiven: 450, Uncosted: 1}}
	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var got jsonTree
	decode(t, data, &got)
	require.Equal(t, []core.UnitStats{{Unit: "tokens", Total: want[0], Minute: want[0]}, {Unit: "microUSD", Total: want[1], Minute: want[1]}}, got.Resources[0].Units)
}
