package hotspot_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// Callers of a value that give up in the order of their arrival take nothing from those behind
// them.
// known bug 128
func TestGoodputOfImpatientCallers(t *testing.T) {
	passed := trial.Impatient(t, 6, func(e *engine.Engine) {
		rules := []hotspot.Rule{{Resource: "orders", Param: "user", Threshold: 50, Behavior: hotspot.Throttle, MaxWait: time.Second}}
		require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error { return hotspot.Compile(b, rules) }))
	}, user("ann"))
	t.Log(passed)
	for _, n := range passed[:len(passed)-1] {
		assert.GreaterOrEqual(t, n, 50*95/100, "%v in each second", passed)
		assert.LessOrEqual(t, n, 51, "%v in each second", passed)
	}
}
