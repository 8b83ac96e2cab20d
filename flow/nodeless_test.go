package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// If the slot that finds a node panics, the rules on that node don't apply; rules on other nodes
// hold.
func TestRulesWithoutTheirNode(t *testing.T) {
	const limit = 3
	for _, tt := range []struct {
		name  string
		chain *engine.Chain
		rule  flow.Rule // can't be enforced
	}{
		{"origin", engine.NewChain(trial.Slot("nodeSelector"), trial.Lost{}, trial.Slot("log"), trial.Slot("statistic"), engine.FamilySlot(core.KindFlow)), flow.Rule{Threshold: 0.5, Origin: "app"}},
		{"chain", engine.NewChain(trial.Lost{}, trial.Slot("clusterBuilder"), trial.Slot("log"), trial.Slot("statistic"), engine.FamilySlot(core.KindFlow)), flow.Rule{Threshold: 0.5, Relation: flow.Chain, Ref: "web"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.Resource = "orders"
			e, err := engine.NewEngine(engine.Config{Clock: clocks.NewManual(start), Chain: tt.chain})
			require.NoError(t, err)
			books.Keep(t, e)
			require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
				return flow.Compile(b, []flow.Rule{tt.rule, {ID: "all", Resource: "orders", Threshold: limit, Interval: time.Minute}})
			}))
			for i := range 2 * limit {
				entry, err := e.Enter(engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app"), "orders", nil)
				assert.Equal(t, i < limit, err == nil, "call %d", i)
				entry.Exit()
			}
			assert.Equal(t, int64(2*limit), e.Failures(), "one a call")
			r, _ := e.FindResource("orders")
			assert.EqualValues(t, limit, r.Totals().Pass, "counted there, or on the node of the call which it includes")
		})
	}
}
