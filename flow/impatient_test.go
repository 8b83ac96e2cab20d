package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// Callers that give up in the order of their arrival take nothing from those behind them: as many
// pass as if they had never arrived.
// known bug 128
func TestGoodputOfImpatientCallers(t *testing.T) {
	for _, rule := range []flow.Rule{
		throttle(50, time.Second),
		{ID: "r", Resource: "orders", Threshold: 50, Behavior: flow.WarmUpThrottle, WarmUpPeriod: time.Second, MaxWait: time.Second},
	} {
		passed := trial.Impatient(t, 6, func(e *engine.Engine) {
			require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, []flow.Rule{rule}) }))
		})
		t.Log(rule.Behavior, passed)
		if rule.Behavior == flow.WarmUpThrottle {
			passed = passed[3:] // after it has warmed up
		}
		for _, n := range passed[:len(passed)-1] {
			assert.GreaterOrEqual(t, n, 50*95/100, "%v in each second", passed)
			assert.LessOrEqual(t, n, 51, "%v in each second", passed)
		}
	}
}
