package flow_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// Two rules that counted in windows of different shapes are edited to count in one. Each continues
// from its own counts, whichever hands over last.
// known bug 72
func TestRulesMeetInOneShape(t *testing.T) {
	for range 20 { // in varying order
		clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
		e, err := engine.NewEngine(engine.Config{Clock: clock, Chain: trial.Chain()})
		require.NoError(t, err)
		load := func(a, b time.Duration) {
			require.NoError(t, e.Update(func(builder *engine.SnapshotBuilder) error {
				return flow.Compile(builder, []flow.Rule{
					{ID: "a", Resource: "orders", Interval: a, Threshold: 10},
					{ID: "b", Resource: "orders", Interval: b, Threshold: 10.5},
				})
			}))
		}
		load(10*time.Second, time.Second)
		passed := 0
		try := func() {
			for range 30 {
				if e, err := e.Enter(t.Context(), "orders", nil); err == nil {
					passed++
					e.Exit()
				}
			}
		}
		try()
		clock.Advance(2 * time.Second)
		load(5*time.Second, 5*time.Second)
		try()
		require.Equal(t, 10, passed, "10 in any 5 s")
	}
}

// Replaced rules are garbage collected, after any number of reloads.
func TestReloadsKeepNothing(t *testing.T) {
	e, err := engine.NewEngine(engine.Config{Chain: trial.Chain()})
	require.NoError(t, err)
	objects := func() int64 {
		for i := range 400 {
			interval := time.Second + time.Duration(i%2)*time.Second
			require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
				return flow.Compile(b, []flow.Rule{{ID: "a", Resource: "orders", Interval: interval, Threshold: 10}})
			}))
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapObjects)
	}
	objects()
	before := objects()
	assert.Less(t, objects()-before, int64(400), "less than one for each reload")
	runtime.KeepAlive(e)
}
